//! Requests that are no good HTTP, or only half of it.

use serde_json::json;
use testkit::Backend;
use testkit::http::{Connection, encode};

use super::service::{Service, check, message, sms, wait_for};

fn open(service: &Service) -> Connection {
    Connection::open(service.server.addr()).expect("the server accepts")
}

/// A request head for `POST /sms` with these further lines, each ending in CRLF, and the body behind it.
fn post(service: &Service, lines: &str, body: &str) -> String {
    format!(
        "POST /sms HTTP/1.1\r\nHost: x\r\nX-Service-Token: {}\r\nContent-Type: application/json\r\n{lines}\r\n{body}",
        service.token
    )
}

#[test]
fn what_is_no_http_is_answered() {
    let service = Service::start(Backend::Sqlite);
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let get = |line: &str, headers: &str| format!("{line}\r\nHost: x\r\n{headers}\r\n");
    let cases = [
        (
            "no HTTP at all",
            "hello, world\r\n\r\n".to_owned(),
            &[400][..],
        ),
        (
            "a method with brackets",
            get("G{}T /sms HTTP/1.1", ""),
            &[400],
        ),
        ("no method", get(" /sms HTTP/1.1", ""), &[400]),
        ("a version to come", get("GET /token HTTP/3.0", ""), &[400]),
        (
            "a space in the address",
            get("GET /to ken HTTP/1.1", ""),
            &[400],
        ),
        (
            "a header without a colon",
            get("GET /token HTTP/1.1", "Nonsense\r\n"),
            &[400],
        ),
        (
            "a header with NUL",
            get("GET /token HTTP/1.1", "X: a\0b\r\n"),
            &[400],
        ),
        ("200 headers", get("GET /token HTTP/1.1", &many), &[431]),
        (
            "a header of 60 kB",
            get(
                "GET /token HTTP/1.1",
                &format!("X: {}\r\n", "y".repeat(60_000)),
            ),
            &[431],
        ),
        (
            "a header of 1 MB",
            get(
                "GET /token HTTP/1.1",
                &format!("X: {}\r\n", "y".repeat(1_000_000)),
            ),
            &[431],
        ),
        (
            "an address of 70 kB",
            get(&format!("GET /token?{} HTTP/1.1", "y".repeat(70_000)), ""),
            &[414, 431],
        ),
        (
            "two lengths",
            post(
                &service,
                "Content-Length: 2\r\nContent-Length: 3\r\n",
                "{} ",
            ),
            &[400],
        ),
        (
            "a negative length",
            post(&service, "Content-Length: -1\r\n", ""),
            &[400],
        ),
        (
            "a length beyond 2^64",
            post(&service, "Content-Length: 99999999999999999999\r\n", ""),
            &[400],
        ),
        (
            "an unknown transfer coding",
            post(&service, "Transfer-Encoding: gzip\r\n", ""),
            &[400],
        ),
        (
            "a chunk of no size",
            post(
                &service,
                "Transfer-Encoding: chunked\r\n",
                "zz\r\n{}\r\n0\r\n\r\n",
            ),
            &[400],
        ),
        (
            "a chunk of any size",
            post(
                &service,
                "Transfer-Encoding: chunked\r\n",
                "fffffffffffffffff\r\n{}",
            ),
            &[400],
        ),
        (
            "a chunk without its end",
            post(
                &service,
                "Transfer-Encoding: chunked\r\n",
                "2\r\n{}x\r\n0\r\n\r\n",
            ),
            &[400],
        ),
    ];
    for (case, request, statuses) in cases {
        let mut connection = open(&service);
        connection.send(request.as_bytes()).expect(case);
        let response = connection.read_response().expect(case);
        assert!(
            statuses.contains(&response.status),
            "{case}: {}",
            response.status
        );
    }
    assert_eq!(service.stored(), 0);
    service.check_health();
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
            "the whole address",
            format!("GET http://x/token/ HTTP/1.1\r\nHost: x\r\nX-Service-Token: {token}\r\n\r\n"),
            200,
        ),
        (
            "headers in capitals",
            format!("GET /token HTTP/1.1\r\nHOST: x\r\nX-SERVICE-TOKEN: {token}\r\n\r\n"),
            200,
        ),
        (
            "a method of one's own",
            format!("BREW /token HTTP/1.1\r\nHost: x\r\nX-Service-Token: {token}\r\n\r\n"),
            405,
        ),
        (
            "chunks",
            post(&service, "Transfer-Encoding: chunked\r\n", &chunked),
            200,
        ),
        (
            "a body announced first",
            post(
                &service,
                &format!("Expect: 100-continue\r\nContent-Length: {}\r\n", body.len()),
                &body,
            ),
            200,
        ),
        (
            "a token that is no text",
            "GET /token HTTP/1.1\r\nHost: x\r\nX-Service-Token: \u{e9}\r\n\r\n".to_owned(),
            401,
        ),
        (
            "an address that is no text",
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

#[test]
fn half_a_request_is_told_what_is_missing() {
    let service = Service::with(Backend::Sqlite, |server| {
        server
            .env("SWITCHBOARD_LIMITS__HEADER_SECONDS", "1")
            .env("SWITCHBOARD_LIMITS__BODY_SECONDS", "1")
    });
    let whole = encode(
        service.server.addr(),
        "GET",
        "/token",
        &[("X-Service-Token", &service.token)],
        b"",
    );
    let half_head = "POST /sms HTTP/1.1\r\nHost: x\r\nContent-";
    let short = post(&service, "Content-Length: 100\r\n", "{\"to\":");
    let open_chunk = post(&service, "Transfer-Encoding: chunked\r\n", "64\r\n{\"to\":");
    let after_another = [&whole, half_head.as_bytes()].concat();
    // Either the sender pauses, or it says that nothing more will come.
    let cases: [(&str, &[u8], bool, &str); 8] = [
        (
            "a head, then a pause",
            half_head.as_bytes(),
            false,
            "headers did not arrive within 1 s",
        ),
        (
            "a body, then a pause",
            short.as_bytes(),
            false,
            "body did not arrive within 1 s",
        ),
        (
            "a chunk, then a pause",
            open_chunk.as_bytes(),
            false,
            "body did not arrive within 1 s",
        ),
        (
            "no body at all",
            &short.as_bytes()[..short.len() - 6],
            false,
            "body did not arrive within 1 s",
        ),
        (
            "a second head, then a pause",
            &after_another,
            false,
            "headers did not arrive within 1 s",
        ),
        (
            "a head, then the end",
            half_head.as_bytes(),
            true,
            "ended before",
        ),
        (
            "a body, then the end",
            short.as_bytes(),
            true,
            "ended before",
        ),
        (
            "a chunk, then the end",
            open_chunk.as_bytes(),
            true,
            "ended before",
        ),
    ];
    for (case, bytes, ends, fragment) in cases {
        let mut connection = open(&service);
        connection.send(bytes).expect(case);
        if ends {
            connection.finish_sending().expect(case);
        }
        let mut response = connection.read_response().expect(case);
        if case.starts_with("a second") {
            assert_eq!(response.status, 200, "{case}: the first");
            response = connection.read_response().expect(case);
        }
        assert_eq!(response.status, 400, "{case}: {}", response.text());
        assert!(
            message(&response).contains(fragment),
            "{case}: {}",
            response.text()
        );
        assert_eq!(response.header("cache-control"), Some("no-cache"), "{case}");
        assert_eq!(
            connection.read_to_close().expect(case),
            b"",
            "{case}: then it is closed"
        );
    }
    let mut whole_then_end = open(&service);
    whole_then_end.send(&whole).expect("sent");
    whole_then_end.finish_sending().expect("ended");
    let response = whole_then_end.read_response().expect("an answer");
    assert_eq!(response.status, 200, "a whole request, then the end");
    let mut idle = open(&service);
    assert_eq!(
        idle.read_to_close().expect("closed"),
        b"",
        "nothing was asked"
    );
    assert_eq!(service.stored(), 0);
    service.check_health();
}

#[test]
fn a_request_beyond_those_in_flight_is_sent_away_and_the_others_are_served() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_LIMITS__IN_FLIGHT", "1")
    });
    let body = sms().to_string();
    let length = format!("Content-Length: {}\r\n", body.len());
    let mut slow = open(&service);
    slow.send(post(&service, &length, &body[..5]).as_bytes())
        .expect("half of it");
    let shed = wait_for("the only place to be taken", || {
        let response = service.raw("GET", "/token", &[("X-Service-Token", &service.token)], b"");
        (response.status == 503).then_some(response)
    });
    assert_eq!(shed.header("retry-after"), Some("1"));
    assert_eq!(
        shed.json(),
        json!({"message": "The service is overloaded; try again shortly."})
    );
    assert_eq!(shed.header("cache-control"), Some("no-cache"));
    slow.send(&body.as_bytes()[5..]).expect("the rest");
    assert_eq!(slow.read_response().expect("the answer").status, 200);
    wait_for("the place to be free", || {
        (service.get("/token").status == 200).then_some(())
    });
}
