//! Requests that stop halfway, and callers that send more than is read.

use testkit::Backend;
use testkit::http::encode;

use super::bad_http::{open, post};
use super::service::{Service, message};

/// A service that waits at most a second for a request.
fn start_with_short_timeouts() -> Service {
    Service::with(Backend::Sqlite, |server| {
        server
            .env("SWITCHBOARD_LIMITS__HEADER_SECONDS", "1")
            .env("SWITCHBOARD_LIMITS__BODY_SECONDS", "1")
    })
}

/// How a request stops.
#[derive(Clone, Copy)]
enum Stop {
    /// Nothing more comes for now.
    Pause,
    /// The sender says that nothing more will come.
    End,
}

const HALF_HEAD: &str = "POST /sms HTTP/1.1\r\nHost: x\r\nContent-";

#[test]
fn an_incomplete_request_is_told_what_is_missing() {
    use Stop::{End, Pause};
    let service = start_with_short_timeouts();
    let head = HALF_HEAD.to_owned();
    let no_body = post(&service, "Content-Length: 100\r\n", "");
    let body = format!("{no_body}{{\"to\":");
    let chunk = post(&service, "Transfer-Encoding: chunked\r\n", "64\r\n{\"to\":");
    let late_head = "headers did not arrive within 1 s";
    let late_body = "body did not arrive within 1 s";
    let cases = [
        ("a head, then a pause", &head, Pause, late_head),
        ("no body, then a pause", &no_body, Pause, late_body),
        ("a body, then a pause", &body, Pause, late_body),
        ("a chunk, then a pause", &chunk, Pause, late_body),
        ("a head, then the end", &head, End, "ended before"),
        ("no body, then the end", &no_body, End, "ended before"),
        ("a body, then the end", &body, End, "ended before"),
        ("a chunk, then the end", &chunk, End, "ended before"),
    ];
    for (case, request, stop, fragment) in cases {
        let mut connection = open(&service);
        connection.send(request.as_bytes()).expect(case);
        if let End = stop {
            connection.finish_sending().expect(case);
        }
        let response = connection.read_response().expect(case);
        assert_eq!(response.status, 400, "{case}");
        let text = message(&response);
        assert!(text.contains(fragment), "{case}: {text}");
        assert_eq!(response.header("cache-control"), Some("no-cache"), "{case}");
        let rest = connection.read_to_close().expect(case);
        assert!(rest.is_empty(), "{case}: then it is closed");
    }
    assert_eq!(service.stored(), 0);
    service.check_health();
}

#[test]
fn a_connection_that_pauses_between_requests_is_closed_cleanly() {
    let service = start_with_short_timeouts();
    let headers = [("X-Service-Token", service.token.as_str())];
    let whole = encode(service.server.addr(), "GET", "/token", &headers, b"");

    let mut second_half = open(&service);
    second_half.send(&whole).expect("a whole one");
    second_half.send(HALF_HEAD.as_bytes()).expect("and a half");
    assert_eq!(second_half.read_response().expect("first").status, 200);
    assert_eq!(second_half.read_response().expect("second").status, 400);

    let mut ended = open(&service);
    ended.send(&whole).expect("a whole one");
    ended.finish_sending().expect("and no more");
    let response = ended.read_response().expect("an answer");
    assert_eq!(response.status, 200);

    let mut idle = open(&service);
    let sent = idle.read_to_close().expect("closed");
    assert!(sent.is_empty(), "there was no request");
}

#[test]
fn the_sender_of_a_large_body_can_read_the_refusal() {
    let service = Service::start(Backend::Sqlite);
    let body = " ".repeat(8 << 20);
    let length = format!("Content-Length: {}\r\n", body.len());
    let request = post(&service, &length, &body);
    let cases = [
        ("too large", request.clone(), 400),
        ("a wrong token", request.replacen("sb_", "xx_", 1), 401),
        ("no such address", request.replacen("/sms", "/mms", 1), 404),
        ("a wrong method", request.replacen("POST", "PUT", 1), 405),
        ("no JSON", request.replacen("/json", "/text", 1), 400),
    ];
    for (case, request, status) in cases {
        let mut connection = open(&service);
        connection.send(request.as_bytes()).expect(case);
        let response = connection.read_response().expect(case);
        assert_eq!(response.status, status, "{case}: {}", response.text());
    }
    service.check_health();
}
