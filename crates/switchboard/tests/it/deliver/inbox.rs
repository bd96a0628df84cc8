//! The messages that simulated handsets received.

use domain::Timestamp;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::Receiver;

use super::fixture::{send_with, start, wait_for_reports};
use crate::rest::service::{Service, in_seconds};

const NUMBER: &str = "+37120000001";

fn inbox(service: &Service, number: &str) -> Value {
    service
        .server
        .cli_json(&["simulator", "inbox", "--number", number, "--json"])
}

/// The times must be recent and in order; a test cannot know them more exactly.
fn check_times(messages: &Value) {
    let list = messages.as_array().expect("a list");
    let times: Vec<Timestamp> = list
        .iter()
        .map(|message| {
            message["at"]
                .as_str()
                .expect("text")
                .parse()
                .expect("a time")
        })
        .collect();
    assert!(
        times.is_sorted_by(|newer, older| newer >= older),
        "{times:?}"
    );
    let recent = in_seconds(-60)..=in_seconds(1);
    assert!(times.iter().all(|time| recent.contains(time)), "{times:?}");
}

/// The newest message comes first, undelivered ones are missing, and a restart changes nothing.
fn a_handset_shows_what_it_received(backend: Backend) {
    let mut service = start(backend);
    let receiver = Receiver::start();
    let sends = [
        ("delivered", json!({"to": NUMBER, "message": "first"})),
        ("refused", json!({"to": "+447700900020"})),
        ("failed", json!({"to": "+447700900043"})),
        ("emulated", json!({"to": NUMBER, "testMode": "1"})),
        ("to another number", json!({"to": "+37120000002"})),
        (
            "from a number",
            json!({"to": NUMBER, "from": 37_167_000_001_u64, "message": "zweite €"}),
        ),
    ];
    for (count, (_, fields)) in sends.iter().enumerate() {
        send_with(&service, &receiver.url("/dlr"), fields);
        wait_for_reports(&receiver, count + 1);
    }
    send_with(
        &service,
        &receiver.url("/dlr"),
        &json!({"to": "+447700900002"}),
    );

    let messages = inbox(&service, NUMBER);
    check_times(&messages);
    let expected = json!([
        {"from": "+37167000001", "to": NUMBER, "message": "zweite €", "at": messages[0]["at"]},
        {"from": "Acme", "to": NUMBER, "message": "first", "at": messages[1]["at"]},
    ]);
    assert_eq!(messages, expected);
    for (case, number, count) in [
        ("without its plus sign", "37120000001", 2),
        ("another", "+37120000002", 1),
        ("refused", "+447700900020", 0),
        ("failed", "+447700900043", 0),
        ("never reported", "+447700900002", 0),
        ("never written to", "+37120000003", 0),
    ] {
        let shown = inbox(&service, number);
        assert_eq!(
            shown.as_array().map(Vec::len),
            Some(count),
            "{case}: {shown}"
        );
    }
    service.server.restart();
    assert_eq!(inbox(&service, NUMBER), expected, "after a restart");
}

crate::rest::on_both_backends!(a_handset_shows_what_it_received);
