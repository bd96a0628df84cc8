//! Times, validity periods, test modes, priorities and countries.

use serde_json::json;

use super::assert_refused;
use crate::rest::service::{in_seconds, with_offset};

#[test]
fn times() {
    let past = with_offset(in_seconds(-120), 2);
    let far = with_offset(in_seconds(366 * 86_400), 0);
    assert_refused(
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
                json!({"scheduled": "2030-01-31T09:30:00+99:99"}),
                &["+99:99", "-14:00 to +14:00"],
            ),
            (
                "an offset of more than a day",
                json!({"scheduled": with_offset(in_seconds(3600), 25)}),
                &["+25:00", "-14:00 to +14:00"],
            ),
            (
                "an offset a minute too large",
                json!({"scheduled": "2030-01-31T09:30:00+14:01"}),
                &["+14:01", "-14:00 to +14:00"],
            ),
            (
                "a negative offset a minute too large",
                json!({"scheduled": "2030-01-31T09:30:00-14:01"}),
                &["-14:01", "-14:00 to +14:00"],
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
fn validities() {
    assert_refused(
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
}

#[test]
fn test_modes() {
    assert_refused(
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
}

#[test]
fn lanes() {
    assert_refused(
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
}

#[test]
fn countries() {
    assert_refused(
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
