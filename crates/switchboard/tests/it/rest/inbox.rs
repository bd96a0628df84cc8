//! The inbox of an account, with the simulated network.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::Receiver;

use super::money::{check_ledger, import};
use super::service::{Service, in_seconds, sms_with, wait_for};

on_both_backends!(
    replies_are_in_the_inbox_of_their_number,
    a_reply_costs_what_the_inbound_list_says,
    the_echo_answers_a_message,
);

fn command(service: &Service, arguments: &[&str]) {
    let output = service.server.cli(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
}

/// Sends a text from a simulated handset, and returns the ID of the message.
fn reply(service: &Service, from: &str, to: &str, text: &str) -> String {
    let arguments = [
        "simulator",
        "reply",
        "--from",
        from,
        "--to",
        to,
        "--text",
        text,
        "--json",
    ];
    let sent = service.server.cli_json(&arguments);
    sent["id"].as_str().expect("an ID").to_owned()
}

fn ids(listed: &Value) -> Vec<&str> {
    let list = listed.as_array().expect("a list");
    list.iter().filter_map(|one| one["id"].as_str()).collect()
}

fn replies_are_in_the_inbox_of_their_number(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    command(
        &service,
        &["number", "add", "--number", "1234", "--account", "main"],
    );
    let keyword = [
        "--number",
        "1234",
        "--account",
        "other",
        "--keyword",
        "join",
    ];
    command(&service, &[&["number", "add"], &keyword[..]].concat());
    let taken = service
        .server
        .cli(&[&["number", "add"], &keyword[..]].concat());
    assert!(!taken.status.success(), "the keyword is taken");

    let first = reply(&service, "+37120000001", "1234", "Hello");
    let second = reply(&service, "+37120000002", "1234", "Привет");
    let joined = reply(&service, "+37120000001", "1234", "Join us");
    let inbox = service.get("/sms/inbox").json();
    assert_eq!(ids(&inbox), [&second, &first]);
    assert_eq!(
        (&inbox[0]["message"], &inbox[0]["coding"]),
        (&json!("Привет"), &json!(2))
    );
    assert_eq!(
        (&inbox[1]["from"], &inbox[1]["to"]),
        (&json!("+37120000001"), &json!("1234"))
    );
    let filtered = service.get("/sms/inbox?from=%2B37120000001&to=1234").json();
    assert_eq!(ids(&filtered), [&first]);
    let page = service.get("/sms/inbox?limit=1");
    assert_eq!(ids(&page.json()), [&second]);
    let cursor = page
        .header("x-next-cursor")
        .expect("there is more")
        .to_owned();
    let rest = service.get(&format!("/sms/inbox?limit=1&cursor={cursor}"));
    assert_eq!(ids(&rest.json()), [&first]);

    let found = service.get(&format!("/sms/inbox/{first}")).json();
    assert_eq!(found, inbox[1]);
    assert_eq!(service.get(&format!("/sms/inbox/{joined}")).status, 404);
    let others = service.call_as(&other, "GET", "/sms/inbox", b"");
    assert_eq!(ids(&others.json()), [&joined]);
    assert_eq!(others.json()[0]["keyword"], "join");
    for (path, part) in [
        ("/sms/inbox?limit=0", "'limit'"),
        ("/sms/inbox?to=x", "'to'"),
        ("/sms/inbox?since=now", "'since'"),
    ] {
        let refused = service.get(path);
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains(part), "{}", refused.text());
    }
    let sender = service.create_token("main", &["--permission", "sms:send"]);
    assert_eq!(
        service
            .call_as(&sender.token, "GET", "/sms/inbox", b"")
            .status,
        200
    );
    let prices = service.create_token("main", &["--permission", "sms:rates"]);
    assert_eq!(
        service
            .call_as(&prices.token, "GET", "/sms/inbox", b"")
            .status,
        403
    );

    command(&service, &["number", "remove", "--number", "1234"]);
    let unclaimed = reply(&service, "+37120000001", "1234", "Anybody?");
    assert_eq!(service.get(&format!("/sms/inbox/{unclaimed}")).status, 404);
}

fn a_reply_costs_what_the_inbound_list_says(backend: Backend) {
    let service = Service::start(backend);
    command(
        &service,
        &["number", "add", "--number", "1234", "--account", "main"],
    );
    let before = service.balance();
    reply(&service, "+37120000001", "1234", "free");
    assert_eq!(service.balance(), before, "there is no list yet");

    let list = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n\
        Latvia,LV,Default,Default,247,,0.25\n";
    import(&service, list, &["--channel", "inbound"]);
    reply(&service, "+37120000001", "1234", "Hello");
    reply(&service, "+447700900001", "1234", "not in the list");
    reply(&service, "+37120000001", "1235", "nobody's");
    let own = list.replace("0.25", "0.10");
    import(
        &service,
        &own,
        &["--channel", "inbound", "--account", "main"],
    );
    reply(&service, "+37120000001", "1234", "Hello again");
    check_ledger(&service);
    let month = in_seconds(0).strftime("%Y-%m").to_string();
    let arguments = [
        "account",
        "statement",
        "main",
        "--month",
        &month,
        "--format",
        "json",
    ];
    let statement = service.server.cli_json(&arguments);
    assert_eq!(statement["inbound"], "-0.35", "{statement}");
    assert_eq!(statement["inboundMessages"], 2, "{statement}");
    assert_eq!(
        statement["closingBalance"],
        json!(service.balance()),
        "{statement}"
    );
}

fn the_echo_answers_a_message(backend: Backend) {
    let receiver = Receiver::start();
    let service = Service::with(backend, |builder| {
        builder
            .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
            .env("SWITCHBOARD_CALLBACKS__ALLOW", "['127.0.0.0/8']")
    });
    let number = "+37120000009";
    let url = receiver.url("/inbound");
    let entry = ["--number", number, "--account", "main", "--url", &url];
    command(&service, &[&["number", "add"], &entry[..]].concat());
    let sent = service.accept(&sms_with(&json!({
        "to": "+447700900900", "from": number, "message": "Is anybody there? €",
    })));
    let callback = wait_for("the echo", || receiver.received().into_iter().next());
    let echo: Value = serde_json::from_slice(&callback.body).expect("JSON");
    assert_eq!(echo["from"], "+447700900900", "{echo}");
    assert_eq!(echo["to"], number, "{echo}");
    assert_eq!(echo["message"], "Is anybody there? €", "{echo}");
    assert_eq!(echo["inReplyTo"], json!(sent[0]), "{echo}");
}
