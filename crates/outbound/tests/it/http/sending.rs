//! Requests to the provider, and the effect of its answers on the message and the carrier.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use domain::{Channel, Code};
use serde_json::json;
use testkit::receiver::Reply;

use super::fixture::{Fixture, SECRET, request};
use crate::upstream::fixture::{queued, wait_for};

fn taken() -> CarrierAnswer {
    CarrierAnswer::Taken(vec!["@7".to_owned()])
}

fn with_header(status: u16, header: &str) -> Reply {
    Reply::raw(format!(
        "HTTP/1.1 {status} Scripted\r\n{header}\r\ncontent-length: 0\r\n\r\n"
    ))
}

#[tokio::test]
async fn a_message_is_sent_as_described() {
    let fixture = Fixture::answering(Reply::answer(201, r#"{"id":"SM1"}"#));
    assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken());
    let request = fixture.posted().pop().expect("a request");
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/send")
    );
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = request.json();
    let report = body["callback"].as_str().expect("a URL");
    assert!(
        report.starts_with("https://sms.example/carriers/beta/reports/7/"),
        "{report}"
    );
    assert!(!report.contains(SECRET));
    let expected = json!({
        "to": "+37120000001", "from": "Acme", "text": "Hello", "callback": report, "ref": "7", "ttl": 259_200,
    });
    assert_eq!(body, expected);
    assert_eq!(fixture.carrier.health(), Health::Up);
}

#[tokio::test]
async fn each_answer_has_its_effect_on_the_message_and_the_carrier() {
    let denied = "the provider answers 401; check the carrier's secret";
    for (name, reply, submitted, health, note) in [
        ("no ID", Reply::answer(200, "{}"), taken(), Health::Up, None),
        (
            "nonsense",
            Reply::answer(200, "<html>\u{0}"),
            taken(),
            Health::Up,
            None,
        ),
        (
            "too long",
            Reply::answer(200, "x".repeat(100_000)),
            taken(),
            Health::Up,
            None,
        ),
        (
            "refused",
            Reply::answer(400, r#"{"code":17}"#),
            CarrierAnswer::Declined(Code::new(53).expect("a code")),
            Health::Up,
            None,
        ),
        (
            "refused for another reason",
            Reply::answer(422, "nonsense"),
            CarrierAnswer::Declined(Code::SYSTEM_FAILURE),
            Health::Up,
            None,
        ),
        (
            "a wrong secret",
            Reply::answer(401, ""),
            CarrierAnswer::NotNow(Code::LINK_DOWN),
            Health::Down,
            Some(denied),
        ),
        (
            "throttling",
            with_header(429, "Retry-After: 120"),
            CarrierAnswer::NotNow(Code::THROTTLED),
            Health::Strained,
            Some("the provider asks for a pause of 120 s"),
        ),
        (
            "a failure with a pause",
            with_header(503, "Retry-After: 120"),
            CarrierAnswer::NotNow(Code::LINK_DOWN),
            Health::Strained,
            Some("the provider asks for a pause of 120 s"),
        ),
        (
            "a failure",
            Reply::answer(500, ""),
            CarrierAnswer::NotNow(Code::LINK_DOWN),
            Health::Up,
            None,
        ),
        (
            "closed",
            Reply::close(),
            CarrierAnswer::Unknown,
            Health::Up,
            None,
        ),
        (
            "no HTTP",
            Reply::raw("SSH-2.0\r\n\r\n").then_close(),
            CarrierAnswer::Unknown,
            Health::Up,
            None,
        ),
        (
            "broken off",
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").then_close(),
            CarrierAnswer::Unknown,
            Health::Up,
            None,
        ),
    ] {
        let fixture = Fixture::answering(reply);
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            submitted,
            "{name}"
        );
        assert_eq!(fixture.carrier.health(), health, "{name}");
        assert_eq!(fixture.note().as_deref(), note, "{name}");
        assert_eq!(fixture.posted().len(), 1, "{name}: it is sent once");
    }
}

#[tokio::test]
async fn a_message_without_an_answer_is_repeated_as_often_as_configured() {
    let fixture = Fixture::with(|_| Reply::close(), |settings| settings.unknown_tries = 3);
    let mut queued = queued(Channel::Sms);
    for (tries, expected) in [
        (0, CarrierAnswer::Unknown),
        (1, CarrierAnswer::Unknown),
        (2, taken()),
    ] {
        queued.unknown_tries = tries;
        assert_eq!(fixture.submit(&queued).await, expected, "{tries}");
    }
    let posted = fixture.posted();
    assert_eq!(posted[0].json(), posted[2].json(), "with the same content");
}

