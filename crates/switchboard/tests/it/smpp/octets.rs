//! The octets of sent messages, and how another implementation reads them.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsSmsc, NodeJsSubmit};
use testkit::receiver::Receiver;

use super::{carrier, send, start, wait_for_submits};
use crate::chain::wait_for_reported_states;

/// UTF-16 units that fit into one part of a long text.
const UNITS: usize = 67;

crate::rest::on_both_backends!(a_long_greek_text_is_sent_in_three_parts_and_reported_once);

/// The expected parts of a text. An emoji must not be split between the first two.
fn greek_parts() -> [String; 3] {
    let verse = "Καλημέρα κόσμε, αυτό είναι ένα μήνυμα. ".repeat(4);
    let mut letters = verse.chars();
    let mut take = |count: usize| letters.by_ref().take(count).collect::<String>();
    let first = take(UNITS - 1);
    let second = format!("😀{}", take(UNITS - 2));
    let third = format!("{}😀", take(7));
    [first, second, third]
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

pub(crate) fn hex(octets: &[u8]) -> String {
    let digits: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    digits.concat()
}

fn a_long_greek_text_is_sent_in_three_parts_and_reported_once(backend: Backend) {
    let smsc = NodeJsSmsc::start(&[]);
    let service = start(backend, carrier("alpha", smsc.addr(), ""));
    let receiver = Receiver::start();
    let parts = greek_parts();
    let message = parts.concat();
    let fields =
        json!({"message": message, "from": "Acme", "to": "+306900000001", "expireIn": 3600});
    let id = send(&service, &receiver, &fields);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id.clone(), 1, 0)]);
    // A second report on it would come before the report on a message that is sent now.
    let other = send(&service, &receiver, &json!({}));
    let mut expected = vec![(id, 1, 0), (other, 1, 0)];
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);

    let submits = wait_for_submits(&smsc, 4);
    assert_eq!(submits.len(), 4, "three parts and the other: {submits:?}");
    let reference = &submits[0].short_message[6..8];
    for ((number, part), submit) in (1_u8..).zip(&parts).zip(&submits) {
        let payload = hex(&utf16(part));
        let octets = format!("050003{reference}03{number:02x}{payload}");
        assert_eq!(submit.short_message, octets, "part {number}");
        assert_eq!(
            submit.text.as_deref(),
            Some(part.as_str()),
            "as another implementation reads it"
        );
        let rest = NodeJsSubmit {
            from_ton: 5,
            from_npi: 0,
            from: "Acme".to_owned(),
            to_ton: 1,
            to_npi: 1,
            to: "306900000001".to_owned(),
            esm_class: 0x40,
            data_coding: 8,
            registered_delivery: 1,
            service_type: String::new(),
            message_payload: None,
            payload_text: None,
            sar_msg_ref_num: None,
            sar_total_segments: None,
            sar_segment_seqnum: None,
            ..submit.clone()
        };
        assert_eq!(*submit, rest, "part {number}");
        assert!(is_within_the_hour(&submit.validity_period), "{submit:?}");
    }
    service.check_health();
}

/// Whether this is a relative time of one hour, or a little less.
fn is_within_the_hour(validity: &str) -> bool {
    ["000000010000000R", "0000000059"].iter().any(|start| {
        validity.starts_with(start) && validity.len() == 16 && validity.ends_with("000R")
    })
}

/// How a short message is sent.
struct Expected {
    from: (u8, u8, &'static str),
    esm_class: u8,
    data_coding: u8,
    octets: &'static str,
    text: Option<&'static str>,
}

/// A text in the GSM alphabet, with a name as originator.
const PLAIN: Expected = Expected {
    from: (5, 0, "Acme"),
    esm_class: 0,
    data_coding: 0,
    octets: "48656c6c6f",
    text: Some("Hello"),
};

fn short_messages() -> Vec<(&'static str, Value, Expected)> {
    let header = "%06%05%04%0B%84%23%F0";
    vec![
        ("plain", json!({}), PLAIN),
        (
            "from a number",
            json!({"from": "+37120000009"}),
            Expected {
                from: (1, 1, "37120000009"),
                ..PLAIN
            },
        ),
        (
            "extended characters of GSM-7",
            json!({"message": "5€ [a]{b}~\\|^ @£$_ΔäÑ"}),
            Expected {
                octets: "351b65201b3c611b3e1b28621b291b3d1b2f1b401b142000010211107b5d",
                text: Some("5€ [a]{b}~\\|^ @£$_ΔäÑ"),
                ..PLAIN
            },
        ),
        (
            "8 bits",
            json!({"coding": 1, "message": "Hi\u{0}\u{1b}\u{80}äÿ"}),
            Expected {
                data_coding: 4,
                octets: "4869001b80e4ff",
                text: None,
                ..PLAIN
            },
        ),
        (
            "8 bits with a header",
            json!({"coding": 1, "udh": header, "message": "Hiÿ"}),
            Expected {
                esm_class: 0x40,
                data_coding: 4,
                octets: "0605040b8423f04869ff",
                text: None,
                ..PLAIN
            },
        ),
        (
            "GSM-7 with a header",
            json!({"coding": 0, "udh": "%05%00%03%2A%02%01", "message": "Hello€"}),
            Expected {
                esm_class: 0x40,
                octets: "0500032a020148656c6c6f1b65",
                text: Some("Hello€"),
                ..PLAIN
            },
        ),
        (
            "UCS-2 with a header",
            json!({"coding": 2, "udh": "%05%00%03%2A%02%02", "message": "Hş😀"}),
            Expected {
                esm_class: 0x40,
                data_coding: 8,
                octets: "0500032a02020048015fd83dde00",
                text: Some("Hş😀"),
                ..PLAIN
            },
        ),
    ]
}

#[test]
fn short_messages_are_encoded_correctly() {
    let smsc = NodeJsSmsc::start(&[]);
    let service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), ""));
    let receiver = Receiver::start();
    for (number, (case, fields, expected)) in (1..).zip(short_messages()) {
        send(&service, &receiver, &fields);
        let submit = wait_for_submits(&smsc, number).pop().expect("the newest");
        assert_eq!(submit.short_message, expected.octets, "{case}");
        assert_eq!(submit.text.as_deref(), expected.text, "{case}");
        let from = (submit.from_ton, submit.from_npi, submit.from.as_str());
        assert_eq!(from, expected.from, "{case}");
        let rest = (
            submit.esm_class,
            submit.data_coding,
            submit.registered_delivery,
        );
        assert_eq!(
            rest,
            (expected.esm_class, expected.data_coding, 1),
            "{case}"
        );
        let reports = wait_for_reported_states(&receiver, number);
        assert!(
            reports
                .iter()
                .all(|(_, status, error)| (*status, *error) == (1, 0)),
            "{case}: {reports:?}"
        );
    }
    assert_eq!(receiver.count(), short_messages().len());
}
