//! Providers that misbehave: nothing is lost, and nothing is reported that did not happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use testkit::Backend;
use testkit::receiver::{Receiver, Reply};

use super::{
    callback, carrier, check_nothing_secret_is_logged, path, post, provider, send, start, taken,
    wait_for_request,
};
use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    a_message_survives_every_bad_provider,
    a_message_without_an_answer_goes_to_no_other_carrier,
    a_message_whose_repetition_is_refused_goes_to_no_other_carrier,
);

/// A date, which is ignored.
const RETRY_AT: &str = "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT";

fn with_header(status: u16, header: &str) -> Reply {
    Reply::raw(format!(
        "HTTP/1.1 {status} Scripted\r\n{header}\r\ncontent-length: 0\r\n\r\n"
    ))
}

/// The first answer is bad and the second one good. The message is sent again with the same content and reported once.
fn a_message_survives_every_bad_provider(backend: Backend) {
    let cases: [(&str, Reply, usize); 15] = [
        ("slow", Reply::hang(), 2),
        ("throttling", with_header(429, "Retry-After: 1"), 2),
        ("throttling by a date", with_header(429, RETRY_AT), 2),
        ("throttling without a time", Reply::answer(429, ""), 2),
        ("failing", Reply::answer(503, "nonsense"), 2),
        ("failing with a time", with_header(503, "Retry-After: 1"), 2),
        ("closing", Reply::close(), 2),
        ("no HTTP", Reply::raw("\u{0}\u{1}\r\n\r\n").then_close(), 2),
        (
            "broken off",
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").then_close(),
            2,
        ),
        // It took the message, whatever it says.
        ("nonsense", Reply::answer(200, "<html>\u{0}{{{"), 1),
        ("empty", Reply::answer(200, ""), 1),
        (
            "an ID that is a list",
            Reply::answer(200, r#"{"messages":[{"id":[1]}]}"#),
            1,
        ),
        (
            "a word instead of a list",
            Reply::answer(200, r#"{"messages":"none"}"#),
            1,
        ),
        (
            "half of it",
            Reply::answer(200, r#"{"messages":[{"id":"SM"#),
            1,
        ),
        ("endless", Reply::answer(200, "x".repeat(1_000_000)), 1),
    ];
    let receiver = Receiver::start();
    let mut config = String::new();
    let mut providers = Vec::new();
    for (index, (_, first, _)) in cases.iter().enumerate() {
        let (first, count) = (first.clone(), Arc::new(AtomicUsize::new(0)));
        let provider = provider(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            0 => first.clone(),
            _ => taken(),
        });
        let name = format!("bad{index}");
        config.push_str(&carrier(&name, &provider.url("/send"), "timeout_s = 1", ""));
        providers.push((name, provider));
    }
    for (index, (name, _)) in providers.iter().enumerate() {
        let number = format!("371200000{index:02}");
        let route = format!("[[route]]\nprefix = [\"{number}\"]\ncarriers = [\"{name}\"]\n");
        config.push_str(&route);
    }
    let service = start(backend, config);
    let ids: Vec<String> = (0..cases.len())
        .map(|index| {
            send(
                &service,
                &receiver,
                &json!({ "to": format!("+371200000{index:02}") }),
            )
        })
        .collect();
    for ((name, _, requests), (_, provider)) in cases.iter().zip(&providers) {
        let taken = wait_for(name, || {
            Some(provider.received()).filter(|taken| taken.len() >= *requests)
        });
        assert_eq!(taken.len(), *requests, "{name}");
        let (first, last) = (taken[0].json(), taken[requests - 1].json());
        assert_eq!(first, last, "{name}");
        let url = callback(&taken[requests - 1]);
        for _ in 0..2 {
            let report = json!({ "status": "delivered" });
            assert_eq!(
                post(&service, path(&service, &url), &report).status,
                200,
                "{name}"
            );
        }
    }
    let mut expected: Vec<_> = ids.into_iter().map(|id| (id, 1, 0)).collect();
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, cases.len()), expected);
    for ((name, _, requests), (_, provider)) in cases.iter().zip(&providers) {
        assert_eq!(provider.count(), *requests, "{name}");
    }
    service.check_health();
    check_nothing_secret_is_logged(&service);
}

/// Two carriers for all messages; the first one gives these answers.
fn start_with_two(
    backend: Backend,
    script: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (Service, Receiver, Receiver) {
    let count = AtomicUsize::new(0);
    let first = provider(move |_| script(count.fetch_add(1, Ordering::Relaxed)));
    let second = provider(|_| taken());
    let config = [
        carrier("first", &first.url("/send"), "timeout_s = 1", ""),
        carrier("second", &second.url("/send"), "", ""),
    ];
    (start(backend, config.concat()), first, second)
}

/// It may have taken them, so they wait for it although it is down, and other messages do not.
fn a_message_without_an_answer_goes_to_no_other_carrier(backend: Backend) {
    const MESSAGES: usize = 3;
    let is_well = Arc::new(AtomicBool::new(false));
    let (service, first, second) = start_with_two(backend, {
        let is_well = is_well.clone();
        move |number| match number {
            0..MESSAGES => Reply::hang(),
            _ if is_well.load(Ordering::Relaxed) => taken(),
            _ => Reply::answer(401, ""),
        }
    });
    let receiver = Receiver::start();
    let number = |index: usize| json!({ "to": format!("+3712000000{index}") });
    let ids = (0..MESSAGES).map(|index| send(&service, &receiver, &number(index)));
    let mut expected: Vec<_> = ids.map(|id| (id, 1, 0)).collect();
    // Denied repetitions: the carrier is down.
    wait_for_request(&first, MESSAGES + 1);
    let later = send(&service, &receiver, &number(MESSAGES));
    let url = callback(&wait_for_request(&second, 1));
    let report = json!({ "status": "delivered" });
    assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    assert_eq!(
        wait_for_reported_states(&receiver, 1),
        [(later.clone(), 1, 0)]
    );
    // A report for one of them comes before any answer.
    let sent = first.received();
    let url = callback(&sent[0]);
    assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    is_well.store(true, Ordering::Relaxed);
    for request in &sent[1..MESSAGES] {
        let url = callback(request);
        wait_for("the repetition", || {
            let all = first.received();
            let same = all.iter().filter(|one| callback(one) == url);
            (same.count() > 1).then_some(())
        });
        assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    }
    expected.push((later, 1, 0));
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, MESSAGES + 1), expected);
    assert_eq!(second.count(), 1, "only the later message");
    service.check_health();
}

/// The first request may have been taken, so the message counts as taken and waits for its report.
fn a_message_whose_repetition_is_refused_goes_to_no_other_carrier(backend: Backend) {
    let (service, first, second) = start_with_two(backend, |number| match number {
        0 => Reply::hang(),
        _ => Reply::answer(400, r#"{"code":17}"#),
    });
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({}));
    let charged = service.balance();
    let url = callback(&wait_for_request(&first, 2));
    wait_for("it counts as taken", || {
        let status = service.get(&format!("/sms/status/{id}")).json();
        (status["state"] == "sent").then_some(())
    });
    let report = json!({ "status": "delivered" });
    assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
    assert_eq!((first.count(), second.count()), (2, 0));
    assert_eq!(service.balance(), charged);
}
