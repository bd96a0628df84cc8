//! Sender IDs: registration, confirmation, review, notifications, and messages from them.

use serde_json::{Value, json};
use testkit::http::Response;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::service::{Service, in_seconds, message, sms_with, wait_for, with_offset};

const NUMBER: &str = "+37120000007";

pub(super) fn start(backend: Backend) -> Service {
    Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    })
}

fn post(service: &Service, token: &str, path: &str, body: &Value) -> Response {
    service.call_as(token, "POST", path, body.to_string().as_bytes())
}

pub(super) fn register(service: &Service, body: &Value) -> Response {
    post(service, &service.token, "/senderId", body)
}

/// Registers a sender ID that must be accepted, and returns its ID.
pub(super) fn registered(service: &Service, body: &Value) -> u64 {
    let response = register(service, body);
    assert_eq!(response.status, 200, "{body}: {}", response.text());
    assert_eq!(response.header("content-type"), Some("plain/text"));
    response.text().parse().expect("the bare number")
}

pub(super) fn name(name: &str) -> Value {
    json!({
        "name": name, "type": "AlphaNumeric", "category": "Company", "categoryDescription": "our own name",
    })
}

pub(super) fn number() -> Value {
    json!({ "name": NUMBER, "type": "MSISDN" })
}

pub(super) fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}

fn confirm(service: &Service, id: u64, code: &Value) -> Response {
    let body = json!({ "code": code });
    let path = format!("/senderId/confirm/{id}");
    post(service, &service.token, &path, &body)
}

fn status(service: &Service, id: u64) -> String {
    let sender = service.get(&format!("/senderId/{id}")).json();
    sender["status"].as_str().expect("a word").to_owned()
}

fn inbox(service: &Service, number: &str) -> Vec<Value> {
    let arguments = ["simulator", "inbox", "--number", number, "--json"];
    let list = service.server.cli_json(&arguments);
    list.as_array().expect("a list").clone()
}

/// Waits until the handset has this many messages, and returns the PIN in the newest.
fn pin(service: &Service, count: usize) -> String {
    let received = wait_for("the PIN", || {
        Some(inbox(service, NUMBER)).filter(|list| list.len() == count)
    });
    let text = received[0]["message"].as_str().expect("a text");
    let (pin, rest) = text.split_at(5);
    assert!(pin.bytes().all(|b| b.is_ascii_digit()), "{text}");
    assert_eq!(
        rest,
        format!(" is your confirmation code for {NUMBER}. It is valid for 10 minutes.")
    );
    assert_eq!(received[0]["from"], "Switchboard");
    pin.to_owned()
}

fn other_than(pin: &str) -> &'static str {
    if pin == "11111" { "22222" } else { "11111" }
}

/// Runs a `sender` command, which must succeed.
fn review(service: &Service, step: &str, id: u64, more: &[&str]) -> Value {
    let id = id.to_string();
    let arguments = [&["sender", step, &id, "--json"], more].concat();
    service.server.cli_json(&arguments)
}

/// A receiver that answers 202.
fn notification_receiver() -> Receiver {
    let script = |_: &testkit::receiver::Request<'_>| Reply::answer(202, "noted");
    Receiver::builder().script(script).start()
}

/// Waits for this many notifications. Their timestamps are checked and removed.
fn notifications(receiver: &Receiver, count: usize) -> Vec<Value> {
    assert!(
        receiver.wait_for(count, TEST_TIMEOUT),
        "{count} notifications"
    );
    let payload = |text: String| {
        let mut payload: Value = serde_json::from_str(&text).expect("JSON");
        let timestamp = payload["timestamp"].take();
        let timestamp = timestamp.as_str().expect("a text");
        timestamp.parse::<jiff::Timestamp>().expect("RFC 3339");
        payload
    };
    let all = receiver.received();
    all.iter().map(|one| payload(one.text())).collect()
}

fn assert_refused(response: &Response, status: u16, words: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    let text = message(response);
    assert!(text.contains(words), "no {words:?}: {text}");
}

