//! Malformed HTTP requests, and unusual but valid ones.

use testkit::Backend;
use testkit::http::{Connection, encode};

use super::service::{Service, check, sms};

pub(super) fn open(service: &Service) -> Connection {
    Connection::open(service.server.addr()).expect("the server accepts")
}

/// `POST /sms` with these further header lines, each ending in CRLF, and this body.
pub(super) fn post(service: &Service, lines: &str, body: &str) -> String {
    format!(
        "POST /sms HTTP/1.1\r\nHost: x\r\nX-Service-Token: {}\r\nContent-Type: application/json\r\n{lines}\r\n{body}",
        service.token
    )
}

/// Sends each request on its own connection. Its answer has one of the statuses, and nothing is stored.
fn assert_answered(service: &Service, cases: &[(&str, String, &[u16])]) {
    for (case, request, statuses) in cases {
        let mut connection = open(service);
        connection.send(request.as_bytes()).expect(case);
        let response = connection.read_response().expect(case);
        let status = response.status;
        assert!(statuses.contains(&status), "{case}: {status}");
    }
    assert_eq!(service.stored(), 0);
    service.check_health();
}

/// A `GET` with this first line and these headers, each ending in CRLF.
fn get(line: &str, headers: &str) -> String {
    format!("{line}\r\nHost: x\r\n{headers}\r\n")
}

#[test]
fn malformed_http_is_answered() {
    let service = Service::start(Backend::Sqlite);
    let token = "GET /token HTTP/1.1";
    let cases: [(&str, String, &[u16]); 7] = [
        ("no HTTP at all", "hello\r\n\r\n".to_owned(), &[400]),
        ("a strange method", get("G{}T /sms HTTP/1.1", ""), &[400]),
        ("no method", get(" /sms HTTP/1.1", ""), &[400]),
        ("an unknown version", get("GET /token HTTP/3.0", ""), &[400]),
        ("a space inside", get("GET /to ken HTTP/1.1", ""), &[400]),
        ("a header without a colon", get(token, "Oh\r\n"), &[400]),
        ("a header with NUL", get(token, "X: a\0b\r\n"), &[400]),
    ];
    assert_answered(&service, &cases);
}

#[test]
fn a_head_beyond_the_limits_is_answered() {
    let service = Service::start(Backend::Sqlite);
    let token = "GET /token HTTP/1.1";
    let many = |count: usize| "X: y\r\n".repeat(count);
    let large = |bytes: usize| format!("X: {}\r\n", "y".repeat(bytes));
    let long = |bytes: usize| format!("GET /token?{} HTTP/1.1", "y".repeat(bytes));
    let cases: [(&str, String, &[u16]); 8] = [
        ("50 headers", get(token, &many(50)), &[401]),
        ("200 headers", get(token, &many(200)), &[431]),
        ("a header of 8 kB", get(token, &large(8_000)), &[401]),
        ("a header of 60 kB", get(token, &large(60_000)), &[431]),
        ("a header of 4 MB", get(token, &large(4_000_000)), &[431]),
        ("an address of 8 kB", get(&long(8_000), ""), &[401]),
        ("an address of 70 kB", get(&long(70_000), ""), &[414, 431]),
        ("an address of 4 MB", get(&long(4_000_000), ""), &[414, 431]),
    ];
    assert_answered(&service, &cases);
}

#[test]
fn a_body_without_clear_bounds_is_answered() {
    let service = Service::start(Backend::Sqlite);
    let length = |lines: &str| post(&service, lines, "{} ");
    let chunks = |body: &str| post(&service, "Transfer-Encoding: chunked\r\n", body);
    let two = "Content-Length: 2\r\nContent-Length: 3\r\n";
    let beyond = "Content-Length: 99999999999999999999\r\n";
    let cases: [(&str, String, &[u16]); 8] = [
        ("two lengths", length(two), &[400]),
        ("negative", length("Content-Length: -1\r\n"), &[400]),
        ("no number", length("Content-Length: few\r\n"), &[400]),
        ("beyond 2^64", length(beyond), &[400]),
        ("unknown", length("Transfer-Encoding: gzip\r\n"), &[400]),
        ("no size", chunks("zz\r\n{}\r\n0\r\n\r\n"), &[400]),
        ("a huge size", chunks("fffffffffffffffff\r\n{}"), &[400]),
        ("no end", chunks("2\r\n{}x\r\n0\r\n\r\n"), &[400]),
    ];
    assert_answered(&service, &cases);
}

#[test]
fn unusual_but_correct_http_is_served() {
    let service = Service::start(Backend::Sqlite);
    let token = &service.token;
    let body = sms().to_string();
    let chunked = format!(
        "5\r\n{}\r\n{:x};x=y\r\n{}\r\n0\r\n\r\n",
        &body[..5],
        body.len() - 5,
        &body[5..]
    );
    let cases = [
        (
            "HTTP/1.0",
            format!("GET /token HTTP/1.0\r\nX-Service-Token: {token}\r\n\r\n"),
            200,
        ),
        (
            "no Host",
            format!("GET /token HTTP/1.1\r\nX-Service-Token: {token}\r\n\r\n"),
            200,
        ),
        (
            "an absolute URL",
            format!("GET http://x/token/ HTTP/1.1\r\nHost: x\r\nX-Service-Token: {token}\r\n\r\n"),
            200,
        ),
        (
            "headers in capitals",
            format!("GET /token HTTP/1.1\r\nHOST: x\r\nX-SERVICE-TOKEN: {token}\r\n\r\n"),
            200,
        ),
        (
            "an unknown method",
            format!("BREW /token HTTP/1.1\r\nHost: x\r\nX-Service-Token: {token}\r\n\r\n"),
            405,
        ),
        (
            "chunks",
            post(&service, "Transfer-Encoding: chunked\r\n", &chunked),
            200,
        ),
        (
            "a body after 100-continue",
            post(
                &service,
                &format!("Expect: 100-continue\r\nContent-Length: {}\r\n", body.len()),
                &body,
            ),
            200,
        ),
        (
            "a token that is not ASCII",
            "GET /token HTTP/1.1\r\nHost: x\r\nX-Service-Token: \u{e9}\r\n\r\n".to_owned(),
            401,
        ),
        (
            "a path that is not UTF-8",
            format!("GET /sms/status/%ff HTTP/1.1\r\nHost: x\r\nX-Service-Token: {token}\r\n\r\n"),
            404,
        ),
    ];
    for (case, request, status) in cases {
        let mut connection = open(&service);
        connection.send(request.as_bytes()).expect(case);
        let response = connection.read_response().expect(case);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        check(case, &response);
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let service = Service::start(Backend::Sqlite);
    let body = sms().to_string();
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let mut requests = Vec::new();
    for number in 0..20 {
        let id = format!("request-{number}");
        let headers = [headers[0], headers[1], ("X-Request-Id", id.as_str())];
        requests.extend(encode(
            service.server.addr(),
            "POST",
            "/sms",
            &headers,
            body.as_bytes(),
        ));
    }
    let mut connection = open(&service);
    connection.send(&requests).expect("sent");
    for number in 0..20 {
        let response = connection.read_response().expect("an answer for each");
        assert_eq!(response.status, 200, "{number}");
        let expected = format!("request-{number}");
        assert_eq!(response.header("x-request-id"), Some(expected.as_str()));
    }
    assert_eq!(service.stored(), 20);
}
