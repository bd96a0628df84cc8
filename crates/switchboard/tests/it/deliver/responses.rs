//! Which responses of a receiver count as received, how the others are retried, and what is recorded about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, StallMonitor, TEST_TIMEOUT};

use super::fixture::{attempts, callbacks, send, start};
use crate::rest::service::{Service, wait_for};

/// The first pause is five seconds, spread by a fifth.
const SHORTEST_PAUSE: Duration = Duration::from_secs(4);
const LONGEST_PAUSE: Duration = Duration::from_secs(6);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// What a busy machine may add, besides its stalls.
const SLACK: Duration = Duration::from_secs(4);

/// An answer of the receiver, and what must be recorded.
struct Case {
    name: &'static str,
    answer: Reply,
    status: Option<u16>,
    body: String,
    reason: &'static str,
    /// How long the attempt takes.
    takes: Duration,
}

fn case(name: &'static str, answer: Reply, status: u16, body: &str, reason: &'static str) -> Case {
    Case {
        name,
        answer,
        status: Some(status),
        body: body.to_owned(),
        reason,
        takes: Duration::ZERO,
    }
}

/// A plain answer with this status and body.
fn plain(name: &'static str, status: u16, body: &str, reason: &'static str) -> Case {
    case(name, Reply::answer(status, body), status, body, reason)
}

/// No HTTP answer.
fn no_answer(name: &'static str, answer: Reply, reason: &'static str) -> Case {
    Case {
        status: None,
        ..case(name, answer, 0, "", reason)
    }
}

impl Case {
    fn takes(mut self, time: Duration) -> Self {
        self.takes = time;
        self
    }
}

/// Answers that count as received.
fn received_answers() -> Vec<Case> {
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n";
    let old = Reply::raw("HTTP/1.0 200 Fine\r\n\r\nOK").then_close();
    let slow = Reply::ok().after(Duration::from_secs(1));
    let padded = format!("OK{}", " ".repeat(1022));
    vec![
        plain("exactly", 200, "OK", "received"),
        plain("with white space", 200, " \r\n\tOK \n", "received"),
        plain("of 1 KiB", 200, &padded, "received"),
        case("in chunks", Reply::raw(chunks), 200, "OK", "received"),
        case("to the end of the connection", old, 200, "OK", "received"),
        case("slowly", slow, 200, "OK", "received"),
    ]
}

/// Complete answers that do not count as received.
fn other_answers(elsewhere: &Receiver) -> Vec<Case> {
    let redirect = Reply::raw(format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 2\r\n\r\nOK",
        elsewhere.url("/")
    ));
    let redirected = "redirected to another address (302); redirects are not followed";
    let empty = Reply::raw("HTTP/1.1 204 No Content\r\n\r\n");
    let no_content = "answered 204; only 200 with the body 'OK' counts";
    let created = "answered 201; only 200 with the body 'OK' counts";
    vec![
        plain("in small letters", 200, "ok", "200, but the body was 'ok'"),
        plain("more", 200, "OKAY", "200, but the body was 'OKAY'"),
        plain("quoted", 200, "\"OK\"", "200, but the body was '\"OK\"'"),
        plain("empty", 200, "", "200, but the body was empty"),
        plain("created", 201, "OK", created),
        case("no content", empty, 204, "", no_content),
        case("redirect", redirect, 302, "OK", redirected),
        plain("not found", 404, "OK", "answered 404"),
        plain("error", 500, "oops", "answered 500"),
    ]
}

/// Incomplete answers, and none at all.
fn incomplete_answers() -> Vec<Case> {
    let endless = Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nOK");
    let broken = endless.clone().then_close();
    let (broke_off, did_not_end) = (
        "200, but the body broke off",
        "200, but the body did not end within 10 s",
    );
    let padded = format!("OK{}", " ".repeat(2000));
    let long = Reply::answer(200, &padded);
    let too_long = "200, but the body was longer than 1 KiB";
    let greeting = Reply::raw("220 hello\r\n").then_close();
    let closed = "closed the connection without an answer";
    vec![
        case("too long", long, 200, &padded[..1024], too_long),
        case("breaks off", broken, 200, "OK", broke_off),
        no_answer("hangs up", Reply::close(), closed),
        no_answer("speaks no HTTP", greeting, "the answer is not HTTP"),
        no_answer("hangs", Reply::hang(), "did not answer within 10 s").takes(ATTEMPT_TIMEOUT),
        case("never ends", endless, 200, "OK", did_not_end).takes(ATTEMPT_TIMEOUT),
    ]
}