/// From the registration to the approval, with every possible error on the way.
fn a_number_is_confirmed_by_its_pin(backend: Backend) {
    let service = start(backend);
    let receiver = notification_receiver();
    let body = with(number(), "notificationUrl", json!(receiver.url("/news")));
    let id = registered(&service, &body);
    let path = format!("/senderId/{id}");
    let mut sender = service.get(&path).json();
    let created = sender["created"].take();
    created
        .as_str()
        .expect("a text")
        .parse::<jiff::Timestamp>()
        .expect("RFC 3339");
    let expected = json!({
        "id": id, "name": NUMBER, "type": "MSISDN", "status": "awaiting_confirmation", "reason": null, "category": null,
        "categoryDescription": null, "notificationUrl": receiver.url("/news"), "created": null,
    });
    assert_eq!(sender, expected);
    assert_refused(&register(&service, &body), 409, "less than a minute ago");

    let pin = pin(&service, 1);
    assert_refused(&confirm(&service, id, &json!("1234")), 400, "'code'");
    assert_refused(&confirm(&service, id, &json!([pin])), 400, "5 digits");
    assert_refused(&confirm(&service, id, &Value::Null), 400, "missing");
    let wrong = json!(other_than(&pin));
    assert_refused(&confirm(&service, id, &wrong), 400, "4 tries are left");
    let other = service.create_account("other");
    let confirm_path = format!("/senderId/confirm/{id}");
    let right = json!({ "code": pin });
    let response = post(&service, &other, &confirm_path, &right);
    assert_refused(&response, 404, "no such sender");
    assert_eq!(service.call_as(&other, "GET", &path, b"").status, 404);
    assert_refused(&confirm(&service, id + 1, &wrong), 404, "no such sender");
    assert_eq!(confirm(&service, 0, &wrong).status, 404);

    let as_number: u32 = pin.parse().expect("a number");
    let confirmed = confirm(&service, id, &json!(as_number));
    assert_eq!(confirmed.status, 200, "{}", confirmed.text());
    assert_eq!(confirmed.json(), json!({ "id": id, "status": "approved" }));
    assert_refused(&confirm(&service, id, &json!(pin)), 409, "approved");
    assert_refused(&register(&service, &body), 409, "which is approved");
    let expected = json!({
        "id": id, "name": NUMBER, "type": "MSISDN", "status": "approved", "previousStatus": "awaiting_confirmation",
        "reason": null, "timestamp": null,
    });
    assert_eq!(notifications(&receiver, 1), [expected]);
    wait_for("the end of the notification", || {
        let waiting = service.server.cli_json(&["callbacks", "list", "--json"]);
        (waiting == json!([])).then_some(())
    });
    assert_eq!(service.balance(), "100.00", "a PIN costs nothing");
    let output = service.server.output();
    let mut words = output.split(|c: char| !c.is_ascii_alphanumeric());
    assert!(!words.any(|word| word == pin), "{output}");
    service.check_health();
}

/// Five guesses are allowed. After that, the reviewer can still decide.
fn guesses_are_used_up(backend: Backend) {
    let service = start(backend);
    let id = registered(&service, &number());
    let pin = pin(&service, 1);
    let wrong = json!(other_than(&pin));
    for left in [
        "4 tries are",
        "3 tries are",
        "2 tries are",
        "1 try is",
        "no tries are",
    ] {
        let words = format!("{left} left");
        assert_refused(&confirm(&service, id, &wrong), 400, &words);
    }
    for code in [&json!(pin), &wrong] {
        assert_refused(&confirm(&service, id, code), 409, "Too many wrong");
    }
    assert_eq!(status(&service, id), "awaiting_confirmation");
    assert_eq!(review(&service, "reject", id, &[])["status"], "rejected");
    assert_refused(&confirm(&service, id, &json!(pin)), 409, "rejected");
    let again = registered(&service, &number());
    assert_ne!(again, id, "a rejected one does not count");
}

