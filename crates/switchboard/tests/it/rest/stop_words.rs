//! STOP, START and HELP, written by handsets of the simulated network.

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, sms_with, wait_for};

on_both_backends!(
    stop_ends_sending_and_start_resumes_it,
    stop_on_a_shared_number_is_for_all_or_for_one_keyword,
    each_account_has_its_replies,
);

const NUMBER: &str = "+37120000009";
const HANDSET: &str = "+37120000001";

fn run(service: &Service, arguments: &[&str]) {
    let output = service.server.cli(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
}

fn start(backend: Backend) -> Service {
    let service = Service::with(backend, |builder| {
        builder
            .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
            .env("SWITCHBOARD_OPTOUT__STOP_WORDS", "['lopeta']")
    });
    own(&service, "main", NUMBER, None);
    service
}

fn own(service: &Service, account: &str, number: &str, keyword: Option<&str>) {
    let mut arguments = vec!["number", "add", "--number", number, "--account", account];
    arguments.extend(keyword.into_iter().flat_map(|word| ["--keyword", word]));
    run(service, &arguments);
}

fn write(service: &Service, to: &str, text: &str) {
    let addresses = ["--from", HANDSET, "--to", to, "--text", text];
    run(service, &[&["simulator", "reply"], &addresses[..]].concat());
}

/// The texts that the handset got from a number, the oldest first.
fn received(service: &Service, from: &str) -> Vec<String> {
    let inbox = ["simulator", "inbox", "--number", HANDSET, "--json"];
    let inbox = service.server.cli_json(&inbox);
    let texts = inbox.as_array().expect("a list").iter();
    let mut texts: Vec<String> = texts
        .filter(|message| message["from"] == from)
        .map(|message| message["message"].as_str().expect("a text").to_owned())
        .collect();
    texts.reverse();
    texts
}

/// Waits until the handset has this many texts from a number, and returns the newest.
fn newest(service: &Service, from: &str, count: usize) -> String {
    wait_for("a reply", || {
        let texts = received(service, from);
        assert!(texts.len() <= count, "{texts:?}");
        (texts.len() == count).then(|| texts[count - 1].clone())
    })
}

fn listed(service: &Service, token: &str) -> Value {
    let list = service.call_as(token, "GET", "/optOuts", b"").json();
    let entries = list.as_array().expect("a list").iter();
    entries
        .map(|it| json!([it["number"], it["sender"], it["via"]]))
        .collect()
}

/// The code with which a message to the handset ends.
fn code(service: &Service) -> u64 {
    let message = json!({ "to": HANDSET, "from": NUMBER, "message": "Offer" });
    let ids = service.accept(&sms_with(&message));
    wait_for("the end of a message", || {
        let status = service.get(&format!("/sms/status/{}", ids[0])).json();
        status["error"].as_u64()
    })
}

fn stop_ends_sending_and_start_resumes_it(backend: Backend) {
    let service = start(backend);
    write(&service, NUMBER, "START");
    write(&service, NUMBER, " stop. ");
    let reply = newest(&service, NUMBER, 1);
    assert!(
        reply.contains("Reply START"),
        "only STOP is answered: {reply}"
    );
    let entry = json!([[HANDSET, NUMBER, "keyword"]]);
    assert_eq!(listed(&service, &service.token), entry);
    wait_for("the list in memory", || {
        (code(&service) == 27).then_some(())
    });

    write(&service, NUMBER, "start");
    wait_for("messages again", || (code(&service) == 0).then_some(()));
    wait_for("the reply to START", || {
        let texts = received(&service, NUMBER);
        let is_there = texts.iter().any(|text| text.contains("Reply STOP"));
        is_there.then_some(())
    });
    assert_eq!(listed(&service, &service.token), json!([]));

    // The account gets these messages like any other.
    let inbox = service.get("/sms/inbox").json();
    let texts = inbox.as_array().expect("a list").iter();
    let texts: Vec<&str> = texts.filter_map(|it| it["message"].as_str()).collect();
    assert_eq!(texts, ["start", " stop. ", "START"]);
    // Replies are free, and lists show them like other messages.
    let messages = service.get("/messages?limit=100").json();
    let replies = messages.as_array().expect("a list").iter();
    let replies: Vec<&Value> = replies
        .filter(|message| message["from"] == NUMBER && message["price"] == "0.00")
        .collect();
    assert!(replies.len() >= 2, "{messages}");
}

fn stop_on_a_shared_number_is_for_all_or_for_one_keyword(backend: Backend) {
    let service = start(backend);
    let (news, club) = (
        service.create_account("news"),
        service.create_account("club"),
    );
    own(&service, "news", "1234", Some("news"));
    own(&service, "club", "1234", Some("club"));
    let entry = json!([[HANDSET, "1234", "keyword"]]);
    write(&service, "1234", "Stop NEWS");
    assert_eq!(listed(&service, &news), entry);
    assert_eq!(listed(&service, &club), json!([]));
    write(&service, "1234", "opt out");
    assert_eq!(listed(&service, &club), entry);
    assert_eq!(listed(&service, &service.token), json!([]));
    write(&service, "1234", "start");
    assert_eq!(listed(&service, &news), json!([]));
    assert_eq!(listed(&service, &club), json!([]));
    assert_eq!(newest(&service, "1234", 3).matches("STOP").count(), 1);
    // Nobody owns this number.
    write(&service, "5678", "STOP");
    for token in [&news, &club, &service.token] {
        assert_eq!(listed(&service, token), json!([]));
    }
}

fn each_account_has_its_replies(backend: Backend) {
    let service = start(backend);
    let set = |changes: &[&str]| run(&service, &[&["account", "set", "main"], changes].concat());
    write(&service, NUMBER, "ΒΟΉΘΕΙΑ");
    assert!(newest(&service, NUMBER, 1).contains("Απαντήστε STOP"));
    write(&service, NUMBER, "lopeta");
    assert!(newest(&service, NUMBER, 2).contains("Reply START"));
    set(&[
        "stop_reply=Goodbye",
        "stop_reply.fr=Au revoir",
        "help_reply=",
    ]);
    write(&service, NUMBER, "help");
    write(&service, NUMBER, "stop");
    assert_eq!(newest(&service, NUMBER, 3), "Goodbye");
    write(&service, NUMBER, "Arrêt");
    assert_eq!(newest(&service, NUMBER, 4), "Au revoir");
    set(&["stop_reply.fr=default", "help_reply=default"]);
    write(&service, NUMBER, "arret");
    assert_eq!(newest(&service, NUMBER, 5), "Goodbye");
    write(&service, NUMBER, "info");
    assert!(newest(&service, NUMBER, 6).contains("Reply STOP"));
    for (change, part) in [
        ("stop_reply.xx=Text", "'xx'"),
        ("stop_replies=Text", "stop_replies"),
    ] {
        let refused = service.server.cli(&["account", "set", "main", change]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && stderr.contains(part),
            "{stderr}"
        );
    }
}
