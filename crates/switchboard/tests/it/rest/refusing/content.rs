//! Texts, part headers and codings.

use serde_json::json;

use super::assert_refused;

#[test]
fn texts() {
    let udh = "%05%00%03%2A%02%01";
    assert_refused(
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
fn headers_of_parts() {
    assert_refused(
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
fn codings() {
    assert_refused(
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
}
