//! One-time codes as a service: sent, checked, paid, limited, and slowed where nobody enters them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;
use testkit::receiver::Receiver;

use super::money::check_ledger;
use super::service::{Service, in_seconds, message, wait_for};
use crate::notify;

const NUMBER: &str = "+37120000007";

fn service(backend: Backend) -> Service {
    Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    })
}

fn post(service: &Service, token: &str, path: &str, body: &Value) -> Response {
    service.call_as(token, "POST", path, body.to_string().as_bytes())
}

fn start(service: &Service, body: &Value) -> Response {
    post(service, &service.token, "/verify", body)
}

/// Starts a verification that must be accepted, and returns its ID.
fn started(service: &Service, body: &Value) -> u64 {
    let response = start(service, body);
    assert_eq!(response.status, 200, "{body}: {}", response.text());
    response.json()["id"].as_u64().expect("a number")
}

fn check(service: &Service, id: u64, code: &Value) -> Response {
    let (path, body) = (format!("/verify/{id}/check"), json!({ "code": code }));
    post(service, &service.token, &path, &body)
}

fn status(service: &Service, id: u64) -> Value {
    service.get(&format!("/verify/{id}")).json()["status"].clone()
}

/// Waits until the handset has this many messages, and returns the text of the newest.
fn received(service: &Service, number: &str, count: usize) -> String {
    let arguments = ["simulator", "inbox", "--number", number, "--json"];
    let newest = wait_for("the code", || {
        let list = service.server.cli_json(&arguments);
        let list = list.as_array().expect("a list");
        (list.len() == count).then(|| list[0]["message"].clone())
    });
    newest.as_str().expect("a text").to_owned()
}

/// The digits that the newest message of the handset begins with.
fn code(service: &Service, number: &str, count: usize) -> String {
    let text = received(service, number, count);
    let (code, rest) = text.split_at(6);
    assert!(code.bytes().all(|b| b.is_ascii_digit()), "{text}");
    let expected = " is your verification code. It is valid for 10 minutes.";
    assert_eq!(rest, expected);
    code.to_owned()
}

fn other_than(code: &str) -> &'static str {
    if code == "111111" { "222222" } else { "111111" }
}

fn assert_refused(response: &Response, status: u16, words: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    let text = message(response);
    assert!(text.contains(words), "no {words:?}: {text}");
}

/// From the first code to the approval, with the errors on the way.
fn a_code_is_sent_checked_and_used_once(backend: Backend) {
    let service = service(backend);
    let response = start(&service, &json!({ "to": NUMBER }));
    assert_eq!(response.status, 200, "{}", response.text());
    let sent = response.json();
    let id = sent["id"].as_u64().expect("a number");
    let expires = sent["expires"].as_str().expect("a text");
    expires.parse::<jiff::Timestamp>().expect("RFC 3339");
    let expected = json!({ "id": id, "to": NUMBER, "expires": expires });
    assert_eq!(sent, expected);
    let path = format!("/verify/{id}");
    let expected = json!({ "id": id, "to": NUMBER, "status": "pending", "expires": expires });
    assert_eq!(service.get(&path).json(), expected);

    let code = code(&service, NUMBER, 1);
    for malformed in [json!("abcdef"), json!("123"), json!([code]), json!(true)] {
        assert_refused(&check(&service, id, &malformed), 400, "'code'");
    }
    assert_refused(&check(&service, id, &json!("1234")), 400, "6 digits");
    assert_refused(&check(&service, id, &Value::Null), 400, "missing");
    let wrong = json!(other_than(&code));
    assert_refused(&check(&service, id, &wrong), 400, "4 tries are left");
    let other = service.create_account("other");
    let right = json!({ "code": code });
    let stranger = post(&service, &other, &format!("{path}/check"), &right);
    assert_refused(&stranger, 404, "no such verification");
    assert_eq!(service.call_as(&other, "GET", &path, b"").status, 404);
    assert_eq!(check(&service, id + 1, &wrong).status, 404);
    assert_eq!(check(&service, 0, &wrong).status, 404);

    let number: u64 = code.parse().expect("a number");
    let checked = check(&service, id, &json!(number));
    assert_eq!(checked.status, 200, "{}", checked.text());
    assert_eq!(checked.json(), json!({ "id": id, "status": "approved" }));
    assert_refused(&check(&service, id, &json!(code)), 409, "approved already");
    assert_eq!(status(&service, id), "approved");

    let output = service.server.output();
    let mut words = output.split(|c: char| !c.is_ascii_alphanumeric());
    assert!(!words.any(|word| word == code), "{output}");
    service.check_health();
}

