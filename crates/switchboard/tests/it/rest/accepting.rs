//! `POST /sms`: accepted requests and their answers.

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, check, ids, in_seconds, sms, sms_with, tomorrow, utc, with_offset};

const AMOUNT: &str = "x-service-amount-sent";

/// Sends a body that must be accepted, and returns the number of parts from the header of the answer.
fn accepted_parts(service: &Service, case: &str, body: &Value) -> u32 {
    let response = service.send(body);
    assert_eq!(response.status, 200, "{case}: {}", response.text());
    assert_eq!(
        response.header("content-type"),
        Some("application/json"),
        "{case}"
    );
    let amount = response
        .header(AMOUNT)
        .unwrap_or_else(|| panic!("{case}: no {AMOUNT}"));
    amount.parse().expect("a whole number")
}

#[test]
fn the_answer_counts_the_parts() {
    let service = Service::start(Backend::Sqlite);
    let cases = [
        ("one character", "a".to_owned(), 1),
        ("a whole GSM-7 part", "a".repeat(160), 1),
        ("one more", "a".repeat(161), 2),
        ("two GSM-7 parts", "a".repeat(306), 2),
        ("a third", "a".repeat(307), 3),
        ("extended characters count twice", "€".repeat(80), 1),
        ("one extended character more", "€".repeat(81), 2),
        ("the last character is extended", "a".repeat(159) + "[", 2),
        ("a pair never straddles: 76 fit 153", "€".repeat(153), 3),
        ("every line break counts", "\n".repeat(161), 2),
        ("a whole UCS-2 part", "ş".repeat(70), 1),
        ("one more in UCS-2", "ş".repeat(71), 2),
        ("two UCS-2 parts", "ş".repeat(134), 2),
        ("a third in UCS-2", "ş".repeat(135), 3),
        (
            "one other character makes it all UCS-2",
            "a".repeat(70) + "ş",
            2,
        ),
        ("surrogate pairs count twice", "😀".repeat(35), 1),
        ("one surrogate pair more", "😀".repeat(36), 2),
        (
            "a surrogate pair never straddles: 33 fit 67",
            "😀".repeat(67),
            3,
        ),
        ("the most GSM-7 parts", "a".repeat(153 * 255), 255),
        ("the most UCS-2 parts", "ş".repeat(67 * 255), 255),
    ];
    for (case, text, parts) in cases {
        let body = sms_with(&json!({ "message": text }));
        assert_eq!(accepted_parts(&service, case, &body), parts, "{case}");
    }
}

#[test]
fn a_given_coding_turns_splitting_off() {
    let service = Service::start(Backend::Sqlite);
    let udh = "%05%00%03%2A%02%01";
    let cases = [
        ("GSM-7", json!({"coding": 0, "message": "a".repeat(160)})),
        ("8-bit", json!({"coding": 1, "message": "ÿ".repeat(140)})),
        (
            "8-bit, any octet",
            json!({"coding": 1, "message": "\u{0}\u{7f}\u{80}\u{ff}"}),
        ),
        ("UCS-2", json!({"coding": 2, "message": "ş".repeat(70)})),
        (
            "UCS-2 of plain letters",
            json!({"coding": 2, "message": "a".repeat(70)}),
        ),
        (
            "header with GSM-7",
            json!({"coding": 0, "udh": udh, "message": "a".repeat(153)}),
        ),
        (
            "header with 8-bit",
            json!({"coding": 1, "udh": udh, "message": "a".repeat(134)}),
        ),
        (
            "header with UCS-2",
            json!({"coding": 2, "udh": udh, "message": "a".repeat(67)}),
        ),
        (
            "header in lower case",
            json!({"coding": 0, "udh": "%05%00%03%2a%02%01"}),
        ),
    ];
    for (case, fields) in cases {
        assert_eq!(
            accepted_parts(&service, case, &sms_with(&fields)),
            1,
            "{case}"
        );
    }
}