/// A PIN that cannot be sent leaves nothing to wait for.
fn a_pin_that_cannot_be_sent_is_discarded(backend: Backend) {
    let service = start(backend);
    service.accept(&sms_with(&json!({ "to": NUMBER })));
    let set = |rules: &[&str]| {
        let output = service
            .server
            .cli(&[&["account", "set", "main"], rules].concat());
        assert!(output.status.success(), "{output:?}");
    };
    set(&["per_recipient_hour=1"]);
    service.accept(&sms_with(&json!({ "to": NUMBER })));
    assert_refused(&register(&service, &number()), 403, "at most 1 messages");
    let id = service.get("/senderId").json()[0]["id"]
        .as_u64()
        .expect("an ID");
    let guess = confirm(&service, id, &json!("12345"));
    assert_refused(&guess, 409, "expired");
    set(&["per_recipient_hour=off"]);
    assert_eq!(
        registered(&service, &number()),
        id,
        "at once, under the same ID"
    );
    let pin = pin(&service, 3);
    assert_eq!(confirm(&service, id, &json!(pin)).status, 200);

    set(&["countries=EE"]);
    wait_for("the rule", || {
        (service.send(&sms_with(&json!({}))).status == 403).then_some(())
    });
    let another = with(number(), "name", json!("+37120000008"));
    assert_refused(&register(&service, &another), 403, "list of countries");
    let list = service.get("/senderId").json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "not stored: {list}");
}

/// PINs are free of charge, so their number is limited.
#[test]
fn the_numbers_that_wait_for_a_pin_are_limited() {
    let service = start(Backend::Sqlite);
    let at = |index: u32| with(number(), "name", json!(format!("+3712{index:07}")));
    for index in 0..50 {
        registered(&service, &at(index));
    }
    assert_refused(&register(&service, &at(50)), 403, "50 numbers");
    assert_refused(&register(&service, &at(7)), 409, "less than a minute");
    review(&service, "reject", 1, &[]);
    registered(&service, &at(50));
}

/// A name that can be used only once it is approved.
fn a_name_is_reviewed_and_used(backend: Backend) {
    let service = start(backend);
    let receiver = notification_receiver();
    let url = json!(receiver.url("/news"));
    let id = registered(
        &service,
        &with(name("A&B-Co #1!"), "notificationUrl", url.clone()),
    );
    assert_eq!(status(&service, id), "pending");
    assert_refused(&confirm(&service, id, &json!("12345")), 409, "pending");
    assert_refused(&register(&service, &name("A&B-Co #1!")), 409, "pending");
    let sms = sms_with(&json!({ "from": "A&B-Co #1!" }));
    let rule = "must be a valid MSISDN or an alphanumeric string of at most 11 characters";
    assert_refused(&service.send(&sms), 400, rule);

    let waiting = service.server.cli_json(&[
        "sender",
        "list",
        "--state",
        "pending",
        "--account",
        "main",
        "--json",
    ]);
    assert_eq!(
        (&waiting[0]["id"], &waiting[0]["account"]),
        (&json!(id), &json!("main"))
    );
    let approved = review(
        &service,
        "approve",
        id,
        &["--reason", "seen the \"register\""],
    );
    assert_eq!(approved["status"], "approved");
    service.accept(&sms);
    let soon = with_offset(in_seconds(2), 0);
    let scheduled = sms_with(&json!({ "from": "A&B-Co #1!", "scheduled": soon }));
    service.accept(&scheduled);
    let messages = wait_for("both messages", || {
        Some(inbox(&service, "+37120000001")).filter(|list| list.len() == 2)
    });
    assert!(
        messages.iter().all(|one| one["from"] == "A&B-Co #1!"),
        "{messages:?}"
    );
    let other = service.create_account("other");
    assert_refused(&post(&service, &other, "/sms", &sms), 400, rule);

    let revoked = review(&service, "revoke", id, &["--reason", "misused"]);
    assert_eq!(
        (&revoked["status"], &revoked["reason"]),
        (&json!("revoked"), &json!("misused"))
    );
    wait_for("the revocation", || {
        (service.send(&sms).status == 400).then_some(())
    });
    let second = registered(&service, &with(name("Beta"), "notificationUrl", url));
    review(&service, "reject", second, &[]);
    let notification = |id: u64, name: &str, before: &str, now: &str, reason: Value| {
        json!({
            "id": id, "name": name, "type": "AlphaNumeric", "status": now, "previousStatus": before, "reason": reason,
            "timestamp": null,
        })
    };
    let mut notifications = notifications(&receiver, 3);
    notifications.sort_by_key(|one| (one["id"].as_u64(), one["status"].to_string()));
    let expected = [
        notification(
            id,
            "A&B-Co #1!",
            "pending",
            "approved",
            json!("seen the \"register\""),
        ),
        notification(id, "A&B-Co #1!", "approved", "revoked", json!("misused")),
        notification(second, "Beta", "pending", "rejected", Value::Null),
    ];
    assert_eq!(notifications, expected);
}