fn wrong_codes_end_a_verification(backend: Backend) {
    let service = service(backend);
    let id = started(&service, &json!({ "to": NUMBER }));
    let code = code(&service, NUMBER, 1);
    let wrong = json!(other_than(&code));
    for left in ["4 tries are", "3 tries are", "2 tries are", "1 try is"] {
        let words = format!("{left} left");
        assert_refused(&check(&service, id, &wrong), 400, &words);
    }
    assert_refused(&check(&service, id, &wrong), 400, "no tries are left");
    assert_refused(&check(&service, id, &json!(code)), 409, "Too many wrong");
    assert_eq!(status(&service, id), "failed");
    let again = started(&service, &json!({ "to": NUMBER }));
    assert_ne!(again, id, "a failed one does not delay the next");
}

/// The account's own text, sender, length and spelling of the number.
fn every_field_counts(backend: Backend) {
    let service = service(backend);
    let body = json!({
        "to": "20 000 009", "correctBy": "LV", "from": "Acme", "length": "10", "expireIn": 60,
        "message": "Acme: {code}. Nobody else may know {code}.",
    });
    let sent = start(&service, &body).json();
    assert_eq!(sent["to"], "+37120000009");
    let text = received(&service, "+37120000009", 1);
    let code = text.get(6..16).expect("ten digits");
    assert_eq!(text, format!("Acme: {code}. Nobody else may know {code}."));
    let arguments = ["simulator", "inbox", "--number", "+37120000009", "--json"];
    assert_eq!(service.server.cli_json(&arguments)[0]["from"], "Acme");

    for (field, value, words) in [
        ("to", json!("12"), "'to'"),
        ("to", json!("+37120000001,+37120000002"), "'to'"),
        ("to", json!(["+37120000001"]), "'to'"),
        ("to", Value::Null, "'to': it is missing"),
        ("from", json!("A@B"), "'from'"),
        ("length", json!(3), "'length': 3 is not a code length"),
        ("length", json!(11), "4 to 10 digits"),
        ("expireIn", json!(59), "'expireIn': 59 is below 60"),
        ("expireIn", json!(3601), "above 3600"),
        (
            "message",
            json!("Hello"),
            "'message': it does not contain {code}",
        ),
        ("message", json!(7), "'message'"),
        ("correctBy", json!("ZZ"), "'correctBy'"),
    ] {
        let mut body = json!({ "to": NUMBER });
        body[field] = value;
        assert_refused(&start(&service, &body), 400, words);
    }
    let stored = service.stored();
    assert_eq!(stored, 1, "nothing else was sent");
}

/// A new code replaces the one before, but not at once.
fn a_code_is_replaced_after_a_pause(backend: Backend) {
    let service = service(backend);
    // A machine that stalls may take longer than the pause. Then another number is tried.
    let is_refused = (1..=5).any(|n| {
        let body = json!({ "to": format!("+3712000001{n}") });
        let began = Instant::now();
        let id = started(&service, &body);
        let response = start(&service, &body);
        let is_in_time = began.elapsed() < Duration::from_secs(25);
        if is_in_time {
            assert_refused(&response, 409, &format!("verification {id}"));
            assert_eq!(status(&service, id), "pending", "it goes on");
        }
        is_in_time
    });
    assert!(is_refused, "the machine stalls");
}