#[test]
fn every_valid_value_is_accepted() {
    let service = Service::start(Backend::Sqlite);
    let long_url = format!("https://example.com/{}", "a".repeat(2028));
    let cases = [
        ("only the required fields", json!({})),
        ("lane high", json!({"priority": "high"})),
        ("lane normal", json!({"priority": "normal"})),
        ("lane low", json!({"priority": "low"})),
        (
            "report address",
            json!({"dlrUrl": "https://example.com/dlr?a=b"}),
        ),
        ("longest report address", json!({"dlrUrl": long_url})),
        ("emulated delivery", json!({"testMode": "1"})),
        ("emulated failure", json!({"testMode": "2"})),
        ("shortest validity", json!({"expireIn": 360})),
        ("longest validity", json!({"expireIn": 432_000})),
        ("correction", json!({"correctBy": "LV"})),
        (
            "correction for Kosovo",
            json!({"correctBy": "xk", "to": "+38344123456"}),
        ),
        ("sender of eleven letters", json!({"from": "ABCDEFGHIJK"})),
        ("sender with spaces and dots", json!({"from": "Acme Inc."})),
        ("short code as sender", json!({"from": "1188"})),
        ("number as sender", json!({"from": "+37167000001"})),
        (
            "nearly a year ahead",
            json!({"scheduled": with_offset(in_seconds(364 * 86_400), 3)}),
        ),
        (
            "the largest offset",
            json!({"scheduled": with_offset(in_seconds(3600), 14)}),
        ),
        (
            "the largest negative offset",
            json!({"scheduled": with_offset(in_seconds(3600), -14)}),
        ),
        (
            "half a minute ago is now",
            json!({"scheduled": with_offset(in_seconds(-30), -5)}),
        ),
    ];
    for (case, fields) in cases {
        assert_eq!(
            accepted_parts(&service, case, &sms_with(&fields)),
            1,
            "{case}"
        );
    }
}

#[test]
fn harmless_deviations_are_accepted() {
    let service = Service::start(Backend::Sqlite);
    let cases = [
        (
            "null is absent",
            json!({
                "dlrUrl": null, "priority": null, "scheduled": null, "udh": null, "coding": null,
                "testMode": null, "expireIn": null, "correctBy": null,
            }),
        ),
        (
            "unknown fields",
            json!({"colour": "red", "nested": {"a": [1, {"b": null}]}}),
        ),
        ("a number as recipient", json!({"to": 37_120_000_001_u64})),
        ("numbers in the list", json!({"to": [37_120_000_001_u64]})),
        ("a number as sender", json!({"from": 37_120_000_001_u64})),
        ("a number as test mode", json!({"testMode": 2})),
        ("digits as coding", json!({"coding": "0"})),
        ("digits as validity", json!({"expireIn": "360"})),
    ];
    for (case, fields) in cases {
        assert_eq!(
            accepted_parts(&service, case, &sms_with(&fields)),
            1,
            "{case}"
        );
    }
}

#[test]
fn the_content_type_must_be_json() {
    let service = Service::start(Backend::Sqlite);
    let body = sms().to_string();
    let cases = [
        ("plain", Some("application/json"), 200),
        (
            "with a charset",
            Some("application/json; charset=utf-8"),
            200,
        ),
        (
            "with a charset, no space",
            Some("application/json;charset=UTF-8"),
            200,
        ),
        ("in capitals", Some("APPLICATION/JSON"), 200),
        ("none", None, 400),
        ("empty", Some(""), 400),
        ("text", Some("text/plain"), 400),
        ("a form", Some("application/x-www-form-urlencoded"), 400),
        ("a similar type", Some("application/jsonp"), 400),
        ("another JSON type", Some("application/problem+json"), 400),
    ];
    for (case, content_type, status) in cases {
        let mut headers = vec![("X-Service-Token", service.token.as_str())];
        headers.extend(content_type.map(|value| ("Content-Type", value)));
        let response = service.raw("POST", "/sms", &headers, body.as_bytes());
        check(case, &response);
        assert_eq!(response.status, status, "{case}: {}", response.text());
        if status == 400 {
            assert!(response.text().contains("application/json"), "{case}");
        }
    }
    assert_eq!(service.stored(), 4);
}

