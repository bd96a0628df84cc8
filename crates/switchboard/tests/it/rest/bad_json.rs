//! Bodies that are not messages, not JSON, or too large.

use testkit::Backend;

use super::service::{Service, ids, message, sms};

/// A valid body with one more field, in this JSON notation.
fn with_field(written: &str) -> Vec<u8> {
    let body = sms().to_string();
    format!("{},{written}}}", body.trim_end_matches('}')).into_bytes()
}

/// Sends each body. It is refused with this fragment in the message, and nothing is stored.
fn assert_all_refused(cases: &[(&str, Vec<u8>, &str)]) {
    let service = Service::start(Backend::Sqlite);
    for (case, body, fragment) in cases {
        assert_refused(&service, case, body, fragment);
    }
    assert_eq!(service.stored(), 0);
    service.check_health();
}

#[test]
fn invalid_json_is_refused() {
    let plain = |text: &str| text.as_bytes().to_vec();
    let cases = [
        ("empty", plain("")),
        ("white space", plain("  \n")),
        ("cut off", plain("{\"to\":\"+371")),
        ("text after the object", plain("{} x")),
        ("a trailing comma", plain("{\"to\":1,}")),
        ("single quotes", plain("{'to':1}")),
        ("a comment", plain("{/* */}")),
        ("not a number", plain("{\"to\":NaN}")),
        ("a form", plain("to=1&from=2")),
        ("a byte order mark", plain("\u{feff}{}")),
        ("a lone high surrogate", with_field(r#""a":"\ud83d""#)),
        ("a lone low surrogate", with_field(r#""a":"\ude00""#)),
        ("surrogates swapped", with_field(r#""a":"\ude00\ud83d""#)),
        ("a bad escape", with_field(r#""a":"\x41""#)),
        ("a raw line break", with_field("\"a\":\"\n\"")),
        ("1e400", with_field(r#""expireIn":1e400"#)),
        ("a leading zero", with_field(r#""expireIn":0360"#)),
    ];
    assert_all_refused(&cases.map(|(case, body)| (case, body, "not valid JSON")));
}

#[test]
fn json_that_is_not_an_object_is_refused() {
    let cases = [
        ("null", "null", "is null; give a JSON object"),
        ("a list", "[{}]", "is a list; give a JSON object"),
        ("a string", "\"to\"", "is a string; give a JSON object"),
        ("a number", "5", "is a number; give a JSON object"),
        ("a boolean", "true", "is a boolean; give a JSON object"),
    ];
    assert_all_refused(&cases.map(|(case, body, fragment)| (case, body.into(), fragment)));
}

#[test]
fn deep_nesting_is_refused() {
    let nested = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let field = format!("\"a\":{}", nested("[", "]"));
    let cases = [
        ("lists", nested("[", "]").into_bytes()),
        ("lists that do not close", nested("[", "").into_bytes()),
        ("objects", nested("{\"a\":", "}").into_bytes()),
        (
            "objects that do not close",
            nested("{\"a\":", "").into_bytes(),
        ),
        ("in a field", with_field(&field)),
    ];
    assert_all_refused(&cases.map(|(case, body)| (case, body, "recursion limit")));
}

#[test]
fn a_duplicate_key_is_refused() {
    let cases = [
        ("a field", r#""to":"+37120000002""#, "'to' appears twice"),
        ("escaped once", r#""t\u006f":"1""#, "'to' appears twice"),
        (
            "both null",
            r#""udh":null,"udh":null"#,
            "'udh' appears twice",
        ),
        ("an unknown key", r#""a":1,"a":1"#, "'a' appears twice"),
        ("deeper", r#""a":{"b":1,"b":2}"#, "'b' appears twice"),
        ("in a list", r#""a":[{"b":1,"b":2}]"#, "'b' appears twice"),
    ];
    assert_all_refused(&cases.map(|(case, field, fragment)| (case, with_field(field), fragment)));
}

#[test]
fn invalid_utf8_is_refused() {
    let cases: [(&str, &[u8]); 5] = [
        ("a stray byte", b"\xff"),
        ("a cut sequence", b"\xe2\x82"),
        ("an overlong slash", b"\xc0\xaf"),
        ("an encoded surrogate", b"\xed\xa0\x80"),
        ("beyond Unicode", b"\xf5\x80\x80\x80"),
    ];
    let body = |bytes: &[u8]| {
        let start = b"{\"to\":\"+37120000001\",\"from\":\"Acme\",\"message\":\"";
        [&start[..], bytes, b"\"}"].concat()
    };
    assert_all_refused(&cases.map(|(case, bytes)| (case, body(bytes), "not valid JSON")));
}

fn assert_refused(service: &Service, case: &str, body: &[u8], fragment: &str) {
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
fn numbers_out_of_range_are_refused() {
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
            "1.8446744073709552e19 is a number",
        ),
        ("1e300", "\"coding\":1e300", "1e300 is a number"),
        ("360.5", "\"expireIn\":360.5", "360.5 is a number"),
        ("minus zero", "\"expireIn\":-0.0", "expireIn"),
        ("a tiny fraction", "\"expireIn\":1e-400", "expireIn"),
    ];
    for (case, field, fragment) in cases {
        assert_refused(&service, case, &with_field(field), fragment);
    }
    assert_eq!(service.stored(), 0);
    // As in JSON Schema, this is a whole number.
    let whole = with_field("\"expireIn\":360.0");
    let response = service.call_as(&service.token, "POST", "/sms", &whole);
    assert_eq!(response.status, 200, "{}", response.text());
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
        ("at the limit", fill(2 << 20), 200),
        ("one byte more", fill((2 << 20) + 1), 400),
        ("4 MiB", fill(4 << 20), 400),
        ("8 MiB", fill(8 << 20), 400),
    ];
    for (case, body, status) in cases {
        let response = service.call_as(&service.token, "POST", "/sms", &body);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        if status == 400 {
            assert!(
                message(&response).contains("2097152 bytes"),
                "{case}: {}",
                response.text()
            );
        }
    }
    service.check_health();
}

#[test]
fn many_small_fields_are_accepted() {
    let service = Service::start(Backend::Sqlite);
    let fields: Vec<String> = (0..60_000).map(|n| format!("\"k{n}\":[]")).collect();
    let fields = fields.join(",");
    let body = format!("{{{fields},\"to\":\"+37120000001\",\"from\":\"Acme\",\"message\":\"Hi\"}}");
    assert!(body.len() < 1 << 20, "within the limit");
    let response = service.call_as(&service.token, "POST", "/sms", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(ids(&response).len(), 1);
}
