//! Which answers count as received, what becomes of the others, and what is noted about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, PATIENCE, StallControl};

use super::post::{callbacks, send, start, tries};
use crate::rest::service::{Service, wait_for};

/// The first pause is five seconds, spread by a fifth.
const SHORTEST_PAUSE: Duration = Duration::from_secs(4);
const LONGEST_PAUSE: Duration = Duration::from_secs(6);
const TRY_TIME: Duration = Duration::from_secs(10);
/// What a busy machine may add, besides the time that it stood still.
const SLACK: Duration = Duration::from_secs(4);

/// An answer and what is to be noted: status, body and reason.
struct Case {
    name: &'static str,
    answer: Reply,
    status: Option<u16>,
    body: String,
    reason: &'static str,
    /// How long the try itself takes.
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

/// A case of a plain answer with this status and body.
fn whole(name: &'static str, status: u16, body: &str, reason: &'static str) -> Case {
    case(name, Reply::answer(status, body), status, body, reason)
}

/// A case in which nothing comes that could be called an answer.
fn silent(name: &'static str, answer: Reply, reason: &'static str) -> Case {
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

/// What is received.
fn counts() -> Vec<Case> {
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n";
    let old = Reply::raw("HTTP/1.0 200 Fine\r\n\r\nOK").then_close();
    let slow = Reply::ok().after(Duration::from_secs(1));
    let padded = format!("OK{}", " ".repeat(1022));
    vec![
        whole("exactly", 200, "OK", "received"),
        whole("with white space", 200, " \r\n\tOK \n", "received"),
        whole("of 1 KiB", 200, &padded, "received"),
        case("in chunks", Reply::raw(chunks), 200, "OK", "received"),
        case("to the end of the connection", old, 200, "OK", "received"),
        case("slowly", slow, 200, "OK", "received"),
    ]
}

/// Whole answers that say something else.
fn something_else(elsewhere: &Receiver) -> Vec<Case> {
    let redirect = Reply::raw(format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 2\r\n\r\nOK",
        elsewhere.url("/")
    ));
    let redirected = "redirected to another address (302); redirects are not followed";
    let empty = Reply::raw("HTTP/1.1 204 No Content\r\n\r\n");
    let no_content = "answered 204; only 200 with the body 'OK' counts";
    let created = "answered 201; only 200 with the body 'OK' counts";
    vec![
        whole("in small letters", 200, "ok", "200, but the body was 'ok'"),
        whole("more", 200, "OKAY", "200, but the body was 'OKAY'"),
        whole("quoted", 200, "\"OK\"", "200, but the body was '\"OK\"'"),
        whole("empty", 200, "", "200, but the body was empty"),
        whole("created", 201, "OK", created),
        case("no content", empty, 204, "", no_content),
        case("redirect", redirect, 302, "OK", redirected),
        whole("not found", 404, "OK", "answered 404"),
        whole("error", 500, "oops", "answered 500"),
    ]
}

/// Answers without an end, and none at all.
fn no_whole_answer() -> Vec<Case> {
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
        silent("hangs up", Reply::close(), closed),
        silent("speaks no HTTP", greeting, "the answer is not HTTP"),
        silent("hangs", Reply::hang(), "did not answer within 10 s").takes(TRY_TIME),
        case("never ends", endless, 200, "OK", did_not_end).takes(TRY_TIME),
    ]
}

/// A receiver that answers so at first and `OK` from then on; a host of its own, so that no other case makes the
/// service leave it alone.
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

/// The callback that went to a receiver, once it is received.
fn received_callback(service: &Service, receiver: &Receiver) -> Value {
    let url = receiver.url("/");
    wait_for("the end of a callback", || {
        let list = callbacks(service, &["--all", "--url", &url]);
        assert_eq!(list.len(), 1, "{list:?}");
        list.into_iter().find(|one| one["state"] == "received")
    })
}

fn check_first_try(service: &Service, receiver: &Receiver, case: &Case, count: usize) {
    let callback = received_callback(service, receiver);
    let log = tries(service, &callback);
    let shown = || format!("{}: {log:?}", case.name);
    assert_eq!(
        (log.len(), &callback["tries"]),
        (count, &json!(count)),
        "{}",
        shown()
    );
    assert_eq!(callback["last"], log[count - 1], "{}", shown());
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
        shown()
    );
    let elapsed = Duration::from_millis(first["elapsedMs"].as_u64().expect("a time"));
    // It began a little before its request was there.
    let at = receiver.received()[0].at;
    let began = at.checked_sub(SLACK).unwrap_or(at);
    let stalled = StallControl::start().stalled(began, at + elapsed);
    assert!(
        (case.takes..case.takes + SLACK + stalled).contains(&elapsed),
        "{}; stalled for {stalled:?}",
        shown()
    );
}

/// How long after the first try the second came, less what the first took.
fn check_pause(receiver: &Receiver, case: &Case) {
    assert!(
        receiver.wait_for(2, PATIENCE),
        "{}: not tried again",
        case.name
    );
    let tries = receiver.received();
    let pause = (tries[1].at - tries[0].at).saturating_sub(case.takes);
    let stalled = StallControl::start().stalled(tries[0].at, tries[1].at);
    assert!(
        (SHORTEST_PAUSE..LONGEST_PAUSE + SLACK + stalled).contains(&pause),
        "{}: {pause:?}; stalled for {stalled:?}",
        case.name
    );
    let same = |name: &str| tries[0].header(name) == tries[1].header(name);
    assert!(same("webhook-id"), "{}: another callback", case.name);
    assert_eq!(tries[0].text(), tries[1].text(), "{}", case.name);
}

#[test]
fn only_200_and_ok_count_and_all_else_is_tried_again() {
    StallControl::start();
    let service = start(Backend::Sqlite);
    let elsewhere = Receiver::start();
    let tried_once = counts().into_iter().map(|case| (case, 1));
    let not_received = something_else(&elsewhere)
        .into_iter()
        .chain(no_whole_answer());
    let tried_twice = not_received.map(|case| (case, 2));
    let cases: Vec<(Receiver, Case, usize)> = (1..)
        .zip(tried_once.chain(tried_twice))
        .map(|(number, (case, count))| (receiver(number, case.answer.clone()), case, count))
        .collect();
    for (receiver, _, _) in &cases {
        send(&service, &receiver.url("/"));
    }
    for (receiver, case, _) in cases.iter().filter(|(_, _, count)| *count == 2) {
        check_pause(receiver, case);
    }
    for (receiver, case, count) in &cases {
        check_first_try(&service, receiver, case, *count);
        assert_eq!(receiver.count(), *count, "{}", case.name);
    }
    assert_eq!(elsewhere.count(), 0, "a redirect was followed");
    service.check_health();
}