/// Each recipient gets an ID, in order, and all or none are stored.
fn several_recipients(backend: Backend) {
    let service = Service::start(backend);
    let numbers = ["+37120000003", "+37120000001", "+37120000002"];
    let cases = [
        (
            "a list",
            json!(["37120000003", "+371 2000-0001", "(371) 2000.0002"]),
        ),
        ("commas", json!("37120000003,+37120000001, 37120000002")),
        (
            "the same number again",
            json!([numbers[0], numbers[0], numbers[0]]),
        ),
    ];
    for (case, to) in cases {
        let text = "a".repeat(161);
        let body = sms_with(&json!({"to": to, "message": text, "scheduled": tomorrow()}));
        let response = service.send(&body);
        assert_eq!(response.status, 200, "{case}: {}", response.text());
        assert_eq!(response.header(AMOUNT), Some("6"), "{case}");
        let ids = ids(&response);
        let first: u64 = ids[0].parse().expect("a number");
        let expected: Vec<String> = (first..first + 3).map(|id| id.to_string()).collect();
        assert_eq!(ids, expected, "{case}: consecutive");
        let listed = service.scheduled_as(&service.token);
        for (id, number) in ids.iter().zip(numbers) {
            let record = listed.iter().find(|record| record["id"] == id.as_str());
            let record = record.unwrap_or_else(|| panic!("{case}: {id} is not listed"));
            let number = if case.starts_with("the same") {
                numbers[0]
            } else {
                number
            };
            assert_eq!(record["to"], number, "{case}");
        }
    }
    let many: Vec<String> = (0..1000).map(|n| format!("3712000{n:04}")).collect();
    let body = sms_with(&json!({ "to": many }));
    assert_eq!(accepted_parts(&service, "a thousand", &body), 1000);
    assert_eq!(service.stored(), 3 * 3 + 1000);
}

/// Accepted values are read back unchanged.
fn values_are_stored_as_they_were_sent(backend: Backend) {
    let service = Service::start(backend);
    let at = in_seconds(3600);
    let text = "Grüße, 😀 \u{0} \"quoted\" \\ and\r\nmore";
    let id = &service.accept(&json!({
        "to": "20000001", "correctBy": "lv", "from": "Acme Inc.", "message": text,
        "scheduled": with_offset(at, 2), "dlrUrl": "https://Example.com/%7Edlr?x=ä",
    }))[0];
    let expected = json!([{
        "id": id, "scheduled": utc(at), "from": "Acme Inc.", "to": "+37120000001", "message": text,
        "dlrUrl": "https://Example.com/%7Edlr?x=ä",
    }]);
    assert_eq!(json!(service.scheduled_as(&service.token)), expected);
}

on_both_backends!(several_recipients, values_are_stored_as_they_were_sent);

#[test]
fn a_local_number_is_completed_and_an_international_one_stays() {
    let service = Service::start(Backend::Sqlite);
    let cases = [
        ("local", "20000001", "LV", "+37120000001"),
        ("trunk prefix", "07700 900123", "GB", "+447700900123"),
        ("in lower case", "20000001", "lv", "+37120000001"),
        ("international", "+447700900123", "LV", "+447700900123"),
        ("with calling code", "37120000001", "LV", "+37120000001"),
        ("dialled out", "00 44 7700 900123", "LV", "+447700900123"),
    ];
    for (case, to, country, expected) in cases {
        let body = sms_with(&json!({"to": to, "correctBy": country, "scheduled": tomorrow()}));
        let id = &service.accept(&body)[0];
        let listed = service.scheduled_as(&service.token);
        let record = listed.iter().find(|record| record["id"] == id.as_str());
        assert_eq!(record.expect(case)["to"], expected, "{case}");
    }
}
