//! `Idempotency-Key`: a repeated request is harmless.

use std::thread;

use serde_json::json;
use testkit::Backend;
use testkit::http::Response;

use super::service::{Service, ids, message, sms, sms_with};

const AMOUNT: &str = "x-service-amount-sent";

fn send(service: &Service, token: &str, key: &str, body: &str) -> Response {
    service.call_with(
        token,
        "POST",
        "/sms",
        &[("Idempotency-Key", key)],
        body.as_bytes(),
    )
}

/// The same key and body get the same answer; the same key with another body is refused.
fn a_repeated_request_gets_the_first_answer(backend: Backend) {
    let mut service = Service::start(backend);
    let other = service.create_account("other");
    let body =
        sms_with(&json!({"to": ["+37120000001", "+37120000002"], "message": "a".repeat(161)}))
            .to_string();
    let first = send(&service, &service.token, "key-1", &body);
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.header(AMOUNT), Some("4"));
    let same = |case: &str, response: &Response| {
        assert_eq!(
            (response.status, response.text()),
            (200, first.text()),
            "{case}"
        );
        for name in [AMOUNT, "content-type", "cache-control"] {
            assert_eq!(response.header(name), first.header(name), "{case}: {name}");
        }
    };
    same("again", &send(&service, &service.token, "key-1", &body));
    assert_eq!(service.stored(), 2, "stored once");

    for (case, changed) in [
        ("another text", sms().to_string()),
        ("one more space", format!("{body} ")),
        ("not a message", "{}".to_owned()),
        ("not JSON", "{".to_owned()),
    ] {
        let response = send(&service, &service.token, "key-1", &changed);
        assert_eq!(response.status, 409, "{case}: {}", response.text());
        assert!(message(&response).contains("Idempotency-Key"), "{case}");
    }
    assert_ne!(
        ids(&send(&service, &service.token, "key-2", &body)),
        ids(&first),
        "another key"
    );
    assert_ne!(
        ids(&send(&service, &service.token, "KEY-1", &body)),
        ids(&first),
        "keys differ by case"
    );
    assert_ne!(
        ids(&send(&service, &other, "key-1", &body)),
        ids(&first),
        "another account's key"
    );
    assert_eq!(service.stored(), 2 * 4);

    service.server.restart();
    same(
        "after a restart",
        &send(&service, &service.token, "key-1", &body),
    );
}

/// A request that was refused leaves its key free.
fn a_refused_request_does_not_use_up_its_key(backend: Backend) {
    let service = Service::start(backend);
    let refused = send(&service, &service.token, "key-1", "{}");
    assert_eq!(refused.status, 400);
    let accepted = send(&service, &service.token, "key-1", &sms().to_string());
    assert_eq!(accepted.status, 200, "{}", accepted.text());
}

/// Concurrent requests with one key and body are one message; those with other bodies are refused.
fn concurrent_requests_with_one_key_are_one_message(backend: Backend) {
    let service = Service::start(backend);
    let body = sms().to_string();
    let answers: Vec<Response> = thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| send(&service, &service.token, "key-1", &body)))
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("an answer"))
            .collect()
    });
    for answer in &answers {
        assert_eq!((answer.status, answer.text()), (200, answers[0].text()));
        assert_eq!(answer.header(AMOUNT), Some("1"));
    }
    assert_eq!(service.stored(), 1);

    let bodies: Vec<String> = (0..20)
        .map(|n| sms_with(&json!({ "message": format!("Hello {n}") })).to_string())
        .collect();
    let statuses: Vec<u16> = thread::scope(|scope| {
        let service = &service;
        let callers: Vec<_> = bodies
            .iter()
            .map(|body| scope.spawn(move || send(service, &service.token, "key-2", body).status))
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("an answer"))
            .collect()
    });
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(200), count(409)), (1, 19), "{statuses:?}");
    assert_eq!(service.stored(), 2);
}

on_both_backends!(
    a_repeated_request_gets_the_first_answer,
    a_refused_request_does_not_use_up_its_key,
    concurrent_requests_with_one_key_are_one_message,
);

#[test]
fn a_key_is_1_to_255_visible_characters() {
    let service = Service::start(Backend::Sqlite);
    let body = sms().to_string();
    let longest = "k".repeat(255);
    let too_long = "k".repeat(256);
    let cases = [
        ("one character", "k", 200),
        (
            "every kind",
            "0f8fad5b-d9cd-469f-a165-70867728950e/!\"~",
            200,
        ),
        ("the longest", &longest, 200),
        ("too long", &too_long, 400),
        ("empty", "", 400),
        ("a space", "a b", 400),
        ("not ASCII", "schlüssel", 400),
    ];
    for (case, key, status) in cases {
        let response = send(&service, &service.token, key, &body);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        if status == 400 {
            assert!(
                message(&response).contains("Idempotency-Key must have 1 to 255"),
                "{case}"
            );
        }
    }
    assert_eq!(service.stored(), 3);
}