#[tokio::test]
async fn a_refused_repetition_says_nothing_about_the_first_request() {
    let fixture = Fixture::with(
        |_| Reply::answer(400, ""),
        |settings| settings.unknown_tries = 3,
    );
    let mut queued = queued(Channel::Sms);
    for (tries, expected) in [
        (0, CarrierAnswer::Declined(Code::SYSTEM_FAILURE)),
        (1, CarrierAnswer::Unknown),
        (2, taken()),
    ] {
        queued.unknown_tries = tries;
        assert_eq!(fixture.submit(&queued).await, expected, "{tries}");
    }
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_not_unknown() {
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = free.local_addr().expect("bound");
    drop(free);
    let closed = request(&format!("http://{address}/send"));
    let fixture = Fixture::with(|_| Reply::ok(), |settings| settings.request = closed);
    for _ in 0..3 {
        let submitted = fixture.submit(&queued(Channel::Sms)).await;
        assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
    }
    assert_eq!(fixture.carrier.health(), Health::Down);
    let note = "the provider cannot be reached: refused the connection";
    assert_eq!(fixture.note().as_deref(), Some(note));

    // Connections wait in the backlog, and nobody answers, so TLS is never ready.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = silent.local_addr().expect("bound");
    let silent_request = request(&format!("https://{address}/send"));
    let fixture = Fixture::with(
        |_| Reply::ok(),
        |settings| {
            settings.request = silent_request;
            settings.timeout = Duration::from_millis(300);
        },
    );
    let submitted = fixture.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
}

#[tokio::test]
async fn a_slow_provider_times_out_and_is_down_after_three_messages() {
    let limit = Duration::from_secs(1);
    let fixture = Fixture::with(|_| Reply::hang(), |settings| settings.timeout = limit);
    for _ in 0..3 {
        let started = Instant::now();
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            CarrierAnswer::Unknown
        );
        assert!(started.elapsed() >= limit);
    }
    assert_eq!(fixture.carrier.health(), Health::Down);
    let note = fixture.note();
    assert_eq!(
        note.as_deref(),
        Some("the provider did not answer within 1 s")
    );
    let submitted = fixture.submit(&queued(Channel::Sms)).await;
    assert_eq!(
        submitted,
        CarrierAnswer::NotNow(Code::LINK_DOWN),
        "it is not sent"
    );
}

#[tokio::test]
async fn a_provider_that_denied_us_is_tried_again() {
    let is_known = Arc::new(AtomicBool::new(false));
    let known = is_known.clone();
    let fixture = Fixture::start(move |_| {
        let status = if known.load(Ordering::Relaxed) {
            200
        } else {
            403
        };
        Reply::answer(status, "{}")
    });
    let submitted = fixture.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
    assert_eq!(fixture.carrier.health(), Health::Down);
    is_known.store(true, Ordering::Relaxed);
    wait_for("a trial", || fixture.carrier.health() != Health::Down).await;
    assert_eq!(fixture.carrier.health(), Health::Strained);
    assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken());
    assert_eq!(fixture.carrier.health(), Health::Up);
}

#[tokio::test]
async fn a_short_pause_is_waited_for_and_a_long_one_is_not() {
    for (seconds, second, posts) in [
        ("60", CarrierAnswer::NotNow(Code::THROTTLED), 1),
        ("1", taken(), 2),
    ] {
        let attempts = AtomicUsize::new(0);
        let pause = format!("retry-after: {seconds}");
        let fixture = Fixture::start(move |_| match attempts.fetch_add(1, Ordering::Relaxed) {
            0 => with_header(429, &pause),
            _ => Reply::answer(200, "{}"),
        });
        let first = fixture.submit(&queued(Channel::Sms)).await;
        assert_eq!(first, CarrierAnswer::NotNow(Code::THROTTLED));
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            second,
            "{seconds} s"
        );
        assert_eq!(fixture.posted().len(), posts, "{seconds} s");
    }
}

#[tokio::test]
async fn what_the_request_cannot_carry_is_not_sent() {
    let fixture = Fixture::answering(Reply::answer(200, "{}"));
    let mut with_header = queued(Channel::Sms);
    with_header.udh = "%05%00%03%01%02%01".parse().ok();
    let submitted = fixture.submit(&with_header).await;
    assert_eq!(submitted, CarrierAnswer::Declined(Code::NO_ROUTE));
    let mut expired = queued(Channel::Sms);
    expired.expires_at = crate::setup::now();
    let submitted = fixture.submit(&expired).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::THROTTLED));
    assert!(fixture.posted().is_empty());
}

#[tokio::test]
async fn the_agreed_rate_is_not_exceeded() {
    let fixture = Fixture::with(
        |_| Reply::answer(200, "{}"),
        |settings| settings.max_per_second = Some(20),
    );
    let started = Instant::now();
    for _ in 0..5 {
        assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken());
    }
    assert!(started.elapsed() >= Duration::from_millis(200));
}
