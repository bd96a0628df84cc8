//! Bodies that are no message, or no JSON, or far too much of it.

use testkit::Backend;

use super::service::{Service, ids, message, sms};

/// A good body with one more field, written as given.
fn with_field(written: &str) -> Vec<u8> {
    let body = sms().to_string();
    format!("{},{written}}}", body.trim_end_matches('}')).into_bytes()
}

#[test]
fn a_body_that_cannot_be_read_is_a_bad_request() {
    let service = Service::start(Backend::Sqlite);
    let nested = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let cases = [
        ("empty", Vec::new(), "not valid JSON"),
        ("white space", b"  \n".to_vec(), "not valid JSON"),
        ("cut off", b"{\"to\":\"+371".to_vec(), "not valid JSON"),
        ("text behind", b"{} x".to_vec(), "not valid JSON"),
        (
            "a trailing comma",
            b"{\"to\":1,}".to_vec(),
            "not valid JSON",
        ),
        ("single quotes", b"{'to':1}".to_vec(), "not valid JSON"),
        ("a comment", b"{/* */}".to_vec(), "not valid JSON"),
        ("not a number", b"{\"to\":NaN}".to_vec(), "not valid JSON"),
        ("a form", b"to=1&from=2".to_vec(), "not valid JSON"),
        (
            "a byte order mark",
            b"\xef\xbb\xbf{}".to_vec(),
            "not valid JSON",
        ),
        (
            "null",
            b"null".to_vec(),
            "The body is null; give a JSON object",
        ),
        (
            "a list",
            b"[{}]".to_vec(),
            "The body is a list; give a JSON object",
        ),
        ("a string", b"\"to\"".to_vec(), "The body is a string"),
        ("a number", b"5".to_vec(), "The body is a number"),
        (
            "lists 100,000 deep",
            nested("[", "]").into_bytes(),
            "recursion limit",
        ),
        (
            "unclosed lists 100,000 deep",
            "[".repeat(100_000).into_bytes(),
            "recursion limit",
        ),
        (
            "objects 100,000 deep",
            nested("{\"a\":", "}").into_bytes(),
            "recursion limit",
        ),
        (
            "deep in a field",
            with_field(&format!("\"a\":{}", nested("[", "]"))),
            "recursion limit",
        ),
        (
            "a key twice",
            with_field("\"to\":\"+37120000002\""),
            "'to' stands twice",
        ),
        (
            "an unknown key twice",
            with_field("\"a\":1,\"a\":1"),
            "'a' stands twice",
        ),
        (
            "a key twice, once escaped",
            with_field("\"t\\u006f\":\"+37120000002\""),
            "'to' stands twice",
        ),
        (
            "a key twice, deeper",
            with_field("\"a\":{\"b\":1,\"b\":2}"),
            "'b' stands twice",
        ),
        (
            "a lone high surrogate",
            with_field("\"a\":\"\\ud83d\""),
            "not valid JSON",
        ),
        (
            "a lone low surrogate",
            with_field("\"a\":\"\\ude00\""),
            "not valid JSON",
        ),
        (
            "surrogates the wrong way round",
            with_field("\"a\":\"\\ude00\\ud83d\""),
            "not valid JSON",
        ),
        (
            "a bad escape",
            with_field("\"a\":\"\\x41\""),
            "not valid JSON",
        ),
        (
            "a raw line break",
            with_field("\"a\":\"\n\""),
            "not valid JSON",
        ),
        ("1e400", with_field("\"expireIn\":1e400"), "not valid JSON"),
        (
            "a leading zero",
            with_field("\"expireIn\":0360"),
            "not valid JSON",
        ),
    ];
    for (case, body, fragment) in cases {
        refused(&service, case, &body, fragment);
    }
    let invalid: [(&str, &[u8]); 5] = [
        ("a stray byte", b"\xff"),
        ("a cut sequence", b"\xe2\x82"),
        ("an overlong slash", b"\xc0\xaf"),
        ("an encoded surrogate", b"\xed\xa0\x80"),
        ("beyond Unicode", b"\xf5\x80\x80\x80"),
    ];
    for (case, bytes) in invalid {
        let mut body = b"{\"to\":\"+37120000001\",\"from\":\"Acme\",\"message\":\"".to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\"}");
        refused(&service, case, &body, "not valid JSON");
    }
    assert_eq!(service.stored(), 0);
    service.check_health();
}

fn refused(service: &Service, case: &str, body: &[u8], fragment: &str) {
    let headers = [("Content-Type", "application/json")];
    let response = service.call_with(&service.token, "POST", "/sms", &headers, body);
    assert_eq!(response.status, 400, "{case}: {}", response.text());
    assert!(
        response.text().contains(fragment),
        "{case}: {}",
        response.text()
    );
    assert!(response.body.len() < 1000, "{case}: the answer stays short");
}

#[test]
fn numbers_beyond_every_integer_are_values_like_others() {
    let service = Service::start(Backend::Sqlite);
    let cases = [
        (
            "2^63",
            "\"expireIn\":9223372036854775808",
            "9223372036854775808",
        ),
        (
            "below -2^63",
            "\"expireIn\":-9223372036854775809",
            "expireIn",
        ),
        (
            "2^64",
            "\"expireIn\":18446744073709551616",
            "18446744073709552000",
        ),
        ("1e300", "\"coding\":1e300", "coding"),
        ("minus zero", "\"expireIn\":-0.0", "expireIn"),
        ("a tiny fraction", "\"expireIn\":1e-400", "expireIn"),
    ];
    for (case, field, fragment) in cases {
        refused(&service, case, &with_field(field), fragment);
    }
    assert_eq!(service.stored(), 0);
}

#[test]
fn a_body_beyond_the_limit_is_answered_and_not_cut_off() {
    let service = Service::start(Backend::Sqlite);
    let fill = |bytes: usize| {
        let mut body = sms().to_string().into_bytes();
        body.resize(bytes, b' ');
        body
    };
    let cases = [
        ("at the limit", fill(1 << 20), 200),
        ("one byte more", fill((1 << 20) + 1), 400),
        ("2 MiB", fill(2 << 20), 400),
        ("8 MiB", fill(8 << 20), 400),
    ];
    for (case, body, status) in cases {
        let response = service.call_as(&service.token, "POST", "/sms", &body);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        if status == 400 {
            assert!(
                message(&response).contains("1048576 bytes"),
                "{case}: {}",
                response.text()
            );
        }
    }
    let response = service.call_as("sb_wrong", "POST", "/sms", &fill(2 << 20));
    assert_eq!(
        response.status, 401,
        "whoever may not call at all is told so first"
    );
    service.check_health();
}

#[test]
fn many_small_fields_cost_no_more_than_their_bytes() {
    let service = Service::start(Backend::Sqlite);
    let fields: String = (0..60_000).map(|n| format!("\"k{n}\":[],")).collect();
    let body = format!("{{{fields}\"to\":\"+37120000001\",\"from\":\"Acme\",\"message\":\"Hi\"}}");
    assert!(body.len() < 1 << 20, "within the limit");
    let response = service.call_as(&service.token, "POST", "/sms", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(ids(&response).len(), 1);
}
