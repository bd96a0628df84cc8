//! Recipients, senders and report addresses.

use serde_json::json;
use testkit::Backend;

use super::assert_refused;
use crate::rest::service::{Service, sms_with};

#[test]
fn recipients() {
    let give = "international format";
    assert_refused(
        "to",
        &[
            ("null", json!({"to": null}), &["it is missing"]),
            ("empty", json!({"to": ""}), &["''", "0 digits", "7 to 15"]),
            (
                "letters",
                json!({"to": "Bob"}),
                &["'Bob'", "'B'", "give digits in international format"],
            ),
            (
                "too short",
                json!({"to": "+123456"}),
                &["'+123456'", "6 digits", "7 to 15"],
            ),
            (
                "too long",
                json!({"to": "1234567890123456"}),
                &["16 digits", "7 to 15"],
            ),
            (
                "leading zero",
                json!({"to": "0037120000001"}),
                &["'0037120000001'", "starts with 0", "correctBy"],
            ),
            (
                "no such calling code",
                json!({"to": "+99912345678"}),
                &["'+99912345678'", "not a possible number"],
            ),
            (
                "no such length",
                json!({"to": "+371200000011"}),
                &["'+371200000011'", "not a possible number"],
            ),
            (
                "two plus signs",
                json!({"to": "++37120000001"}),
                &["'+'", give],
            ),
            ("negative", json!({"to": -371}), &["-371", "give a string"]),
            ("a fraction", json!({"to": 1.5}), &["1.5", "give a string"]),
            ("a boolean", json!({"to": true}), &["true is a boolean"]),
            (
                "an object",
                json!({"to": {"number": "+37120000001"}}),
                &["an object"],
            ),
            (
                "cannot be corrected",
                json!({"to": "12", "correctBy": "LV"}),
                &["'12'", "LV"],
            ),
            (
                "control characters",
                json!({"to": "\u{1b}[2J\n"}),
                &["\\u{1b}"],
            ),
        ],
    );
}

#[test]
fn several_recipients() {
    let too_many: Vec<String> = (0..1001).map(|n| format!("3712000{n:04}")).collect();
    assert_refused(
        "to",
        &[
            (
                "an empty list",
                json!({"to": []}),
                &["empty", "at least one"],
            ),
            (
                "a list with null",
                json!({"to": ["+37120000001", null]}),
                &["null"],
            ),
            (
                "a list in a list",
                json!({"to": [["+37120000001"]]}),
                &["a list"],
            ),
            (
                "one bad among good",
                json!({"to": ["+37120000001", "12", "+37120000002"]}),
                &["'12'", "2 digits"],
            ),
            (
                "an empty item",
                json!({"to": "+37120000001,,+37120000002"}),
                &["''", "0 digits"],
            ),
            (
                "a comma in the list",
                json!({"to": ["+37120000001,+37120000002"]}),
                &["','"],
            ),
            (
                "a trailing comma",
                json!({"to": "+37120000001,"}),
                &["''", "0 digits"],
            ),
            ("1001 in a list", json!({"to": too_many}), &["1001", "1000"]),
            (
                "1001 by commas",
                json!({"to": too_many.join(",")}),
                &["1001", "1000"],
            ),
        ],
    );
}

#[test]
fn senders() {
    let rule = "it must be a valid MSISDN or an alphanumeric string of at most 11 characters made of \
                upper/lower-case Latin letters, digits, spaces and dots";
    assert_refused(
        "from",
        &[
            ("null", json!({"from": null}), &["it is missing"]),
            ("empty", json!({"from": ""}), &["''", rule]),
            (
                "twelve letters",
                json!({"from": "ABCDEFGHIJKL"}),
                &["'ABCDEFGHIJKL'", rule],
            ),
            ("a dash", json!({"from": "Acme-Inc"}), &["'Acme-Inc'", rule]),
            ("an accent", json!({"from": "Ácme"}), &["'Ácme'", rule]),
            ("only spaces", json!({"from": "   "}), &["'   '", rule]),
            (
                "plus and too short",
                json!({"from": "+12345"}),
                &["'+12345'", rule],
            ),
            (
                "sixteen digits",
                json!({"from": "1234567890123456"}),
                &["'1234567890123456'", rule],
            ),
            ("negative", json!({"from": -5}), &["-5"]),
            ("a boolean", json!({"from": false}), &["false is a boolean"]),
            ("a list", json!({"from": ["Acme"]}), &["a list"]),
        ],
    );
}

#[test]
fn report_addresses() {
    let long = format!("https://example.com/{}", "a".repeat(2029));
    assert_refused(
        "dlrUrl",
        &[
            (
                "no scheme",
                json!({"dlrUrl": "example.com/dlr"}),
                &["'example.com/dlr'", "http"],
            ),
            ("empty", json!({"dlrUrl": ""}), &["''", "http"]),
            (
                "another scheme",
                json!({"dlrUrl": "ftp://example.com/"}),
                &["'ftp://example.com/'", "ftp", "http"],
            ),
            (
                "a script",
                json!({"dlrUrl": "javascript:alert(1)"}),
                &["javascript"],
            ),
            ("a file", json!({"dlrUrl": "file:///etc/passwd"}), &["file"]),
            (
                "a user part",
                json!({"dlrUrl": "http://me:hunter2@example.com/"}),
                &["user name"],
            ),
            ("no host", json!({"dlrUrl": "http://"}), &["'http://'"]),
            ("too long", json!({"dlrUrl": long}), &["2049 bytes", "2048"]),
            ("a number", json!({"dlrUrl": 1}), &["1 is a number"]),
            ("a list", json!({"dlrUrl": []}), &["a list"]),
        ],
    );
    let service = Service::start(Backend::Sqlite);
    let body = sms_with(&json!({"dlrUrl": "http://me:hunter2@example.com/"}));
    assert!(!service.send(&body).text().contains("hunter2"));
}
