//! Requests to the upstream, and the effect of its answers on the message and the carrier.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use domain::{Channel, Code};
use outbound::Upstream;
use testkit::receiver::{ReceivedRequest, Reply};

use super::fixture::{
    FixedClock, Fixture, RecordingSink, TOKEN, id, queued, second_attempt, settings, wait_for,
    with_healthy_probes,
};

fn taken(names: &[&str]) -> CarrierAnswer {
    CarrierAnswer::Taken(names.iter().map(ToString::to_string).collect())
}

/// An answer with a header.
fn with_header(status: u16, header: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::raw(format!(
        "HTTP/1.1 {status} Scripted\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

fn key(request: &ReceivedRequest) -> &str {
    request.header("idempotency-key").expect("a key")
}

#[tokio::test]
async fn messages_of_every_channel_are_sent() {
    let fixture = Fixture::answering(Reply::answer(200, r#"["10001"]"#)).await;
    for (channel, path, field) in [
        (Channel::Sms, "/api/sms", "dlrUrl"),
        (Channel::Viber, "/api/viber", "dlrUrl"),
        (Channel::Hlr, "/api/hlr", "callBackUrl"),
    ] {
        let submitted = fixture.submit(&queued(channel)).await;
        assert_eq!(submitted, taken(&["10001"]), "{channel}");
        let request = fixture.posted().pop().expect("a request");
        assert_eq!(request.path, path);
        assert_eq!(request.header("x-service-token"), Some(TOKEN));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept"), Some("application/json"));
        assert!(key(&request).starts_with("up-7-"), "{}", key(&request));
        let body = request.json();
        let report = body[field].as_str().expect("an address");
        let start = "https://sms.example/carriers/up/reports/7/";
        assert!(report.starts_with(start), "{report}");
        assert!(!request.text().contains(TOKEN));
    }
    assert_eq!(fixture.upstream.health(), Health::Up);
    let state = fixture.upstream.state();
    assert_eq!((state.links_up, state.links, state.note), (0, 0, None));
}

#[tokio::test]
async fn each_answer_has_its_effect_on_the_message_and_the_carrier() {
    let message = |text: &str| format!(r#"{{"message":"{text}"}}"#);
    for (name, reply, submitted, health, note) in [
        (
            "one reference for each part",
            Reply::answer(200, r#"["1","2","3"]"#),
            taken(&["1", "2", "3"]),
            Health::Up,
            None,
        ),
        (
            "400",
            Reply::answer(400, message("No price.")),
            CarrierAnswer::Declined(Code::NO_ROUTE),
            Health::Up,
            None,
        ),
        (
            "401",
            Reply::answer(401, message("Unknown.")),
            CarrierAnswer::NotNow(Code::LINK_DOWN),
            Health::Down,
            Some("the upstream refuses the token; check carrier.token"),
        ),
        (
            "403",
            Reply::answer(403, message("Not to +37120000001: top up.")),
            CarrierAnswer::NotNow(Code::ROUTE_DOWN),
            Health::Strained,
            Some("the upstream answers 403: Not to +371…: top up."),
        ),
        (
            "404",
            Reply::answer(404, ""),
            CarrierAnswer::NotNow(Code::ROUTE_DOWN),
            Health::Strained,
            Some("the upstream answers 404"),
        ),
        (
            "409 at the first attempt",
            Reply::answer(409, message("Conflict.")),
            CarrierAnswer::Declined(Code::NO_ROUTE),
            Health::Up,
            None,
        ),
        (
            "429",
            with_header(429, "Retry-After: 120", ""),
            CarrierAnswer::NotNow(Code::THROTTLED),
            Health::Strained,
            Some("the upstream asks for a pause of 120 s"),
        ),
    ] {
        let fixture = Fixture::answering(reply).await;
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            submitted,
            "{name}"
        );
        let state = fixture.upstream.state();
        assert_eq!(
            (state.health, state.note.as_deref()),
            (health, note),
            "{name}"
        );
        assert_eq!(fixture.upstream.health(), health, "{name}");
    }
}

#[tokio::test]
async fn a_single_failure_does_not_take_the_upstream_down() {
    let not_taken = CarrierAnswer::NotNow(Code::LINK_DOWN);
    let unknown = CarrierAnswer::Unknown;
    for (name, reply, expected) in [
        (
            "500",
            Reply::answer(500, r#"{"message":"Failed."}"#),
            &not_taken,
        ),
        ("501", Reply::answer(501, ""), &not_taken),
        ("503", Reply::answer(503, ""), &not_taken),
        ("an answer of a proxy", Reply::answer(504, ""), &unknown),
        ("no list", Reply::answer(200, "<html>"), &unknown),
        (
            "an endless list",
            Reply::answer(200, "1".repeat(20_000)),
            &unknown,
        ),
        (
            "a body that breaks off",
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[").then_close(),
            &unknown,
        ),
        (
            "not HTTP",
            Reply::raw("hello\r\n\r\n").then_close(),
            &unknown,
        ),
        ("no answer", Reply::close(), &unknown),
    ] {
        let fixture = Fixture::answering(reply).await;
        for health in [Health::Up, Health::Up, Health::Down] {
            let submitted = fixture.submit(&queued(Channel::Sms)).await;
            assert_eq!(submitted, *expected, "{name}");
            assert_eq!(fixture.upstream.health(), health, "{name}");
        }
        assert!(fixture.note().is_some(), "{name}");
    }
}

#[tokio::test]
async fn an_attempt_whose_answer_was_lost_is_repeated_under_the_same_key() {
    // Accepts the message and closes the connection within its answer; then it knows the key.
    let attempts = AtomicUsize::new(0);
    let fixture = Fixture::start(with_healthy_probes(move |_| {
        match attempts.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[").then_close(),
            _ => Reply::answer(200, r#"["10001"]"#),
        }
    }))
    .await;
    let first = fixture.submit(&queued(Channel::Sms)).await;
    assert_eq!(first, CarrierAnswer::Unknown);
    assert_eq!(fixture.submit(&second_attempt()).await, taken(&["10001"]));
    let posted = fixture.posted();
    assert_eq!(posted.len(), 2);
    assert_eq!(key(&posted[0]), key(&posted[1]));
    assert_eq!(posted[0].text(), posted[1].text());
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_no_attempt() {
    // Closes at the second message of each connection.
    let fixture = Fixture::start(with_healthy_probes(|request| match request.number {
        0 => Reply::answer(200, r#"["10001"]"#),
        _ => Reply::close(),
    }))
    .await;
    for _ in 0..5 {
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            taken(&["10001"])
        );
    }
    assert!(fixture.posted().len() > 5, "at least one was sent again");
}

#[tokio::test]
async fn a_repetition_that_conflicts_was_accepted_before() {
    let fixture = Fixture::answering(Reply::answer(409, "{}")).await;
    assert_eq!(fixture.submit(&second_attempt()).await, taken(&["@7"]));
    assert_eq!(fixture.upstream.health(), Health::Up);
}

#[tokio::test]
async fn a_hanging_upstream_times_out() {
    let limit = Duration::from_secs(1);
    let script = with_healthy_probes(|_| Reply::hang());
    let fixture = Fixture::with(script, |settings| settings.timeout = limit).await;
    let (mut longest, mut unknown) = (Duration::ZERO, 0);
    for _ in 0..3 {
        let started = Instant::now();
        let submitted = fixture.submit(&queued(Channel::Sms)).await;
        unknown += usize::from(submitted == CarrierAnswer::Unknown);
        longest = longest.max(started.elapsed());
    }
    // Not each attempt: on a busy machine probes time out too, and an upstream that is down is not asked.
    assert!(longest >= limit && unknown > 0, "{longest:?}, {unknown}");
    assert_eq!(fixture.upstream.health(), Health::Down);
    let note = fixture.note();
    assert_eq!(
        note.as_deref(),
        Some("the upstream did not answer within 1 s")
    );
}

#[tokio::test]
async fn a_failing_upstream_is_not_used_until_it_is_back() {
    let works = Arc::new(AtomicBool::new(true));
    let fixture = {
        let works = works.clone();
        Fixture::start(move |request| match request.method {
            _ if !works.load(Ordering::Relaxed) => Reply::answer(503, ""),
            "GET" => Reply::answer(404, ""),
            _ => Reply::answer(200, r#"["10001"]"#),
        })
        .await
    };
    wait_for("the end of the first check", || {
        fixture.requests_to("/api/token") > 0
    })
    .await;
    assert_eq!(
        fixture.submit(&queued(Channel::Sms)).await,
        taken(&["10001"])
    );
    works.store(false, Ordering::Relaxed);
    for _ in 0..5 {
        let submitted = fixture.submit(&queued(Channel::Sms)).await;
        assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
    }
    assert_eq!(fixture.upstream.health(), Health::Down);
    assert_eq!(fixture.note().as_deref(), Some("the upstream answers 503"));
    assert_eq!(fixture.posted().len(), 4, "the last two were not sent");

    works.store(true, Ordering::Relaxed);
    fixture.wait_for_health(Health::Up).await;
    assert_eq!(
        fixture.submit(&queued(Channel::Sms)).await,
        taken(&["10001"])
    );
}

#[tokio::test]
async fn an_unreachable_upstream_is_down_from_the_start() {
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = free.local_addr().expect("bound");
    drop(free);
    let settings = settings(&format!("http://{address}"));
    let sink = Arc::new(RecordingSink::default());
    let upstream = Upstream::start(settings, sink.clone(), sink, Arc::new(FixedClock));
    wait_for("down", || upstream.health() == Health::Down).await;
    let note = upstream.state().note;
    assert_eq!(
        note.as_deref(),
        Some("the upstream cannot be reached: refused the connection")
    );
    let submitted = upstream.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
}

#[tokio::test]
async fn a_wrong_token_shows_before_the_first_message() {
    let is_known = Arc::new(AtomicBool::new(false));
    let fixture = {
        let is_known = is_known.clone();
        Fixture::start(move |request| match request.path {
            "/api/health/ready" => Reply::answer(200, "ready\n"),
            _ if !is_known.load(Ordering::Relaxed) => Reply::answer(401, ""),
            "/api/token" => Reply::answer(200, "{}"),
            _ => Reply::answer(200, r#"["10001"]"#),
        })
        .await
    };
    fixture.wait_for_health(Health::Down).await;
    let note = fixture.note().expect("a reason");
    assert_eq!(note, "the upstream refuses the token; check carrier.token");
    assert!(!note.contains(TOKEN));
    is_known.store(true, Ordering::Relaxed);
    fixture.wait_for_health(Health::Up).await;
    assert_eq!(fixture.note(), None);
    assert_eq!(
        fixture.submit(&queued(Channel::Sms)).await,
        taken(&["10001"])
    );
}

#[tokio::test]
async fn messages_wait_for_a_short_pause_and_go_elsewhere_for_a_long_one() {
    for (seconds, second, posts) in [
        ("60", CarrierAnswer::NotNow(Code::THROTTLED), 1),
        ("1", taken(&["10001"]), 2),
    ] {
        let attempts = AtomicUsize::new(0);
        let pause = format!("retry-after: {seconds}");
        let fixture = Fixture::start(with_healthy_probes(move |_| {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => with_header(429, &pause, ""),
                _ => Reply::answer(200, r#"["10001"]"#),
            }
        }))
        .await;
        let started = Instant::now();
        let first = fixture.submit(&queued(Channel::Sms)).await;
        assert_eq!(first, CarrierAnswer::NotNow(Code::THROTTLED));
        assert_eq!(fixture.upstream.health(), Health::Strained);
        assert_eq!(
            fixture.submit(&queued(Channel::Sms)).await,
            second,
            "{seconds} s"
        );
        assert_eq!(fixture.posted().len(), posts, "{seconds} s");
        let has_waited = started.elapsed() >= Duration::from_millis(900);
        assert_eq!(has_waited, posts == 2, "{seconds} s");
    }
}

#[tokio::test]
async fn the_agreed_rate_is_not_exceeded() {
    let script = with_healthy_probes(|_| Reply::answer(200, r#"["10001"]"#));
    let fixture = Fixture::with(script, |settings| settings.max_per_second = Some(20)).await;
    let started = Instant::now();
    let mut queued = queued(Channel::Sms);
    queued.shape.parts = 2;
    for _ in 0..4 {
        assert_eq!(fixture.submit(&queued).await, taken(&["10001"]));
    }
    // Three further messages of two parts each, at 50 ms a part.
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_message_that_expires_while_waiting_is_not_sent() {
    let fixture = Fixture::answering(Reply::answer(200, r#"["10001"]"#)).await;
    let mut queued = queued(Channel::Sms);
    queued.expires_at = crate::setup::now();
    let submitted = fixture.submit(&queued).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::THROTTLED));
    assert!(fixture.posted().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_kept_up_to_the_window() {
    let fixture = Arc::new(Fixture::answering(Reply::answer(200, r#"["10001"]"#)).await);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 1..=8 {
        let fixture = fixture.clone();
        tasks.spawn(async move {
            for round in 0..20 {
                let mut queued = queued(Channel::Sms);
                queued.id = id(task * 100 + round);
                assert_eq!(fixture.submit(&queued).await, taken(&["10001"]));
            }
        });
    }
    tasks.join_all().await;
    let posted = fixture.posted();
    assert_eq!(posted.len(), 160);
    let keys: std::collections::HashSet<_> = posted.iter().map(key).collect();
    assert_eq!(keys.len(), 160);
    let mut peers: Vec<_> = posted.iter().map(|one| one.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    // If a connection is not back in the pool for the next message, another one is opened.
    assert!(peers.len() <= 16, "{} connections", peers.len());
}
