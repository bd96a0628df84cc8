//! Receipts in TLVs, in texts and in both.

use proptest::prelude::*;

use super::*;
use crate::smpp::code;

fn ended(id: &str, outcome: Outcome) -> Parsed {
    Parsed::Final {
        id: id.to_owned(),
        outcome,
    }
}

#[test]
fn tlvs_count_first_and_the_text_fills_what_they_lack() {
    let text = b"id:7 sub:001 dlvrd:000 stat:UNDELIV err:006 text:x";
    let marked = DeliveryFields {
        esm_class: RECEIPT,
        ..DeliveryFields::default()
    };
    let failed = |number| Outcome::Failed(code(number));
    let cases = [
        (
            "text only",
            DeliveryFields { text, ..marked },
            ended("7", failed(43)),
        ),
        (
            "TLVs only",
            DeliveryFields {
                id: Some(b"7\0"),
                state: Some(5),
                network_error: Some(&[3, 0, 1]),
                ..marked
            },
            ended("7\0", failed(40)),
        ),
        (
            "both, and they differ",
            DeliveryFields {
                text,
                id: Some(b"8"),
                state: Some(2),
                ..marked
            },
            ended("8", Outcome::Delivered),
        ),
        (
            "the name by TLV, the rest by text",
            DeliveryFields {
                text,
                id: Some(b"8"),
                ..marked
            },
            ended("8", failed(43)),
        ),
        (
            "the state by TLV, the rest by text",
            DeliveryFields {
                text,
                state: Some(3),
                ..marked
            },
            ended("7", Outcome::Expired),
        ),
        (
            "the cause by TLV, the rest by text",
            DeliveryFields {
                text,
                network_error: Some(&[3, 0, 13]),
                ..marked
            },
            ended("7", failed(41)),
        ),
        (
            "TLVs that say nothing",
            DeliveryFields {
                text,
                id: Some(b"\0"),
                state: Some(77),
                network_error: Some(&[3, 0, 0]),
                ..marked
            },
            ended("7", failed(43)),
        ),
        (
            "UCS-2",
            DeliveryFields {
                text: b"\0i\0d\0:\x007\0 \0s\0t\0a\0t\0:\x002",
                ..marked
            },
            ended("7", Outcome::Delivered),
        ),
        (
            "a text that is not UTF-8",
            DeliveryFields {
                text: b"id:7 stat:DELIVRD text:caf\xE9",
                ..marked
            },
            ended("7", Outcome::Delivered),
        ),
    ];
    for (name, fields, expected) in cases {
        assert_eq!(parse(&fields), expected, "{name}");
    }
}

#[test]
fn receipts_and_messages_are_distinguished() {
    let receipt = b"id:7 stat:DELIVRD err:000".as_slice();
    let delivered = || ended("7", Outcome::Delivered);
    let cases = [
        ("marked", 0x04, receipt, None, delivered()),
        (
            "marked, with a header flag",
            0x44,
            receipt,
            None,
            delivered(),
        ),
        (
            "not marked, although it reads as one",
            0x00,
            receipt,
            None,
            Parsed::Message,
        ),
        (
            "not marked, but with a name",
            0x00,
            b"stat:DELIVRD",
            Some(b"7".as_slice()),
            delivered(),
        ),
        (
            "intermediate",
            0x20,
            receipt,
            Some(b"7"),
            Parsed::Intermediate,
        ),
        (
            "acknowledged by the handset",
            0x08,
            receipt,
            Some(b"7"),
            Parsed::Intermediate,
        ),
        (
            "marked, still on its way",
            0x04,
            b"id:7 stat:ENROUTE",
            None,
            Parsed::Intermediate,
        ),
        (
            "marked, with a word of its own",
            0x04,
            b"id:7 stat:HANDSET",
            None,
            Parsed::Intermediate,
        ),
        (
            "marked, without a state",
            0x04,
            b"id:7",
            None,
            Parsed::Intermediate,
        ),
        (
            "marked, without a name",
            0x04,
            b"stat:DELIVRD",
            None,
            Parsed::WithoutId,
        ),
        ("marked, and empty", 0x04, b"", None, Parsed::WithoutId),
        ("a message", 0x00, b"Yes, please", None, Parsed::Message),
        (
            "a message with a header",
            0x40,
            b"\x05\x00\x03\x01\x02\x01Yes",
            None,
            Parsed::Message,
        ),
        (
            "a message that says id:",
            0x00,
            b"my id: 7, stat: fine",
            None,
            Parsed::Message,
        ),
        ("a name, no state", 0, b"Yes", Some(b"7"), Parsed::Message),
        ("an answer of a user", 0x10, b"Yes", None, Parsed::Message),
    ];
    for (name, esm_class, text, id, expected) in cases {
        let fields = DeliveryFields {
            esm_class,
            text,
            id,
            ..DeliveryFields::default()
        };
        assert_eq!(parse(&fields), expected, "{name}");
    }
}

#[test]
fn a_carrier_may_be_set_to_send_unmarked_receipts() {
    for (text, expected) in [
        (
            b"id:7 stat:DELIVRD err:000".as_slice(),
            ended("7", Outcome::Delivered),
        ),
        (b"my id: 7, stat: fine", Parsed::Message),
        (b"Yes, please", Parsed::Message),
    ] {
        let fields = DeliveryFields {
            text,
            may_be_unmarked: true,
            ..DeliveryFields::default()
        };
        assert_eq!(parse(&fields), expected);
    }
}

proptest! {
    #[test]
    fn reading_anything_never_panics(
        esm_class: u8,
        text: Vec<u8>,
        id in prop::option::of(any::<Vec<u8>>()),
        state: Option<u8>,
        network_error in prop::option::of(any::<Vec<u8>>()),
        may_be_unmarked: bool,
    ) {
        parse(&DeliveryFields {
            esm_class,
            text: &text,
            id: id.as_deref(),
            state,
            network_error: network_error.as_deref(),
            may_be_unmarked,
        });
    }

    #[test]
    fn only_a_known_end_is_final(state: u8) {
        let fields = DeliveryFields { esm_class: RECEIPT, id: Some(b"1"), state: Some(state), ..DeliveryFields::default() };
        let is_final = matches!(parse(&fields), Parsed::Final { .. });
        prop_assert_eq!(is_final, matches!(state, 2..=5 | 7..=9));
    }
}