/// The message costs what any message costs. If it cannot be paid, nothing is left to wait for.
fn an_account_pays_for_its_codes(backend: Backend) {
    let service = service(backend);
    started(
        &service,
        &json!({ "to": NUMBER, "from": "Acme", "message": "{code}" }),
    );
    let sms = json!({ "to": NUMBER, "from": "Acme", "message": "123456" });
    let cost = post(&service, &service.token, "/sms/cost", &sms).json();
    let listed = service.get("/messages").json();
    assert_eq!(listed[0]["price"], cost[0]["totalPrice"], "{listed}");
    assert_ne!(service.balance(), "100.00");

    let create = ["account", "create", "--name", "poor", "--json"];
    service.server.cli_json(&create);
    let poor = service.create_token("poor", &[]).token;
    let body = json!({ "to": "+37120000008" });
    for _ in 0..2 {
        let response = post(&service, &poor, "/verify", &body);
        assert_refused(&response, 403, "balance does not cover");
    }
    let credit = ["account", "credit", "poor", "10", "--json"];
    service.server.cli_json(&credit);
    let response = post(&service, &poor, "/verify", &body);
    assert_eq!(response.status, 200, "{}", response.text());
}

/// An approved verification has a price of its own. Many right codes at once are charged once.
fn an_approved_verification_is_charged_once(backend: Backend) {
    let service = service(backend);
    let set = ["account", "set", "main", "verify_price=0.02", "--json"];
    assert_eq!(service.server.cli_json(&set)["verifyPrice"], "0.02");
    let id = started(&service, &json!({ "to": NUMBER }));
    let code = json!(code(&service, NUMBER, 1));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let checks = [(); 4].map(|()| scope.spawn(|| check(&service, id, &code).status));
        checks.map(|one| one.join().expect("answers")).to_vec()
    });
    let approved = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(approved, 1, "{statuses:?}");
    check_ledger(&service);
    let month = in_seconds(0).strftime("%Y-%m").to_string();
    let arguments = ["account", "statement", "main", "--month", &month];
    let arguments = [&arguments[..], &["--format", "json"]].concat();
    let statement = service.server.cli_json(&arguments);
    assert_eq!(statement["verifications"], "-0.02", "{statement}");
    assert_eq!(statement["approvedVerifications"], 1, "{statement}");
    assert_eq!(statement["closingBalance"], json!(service.balance()));
    let ledger = service
        .server
        .cli_json(&["account", "ledger", "main", "--json"]);
    let mut entries = ledger.as_array().expect("a list").iter();
    let entry = entries.find(|entry| entry["kind"] == "verification");
    assert_eq!(entry.expect("charged")["amount"], "-0.02", "{ledger}");
    let metrics = service.raw("GET", "/metrics", &[], b"").text();
    for outcome in ["sent", "approved"] {
        let line = format!("switchboard_verifications_total{{outcome=\"{outcome}\"}} 1");
        assert!(metrics.contains(&line), "{line}");
    }
}

fn a_repeated_request_sends_one_code(backend: Backend) {
    let mut service = service(backend);
    let body = json!({ "to": NUMBER }).to_string();
    let send = |service: &Service, key: &str, body: &str| {
        let key = [("Idempotency-Key", key)];
        service.call_with(&service.token, "POST", "/verify", &key, body.as_bytes())
    };
    let first = send(&service, "one", &body);
    assert_eq!(first.status, 200, "{}", first.text());
    let id = first.json()["id"].as_u64().expect("a number");
    assert_eq!(send(&service, "one", &body).text(), first.text());
    let other = json!({ "to": "+37120000008" }).to_string();
    assert_refused(&send(&service, "one", &other), 409, "Idempotency-Key");
    assert_refused(&send(&service, "a b", &body), 400, "Idempotency-Key");
    let sms = json!({ "to": NUMBER, "from": "Acme", "message": "Hi" }).to_string();
    let key = [("Idempotency-Key", "two")];
    let stored = service.call_with(&service.token, "POST", "/sms", &key, sms.as_bytes());
    assert_eq!(stored.status, 200, "{}", stored.text());
    assert_refused(&send(&service, "two", &body), 409, "Idempotency-Key");
    assert_eq!(service.stored(), 2, "one code and one message");
    service.server.restart();
    assert_eq!(send(&service, "one", &body).text(), first.text());
    assert_eq!(service.stored(), 0, "nothing since the restart");
    let code = json!({ "code": 1234 });
    let path = format!("/verify/{id}/check");
    assert_refused(
        &post(&service, &service.token, &path, &code),
        400,
        "6 digits",
    );
}

