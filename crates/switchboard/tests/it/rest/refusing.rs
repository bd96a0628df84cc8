//! `POST /sms`: a bad value is refused with the field, the rule and the value, and nothing of it is stored.

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, in_seconds, message, sms, sms_with, tomorrow, with_offset};

/// What the message must hold besides the field's name.
type Case<'a> = (&'a str, Value, &'a [&'a str]);

/// Sends each as a change to a good body that would be listed if it were stored.
fn refused(field: &str, cases: &[Case<'_>]) {
    let service = Service::start(Backend::Sqlite);
    for (case, fields, fragments) in cases {
        let mut body = sms_with(&json!({ "scheduled": tomorrow() }));
        let fields = fields.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(fields);
        let response = service.send(&body);
        assert_eq!(response.status, 400, "{case}: {}", response.text());
        let text = message(&response);
        let start = format!("Invalid value for field '{field}': ");
        assert!(text.starts_with(&start), "{case}: {text}");
        for fragment in *fragments {
            assert!(
                text.contains(fragment),
                "{case}: no {fragment:?} in: {text}"
            );
        }
        assert!(text.len() < 400, "{case}: {text}");
    }
    assert_eq!(service.scheduled_as(&service.token), Vec::<Value>::new());
    assert_eq!(service.stored(), 0);
}

#[test]
fn recipients() {
    let too_many: Vec<String> = (0..1001).map(|n| format!("3712000{n:04}")).collect();
    let give = "international format";
    refused(
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
fn senders() {
    let rule = "it must be a valid MSISDN or an alphanumeric string of at most 11 characters made of \
                upper/lower-case Latin letters, digits, spaces and dots";
    refused(
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
fn texts() {
    let udh = "%05%00%03%2A%02%01";
    refused(
        "message",
        &[
            ("null", json!({"message": null}), &["it is missing"]),
            (
                "empty",
                json!({"message": ""}),
                &["empty", "at least one character"],
            ),
            (
                "a number",
                json!({"message": 5}),
                &["5 is a number", "give a string"],
            ),
            ("an object", json!({"message": {}}), &["an object"]),
            (
                "256 GSM-7 parts",
                json!({"message": "a".repeat(153 * 255 + 1)}),
                &["256 parts", "255"],
            ),
            (
                "256 UCS-2 parts",
                json!({"message": "ş".repeat(67 * 255 + 1)}),
                &["256 parts", "255"],
            ),
            (
                "not GSM-7",
                json!({"coding": 0, "message": "aş"}),
                &["'ş'", "U+015F", "position 2"],
            ),
            (
                "not 8-bit",
                json!({"coding": 1, "message": "Ā"}),
                &["U+0100", "position 1"],
            ),
            (
                "161 in GSM-7",
                json!({"coding": 0, "message": "a".repeat(161)}),
                &["161", "160", "udh"],
            ),
            (
                "141 in 8-bit",
                json!({"coding": 1, "message": "a".repeat(141)}),
                &["141", "140"],
            ),
            (
                "71 in UCS-2",
                json!({"coding": 2, "message": "a".repeat(71)}),
                &["71", "70", "udh"],
            ),
            (
                "154 beside a header",
                json!({"coding": 0, "udh": udh, "message": "a".repeat(154)}),
                &["154", "153"],
            ),
            (
                "68 beside a header",
                json!({"coding": 2, "udh": udh, "message": "a".repeat(68)}),
                &["68", "67"],
            ),
        ],
    );
}

#[test]
fn report_addresses() {
    let long = format!("https://example.com/{}", "a".repeat(2029));
    refused(
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

#[test]
fn times() {
    let past = with_offset(in_seconds(-120), 2);
    let far = with_offset(in_seconds(366 * 86_400), 0);
    refused(
        "scheduled",
        &[
            (
                "two minutes ago",
                json!({"scheduled": past}),
                &["in the past"],
            ),
            (
                "over a year ahead",
                json!({"scheduled": far}),
                &["more than a year ahead"],
            ),
            (
                "long ago",
                json!({"scheduled": "0001-01-01T00:00:00Z"}),
                &["'0001-01-01T00:00:00Z'", "in the past"],
            ),
            (
                "no offset",
                json!({"scheduled": "2030-01-31T09:30:00"}),
                &["'2030-01-31T09:30:00'", "offset"],
            ),
            (
                "a space",
                json!({"scheduled": "2030-01-31 09:30:00+02:00"}),
                &["offset"],
            ),
            (
                "no seconds",
                json!({"scheduled": "2030-01-31T09:30Z"}),
                &["'2030-01-31T09:30Z'"],
            ),
            (
                "no such day",
                json!({"scheduled": "2030-02-30T09:30:00Z"}),
                &["'2030-02-30T09:30:00Z'"],
            ),
            (
                "no such offset",
                json!({"scheduled": "2030-01-31T09:30:00+99:00"}),
                &["+99:00"],
            ),
            ("words", json!({"scheduled": "tomorrow"}), &["'tomorrow'"]),
            ("empty", json!({"scheduled": ""}), &["''"]),
            (
                "a number",
                json!({"scheduled": 1_893_456_000}),
                &["1893456000 is a number"],
            ),
            (
                "a boolean",
                json!({"scheduled": true}),
                &["true is a boolean"],
            ),
        ],
    );
}

#[test]
fn headers_of_parts() {
    refused(
        "udh",
        &[
            (
                "without coding",
                json!({"udh": "%05%00%03%2A%02%01"}),
                &["coding"],
            ),
            ("empty", json!({"coding": 0, "udh": ""}), &["empty"]),
            (
                "no percent signs",
                json!({"coding": 0, "udh": "050003"}),
                &["%"],
            ),
            (
                "not hexadecimal",
                json!({"coding": 0, "udh": "%05%0g"}),
                &["octet 2", "%0g"],
            ),
            (
                "half an octet",
                json!({"coding": 0, "udh": "%05%0"}),
                &["octet 2"],
            ),
            (
                "length too large",
                json!({"coding": 0, "udh": "%06%00%03%2A%02%01"}),
                &["says 6", "5 octets"],
            ),
            (
                "element overruns",
                json!({"coding": 0, "udh": "%05%00%04%2A%02%01"}),
                &["0x00", "4 octets"],
            ),
            (
                "too long",
                json!({"coding": 0, "udh": "%00".repeat(141)}),
                &["141 octets", "140"],
            ),
            (
                "a number",
                json!({"coding": 0, "udh": 5}),
                &["5 is a number"],
            ),
        ],
    );
}

#[test]
fn numbers_and_names() {
    refused(
        "coding",
        &[
            (
                "unknown",
                json!({"coding": 3}),
                &["3", "0 (GSM-7), 1 (8-bit) or 2 (UCS-2)"],
            ),
            ("negative", json!({"coding": -1}), &["-1"]),
            ("256", json!({"coding": 256}), &["256"]),
            (
                "2^63",
                json!({"coding": 9_223_372_036_854_775_808_u64}),
                &["9223372036854775808"],
            ),
            (
                "a fraction",
                json!({"coding": 1.5}),
                &["1.5", "whole number"],
            ),
            (
                "a word",
                json!({"coding": "gsm"}),
                &["'gsm'", "whole number"],
            ),
            ("empty", json!({"coding": ""}), &["''"]),
            ("a boolean", json!({"coding": true}), &["true"]),
        ],
    );
    refused(
        "expireIn",
        &[
            (
                "below",
                json!({"expireIn": 359}),
                &["359 is below 360; give 360 to 432000 seconds"],
            ),
            (
                "above",
                json!({"expireIn": 432_001}),
                &["432001 is above 432000; give 360 to 432000 seconds"],
            ),
            ("zero", json!({"expireIn": 0}), &["0 is below 360"]),
            (
                "negative",
                json!({"expireIn": -360}),
                &["-360 is below 360"],
            ),
            (
                "2^63",
                json!({"expireIn": 9_223_372_036_854_775_808_u64}),
                &["9223372036854775808"],
            ),
            (
                "digits beyond 2^63",
                json!({"expireIn": "99999999999999999999"}),
                &["99999999999999999999"],
            ),
            (
                "a fraction",
                json!({"expireIn": 400.5}),
                &["400.5", "whole number"],
            ),
            (
                "a word",
                json!({"expireIn": "soon"}),
                &["'soon'", "whole number"],
            ),
            ("an object", json!({"expireIn": {}}), &["an object"]),
        ],
    );
    refused(
        "testMode",
        &[
            (
                "zero",
                json!({"testMode": 0}),
                &["'0'", "1 (emulate success) or 2 (emulate failure)"],
            ),
            ("three", json!({"testMode": "3"}), &["'3'"]),
            ("a word", json!({"testMode": "yes"}), &["'yes'"]),
            ("empty", json!({"testMode": ""}), &["''"]),
            ("a sign", json!({"testMode": "+1"}), &["'+1'"]),
            (
                "a boolean",
                json!({"testMode": true}),
                &["true is a boolean"],
            ),
        ],
    );
    refused(
        "priority",
        &[
            (
                "unknown",
                json!({"priority": "urgent"}),
                &["'urgent'", "high, normal or low"],
            ),
            (
                "empty",
                json!({"priority": ""}),
                &["''", "high, normal or low"],
            ),
            ("a number", json!({"priority": 1}), &["1 is a number"]),
        ],
    );
    refused(
        "correctBy",
        &[
            (
                "unknown",
                json!({"correctBy": "XX"}),
                &["'XX'", "ISO 3166-1 alpha-2"],
            ),
            ("three letters", json!({"correctBy": "LVA"}), &["'LVA'"]),
            ("empty", json!({"correctBy": ""}), &["''"]),
            (
                "a calling code",
                json!({"correctBy": 371}),
                &["371 is a number"],
            ),
        ],
    );
}

/// A field that is left out altogether is named like one that is null.
#[test]
fn missing_fields() {
    let service = Service::start(Backend::Sqlite);
    for field in ["to", "from", "message"] {
        let mut body = sms();
        body.as_object_mut().expect("an object").remove(field);
        let response = service.send(&body);
        assert_eq!(response.status, 400, "{field}");
        let expected = format!("Invalid value for field '{field}': it is missing; give ");
        assert!(
            message(&response).starts_with(&expected),
            "{field}: {}",
            response.text()
        );
    }
    assert_eq!(service.stored(), 0);
}