/// An account with `approved_senders_only`.
fn only_approved_senders_are_accepted(backend: Backend) {
    let service = start(backend);
    let send = |from: &str| service.send(&sms_with(&json!({ "from": from })));
    assert_eq!(send("Acme").status, 200);
    let approved = registered(&service, &name("Beta"));
    review(&service, "approve", approved, &[]);
    let id = registered(&service, &number());
    let code = json!(pin(&service, 1));
    assert_eq!(confirm(&service, id, &code).status, 200);
    registered(&service, &name("Gamma"));
    let set = |only: &str| {
        let rule = format!("approved_senders_only={only}");
        let output = service.server.cli(&["account", "set", "main", &rule]);
        assert!(output.status.success(), "{output:?}");
    };
    set("true");
    let response = wait_for("the rule", || {
        Some(send("Acme")).filter(|response| response.status != 200)
    });
    assert_refused(
        &response,
        403,
        "'Acme' is not an approved sender of this account",
    );
    let stored = service.stored();
    for (from, status) in [
        ("Gamma", 403),
        ("beta", 403),
        ("A-B", 403),
        ("+37120000001", 403),
        ("A@B", 400),
        ("", 400),
    ] {
        assert_eq!(send(from).status, status, "{from}");
        let test = sms_with(&json!({ "from": from, "testMode": "1" }));
        assert_eq!(service.send(&test).status, status, "{from}, in test mode");
        let cost = post(&service, &service.token, "/sms/cost", &test);
        assert_eq!(cost.status, status, "{from}, cost only");
    }
    assert_eq!(service.stored(), stored);
    for from in ["Beta", NUMBER, &NUMBER[1..]] {
        assert_eq!(send(from).status, 200, "{from}");
    }
    let of_main = |word: &str, arguments: &[&str]| {
        let arguments = [&["number", word, "--number"], arguments].concat();
        let output = service.server.cli(&arguments);
        assert!(output.status.success(), "{output:?}");
    };
    of_main("add", &["+37120000009", "--account", "main"]);
    of_main("add", &["1234", "--account", "main", "--keyword", "join"]);
    for from in ["+37120000009", "37120000009", "1234"] {
        assert_eq!(send(from).status, 200, "{from}, which the account owns");
    }
    of_main("remove", &["1234", "--keyword", "join"]);
    wait_for("the end of its use", || {
        (send("1234").status == 403).then_some(())
    });
    assert_eq!(send("+37120000009").status, 200);
    set("false");
    wait_for("the end of the rule", || {
        (send("Acme").status == 200).then_some(())
    });
}

super::on_both_backends!(
    a_number_is_confirmed_by_its_pin,
    guesses_are_used_up,
    a_pin_that_cannot_be_sent_is_discarded,
    a_name_is_reviewed_and_used,
    only_approved_senders_are_accepted,
);