fn recipients_who_opted_out_get_no_code(backend: Backend) {
    let service = service(backend);
    let listed = post(
        &service,
        &service.token,
        "/optOuts",
        &json!({ "number": NUMBER }),
    );
    assert_eq!(listed.status, 200, "{}", listed.text());
    let response = start(&service, &json!({ "to": NUMBER }));
    assert_refused(&response, 403, "opted out");
    let block = ["block", "add", "--number", "+37120000008", "--json"];
    service.server.cli_json(&block);
    let body = json!({ "to": "+37120000008" });
    wait_for("the block", || {
        let response = start(&service, &body);
        (response.status == 403).then(|| assert_refused(&response, 403, "blocks"))
    });
}

/// A number gets five codes in an hour, over all accounts.
fn a_number_gets_few_codes(backend: Backend) {
    let service = service(backend);
    for n in 0..5 {
        let token = service.create_account(&format!("account {n}"));
        let response = post(&service, &token, "/verify", &json!({ "to": NUMBER }));
        assert_eq!(response.status, 200, "{n}: {}", response.text());
    }
    let response = start(&service, &json!({ "to": NUMBER }));
    assert_refused(&response, 429, "at most 5 in an hour");
    let wait = response.header("retry-after").expect("a time");
    let wait: u32 = wait.parse().expect("seconds");
    assert!((1..=3600).contains(&wait), "{wait}");
}

/// Where nobody enters codes, they are sent slowly, until some are entered.
fn prefixes_that_never_convert_are_slowed(backend: Backend) {
    let receiver = Receiver::start();
    let service = Service::with(backend, |builder| {
        builder
            .config(notify::webhook(&receiver, "'verify.slowed'"))
            .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let to = |n: usize| format!("+371200{n:05}");
    let ids: Vec<u64> = (0..50)
        .map(|n| started(&service, &json!({ "to": to(n) })))
        .collect();
    let mut next = 50;
    let mut start_next = || {
        next += 1;
        start(&service, &json!({ "to": to(next) }))
    };
    let response = wait_for("the pause", || {
        Some(start_next()).filter(|response| response.status != 200)
    });
    assert_refused(&response, 429, "sent slowly");
    let wait = response.header("retry-after").expect("a time");
    let wait: u32 = wait.parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    let elsewhere = start(&service, &json!({ "to": "+37129100000" }));
    assert_eq!(elsewhere.status, 200, "{}", elsewhere.text());
    let other = service.create_account("other");
    let response = post(&service, &other, "/verify", &json!({ "to": to(99) }));
    assert_eq!(response.status, 200, "another account: {}", response.text());

    let prefixes = || service.server.cli_json(&["verify", "prefixes", "--json"]);
    let listed = prefixes();
    let sent = listed[0]["sent"].as_u64().expect("a number");
    assert!(sent >= 50, "{listed}");
    let expected = json!({
        "prefix": 371_200, "account": "main", "sent": sent, "approved": 0, "slowed": true,
    });
    assert_eq!(listed[0], expected);
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
    let table = service.server.cli(&["verify", "prefixes"]);
    let table = String::from_utf8(table.stdout).expect("text");
    let first = table.lines().nth(1).unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(
        words.first().zip(words.last()),
        Some((&"371200", &"slowed"))
    );

    let told = notify::body(&notify::wait_for_event(&receiver, "verify.slowed"));
    assert_eq!(told["data"]["prefix"], "+371200", "{told}");
    assert_eq!(told["data"]["account"], "main", "{told}");
    assert_eq!(told["data"]["approved"], 0, "{told}");

    for (n, id) in ids.iter().enumerate().take(6) {
        let code = code(&service, &to(n), 1);
        assert_eq!(check(&service, *id, &json!(code)).status, 200);
    }
    assert_eq!(prefixes()[0]["slowed"], false);
    assert_eq!(start_next().status, 200);
}

super::on_both_backends!(
    a_code_is_sent_checked_and_used_once,
    wrong_codes_end_a_verification,
    every_field_counts,
    a_code_is_replaced_after_a_pause,
    an_account_pays_for_its_codes,
    an_approved_verification_is_charged_once,
    a_repeated_request_sends_one_code,
    recipients_who_opted_out_get_no_code,
    a_number_gets_few_codes,
    prefixes_that_never_convert_are_slowed,
);
