//! Requests that are refused by their head, while their body is still on its way.

use testkit::Backend;
use testkit::http::encode;

use super::bad_http::open;
use super::service::Service;

/// More than arrives with the head, but not too much to be read and discarded.
static BODY: [u8; 60 * 1024] = [b'x'; 60 * 1024];

fn check_connection_is_kept(service: &Service, case: &str, head: &str, body: &[u8], status: u16) {
    let mut connection = open(service);
    connection.send(head.as_bytes()).expect(case);
    connection.send(body).expect(case);
    let refused = connection.read_response().expect(case);
    assert_eq!(refused.status, status, "{case}: {}", refused.text());
    assert_eq!(refused.header("connection"), None, "{case}");
    let headers = [("X-Service-Token", service.token.as_str())];
    let next = connection.request("GET", "/token", &headers, b"");
    let next = next.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(next.status, 200, "{case}: {}", next.text());
}

#[test]
fn a_refusal_leaves_the_connection_to_the_next_request() {
    let service = Service::start(Backend::Sqlite);
    let reader = service.create_token("main", &["--permission", "sms:read"]);
    let head = |request: &str, token: &str| {
        let length = BODY.len();
        format!(
            "{request} HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            service.server.addr()
        )
    };
    let reader_token = format!("X-Service-Token: {}\r\n", reader.token);
    for (case, request, token, status) in [
        ("no token", "POST /sms", "", 401),
        (
            "a wrong token",
            "POST /sms",
            "X-Service-Token: sb_x\r\n",
            401,
        ),
        ("no permission", "POST /sms", reader_token.as_str(), 403),
        ("no such address", "POST /nothing", "", 404),
        ("a wrong method", "PUT /sms", "", 405),
        ("no token for a tool", "POST /mcp", "", 401),
        ("a page", "GET /dashboard", "", 303),
    ] {
        check_connection_is_kept(&service, case, &head(request, token), &BODY, status);
    }
    let chunked = head("POST /sms", "").replace(
        &format!("Content-Length: {}", BODY.len()),
        "Transfer-Encoding: chunked",
    );
    let chunks = [b"f000\r\n", &BODY[..], b"\r\n0\r\n\r\n"].concat();
    check_connection_is_kept(&service, "in chunks", &chunked, &chunks, 401);
}

/// If the body is too large to be discarded or never arrives, the answer says that the connection closes.
#[test]
fn a_refusal_that_ends_the_connection_says_so() {
    let service = Service::start(Backend::Sqlite);
    let addr = service.server.addr();
    let huge = (64 * 1024 + 1).to_string();
    let too_many = [
        &b"10001\r\n"[..],
        vec![b'x'; 0x10001].as_slice(),
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    for (case, headers, body) in [
        (
            "too large",
            vec![("Content-Length", huge.as_str())],
            &b""[..],
        ),
        (
            "too large, in chunks",
            vec![("Transfer-Encoding", "chunked")],
            &too_many,
        ),
        ("never sent", vec![("Content-Length", "10")], b"x"),
        (
            "waiting for 100-continue",
            vec![("Content-Length", "10"), ("Expect", "100-continue")],
            b"",
        ),
    ] {
        let mut connection = open(&service);
        let request = encode(addr, "POST", "/sms", &headers, body);
        connection.send(&request).expect(case);
        let refused = connection.read_response().expect(case);
        assert_eq!(refused.status, 401, "{case}: {}", refused.text());
        assert_eq!(refused.header("connection"), Some("close"), "{case}");
        let rest = connection.read_to_close().expect(case);
        assert!(rest.is_empty(), "{case}: {rest:?}");
    }
    service.check_health();
}