/// A receiver that gives this answer first and `OK` from then on. It has its own host, so that no other case makes the
/// service pause it.
fn receiver(number: usize, answer: Reply) -> Receiver {
    let first = Arc::new(AtomicBool::new(true));
    Receiver::builder()
        .bind(format!("127.0.2.{number}:0"))
        .script(move |_| {
            if first.swap(false, Ordering::Relaxed) {
                answer.clone()
            } else {
                Reply::ok()
            }
        })
        .start()
}

/// Waits until the callback to a receiver is received, and returns it.
fn received_callback(service: &Service, receiver: &Receiver) -> Value {
    let url = receiver.url("/");
    wait_for("the end of a callback", || {
        let list = callbacks(service, &["--all", "--url", &url]);
        assert_eq!(list.len(), 1, "{list:?}");
        list.into_iter().find(|one| one["state"] == "received")
    })
}

fn check_first_attempt(service: &Service, receiver: &Receiver, case: &Case, count: usize) {
    let callback = received_callback(service, receiver);
    let log = attempts(service, &callback);
    let describe = || format!("{}: {log:?}", case.name);
    assert_eq!(
        (log.len(), &callback["tries"]),
        (count, &json!(count)),
        "{}",
        describe()
    );
    assert_eq!(callback["last"], log[count - 1], "{}", describe());
    let first = &log[0];
    assert_eq!(
        (&first["status"], &first["body"], &first["reason"]),
        (&json!(case.status), &json!(case.body), &json!(case.reason)),
        "{}",
        case.name
    );
    assert_eq!(
        first["address"],
        json!(receiver.addr().to_string()),
        "{}",
        describe()
    );
    let elapsed = Duration::from_millis(first["elapsedMs"].as_u64().expect("a time"));
    // The attempt began a little before its request arrived.
    let at = receiver.received()[0].at;
    let began = at.checked_sub(SLACK).unwrap_or(at);
    let stalled = StallMonitor::start().stalled(began, at + elapsed);
    assert!(
        (case.takes..case.takes + SLACK + stalled).contains(&elapsed),
        "{}; stalled for {stalled:?}",
        describe()
    );
}

/// Checks the time between the end of the first attempt and the second one.
fn check_pause(receiver: &Receiver, case: &Case) {
    assert!(
        receiver.wait_for(2, TEST_TIMEOUT),
        "{}: not retried",
        case.name
    );
    let attempts = receiver.received();
    let pause = (attempts[1].at - attempts[0].at).saturating_sub(case.takes);
    let stalled = StallMonitor::start().stalled(attempts[0].at, attempts[1].at);
    assert!(
        (SHORTEST_PAUSE..LONGEST_PAUSE + SLACK + stalled).contains(&pause),
        "{}: {pause:?}; stalled for {stalled:?}",
        case.name
    );
    let same = |name: &str| attempts[0].header(name) == attempts[1].header(name);
    assert!(same("webhook-id"), "{}: a different callback", case.name);
    assert_eq!(attempts[0].text(), attempts[1].text(), "{}", case.name);
}

#[test]
fn only_200_with_ok_counts_and_anything_else_is_retried() {
    StallMonitor::start();
    let service = start(Backend::Sqlite);
    let elsewhere = Receiver::start();
    let received_at_once = received_answers().into_iter().map(|case| (case, 1));
    let not_received = other_answers(&elsewhere)
        .into_iter()
        .chain(incomplete_answers());
    let retried = not_received.map(|case| (case, 2));
    let cases: Vec<(Receiver, Case, usize)> = (1..)
        .zip(received_at_once.chain(retried))
        .map(|(number, (case, count))| (receiver(number, case.answer.clone()), case, count))
        .collect();
    for (receiver, _, _) in &cases {
        send(&service, &receiver.url("/"));
    }
    for (receiver, case, _) in cases.iter().filter(|(_, _, count)| *count == 2) {
        check_pause(receiver, case);
    }
    for (receiver, case, count) in &cases {
        check_first_attempt(&service, receiver, case, *count);
        assert_eq!(receiver.count(), *count, "{}", case.name);
    }
    assert_eq!(elsewhere.count(), 0, "a redirect was followed");
    service.check_health();
}
