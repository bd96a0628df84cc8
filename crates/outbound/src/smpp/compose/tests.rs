//! Short messages, field by field.

use domain::delivery::Claim;
use domain::message::text::{Shape, Udh, measure, measure_as};
use domain::{AccountId, Channel, Msisdn, Priority};
use proptest::prelude::*;

use super::*;

fn settings() -> SmppSettings {
    SmppSettings::new("alpha", "127.0.0.1:2775", "user", "hush")
}

fn queued(id: u64, text: &str, shape: Shape) -> QueuedMessage {
    QueuedMessage {
        id: MessageId::new(id).expect("in range"),
        account: AccountId::new(1).expect("in range"),
        channel: Channel::Sms,
        to: Msisdn::parse("+37120000001").expect("a number"),
        from: Some(Originator::Name("Acme".to_owned())),
        text: text.to_owned(),
        interactive: None,
        shape,
        udh: None,
        priority: Priority::Normal,
        test_mode: None,
        notice: false,
        expires_at: Timestamp::from_second(90_061).expect("in range"),
        claim: Claim {
            due_at: Timestamp::UNIX_EPOCH,
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    }
}

fn queued_text(text: &str) -> QueuedMessage {
    queued(0x1_0203, text, measure(text).expect("a text"))
}

fn composed(settings: &SmppSettings, queued: &QueuedMessage) -> Vec<ShortMessage> {
    compose(settings, queued, Timestamp::UNIX_EPOCH)
}

#[test]
fn a_short_text_fills_every_field() {
    let expected = ShortMessage {
        source: Address::new(5, 0, "Acme"),
        destination: Address::new(1, 1, "37120000001"),
        validity_period: "000001010101000R".into(),
        registered_delivery: 1,
        short_message: Bytes::from_static(b"Hi \x00"),
        ..ShortMessage::default()
    };
    assert_eq!(composed(&settings(), &queued_text("Hi @")), [expected]);
}

#[test]
fn each_coding_has_its_number_and_its_octets() {
    let latin1 = SmppSettings {
        gsm7: Gsm7Form::Latin1,
        ..settings()
    };
    let ucs2 = SmppSettings {
        ucs2_coding: 0x18,
        ..settings()
    };
    let plain = settings();
    let cases = [
        (
            "GSM-7",
            &plain,
            "[é@",
            Coding::Gsm7,
            0,
            &[0x1B, 0x3C, 0x05, 0x00][..],
        ),
        ("UCS-2", &plain, "ж", Coding::Ucs2, 8, &[0x04, 0x36]),
        (
            "UCS-2 by another number",
            &ucs2,
            "ж",
            Coding::Ucs2,
            0x18,
            &[0x04, 0x36],
        ),
        ("8-bit", &plain, "\0ÿ", Coding::Binary, 4, &[0x00, 0xFF]),
        ("Latin-1", &latin1, "[é@", Coding::Gsm7, 3, b"[\xE9@"),
        (
            "not in Latin-1",
            &latin1,
            "é€",
            Coding::Gsm7,
            0,
            &[0x05, 0x1B, 0x65],
        ),
        ("a Greek capital", &latin1, "Ω", Coding::Gsm7, 0, &[0x15]),
        (
            "8-bit stays so",
            &latin1,
            "\0ÿ",
            Coding::Binary,
            4,
            &[0x00, 0xFF],
        ),
    ];
    for (name, settings, text, coding, data_coding, octets) in cases {
        let shape = measure_as(text, coding, None).expect(name);
        let messages = composed(settings, &queued(7, text, shape));
        assert_eq!(messages.len(), 1, "{name}");
        assert_eq!(messages[0].data_coding, data_coding, "{name}");
        assert_eq!(messages[0].short_message, octets, "{name}");
        assert_eq!(messages[0].esm_class, 0, "{name}");
    }
}

#[test]
fn a_long_text_is_joined_as_the_carrier_wants() {
    let text = "a".repeat(400);
    let queued = queued_text(&text);

    let by_header = composed(&settings(), &queued);
    for (sequence, message) in (1..).zip(&by_header) {
        assert_eq!(message.esm_class, 0x40);
        assert_eq!(message.short_message[..6], [5, 0, 3, 0x03, 3, sequence]);
        assert!(message.tlvs.is_empty());
    }
    let lengths: Vec<usize> = by_header.iter().map(|m| m.short_message.len()).collect();
    assert_eq!(lengths, [159, 159, 100]);

    let sar = SmppSettings {
        long_text: LongText::Sar,
        ..settings()
    };
    let by_tlvs = composed(&sar, &queued);
    assert_eq!(by_tlvs.len(), 3);
    for (sequence, message) in (1..).zip(&by_tlvs) {
        assert_eq!(message.esm_class, 0);
        assert_eq!(message.tlvs.sar_msg_ref_num(), Some(0x0203));
        assert_eq!(message.tlvs.sar_total_segments(), Some(3));
        assert_eq!(message.tlvs.sar_segment_seqnum(), Some(sequence));
        assert!(message.short_message.iter().all(|octet| *octet == b'a'));
    }

    let payload = SmppSettings {
        long_text: LongText::Payload,
        ..settings()
    };
    let whole = composed(&payload, &queued);
    assert_eq!(whole.len(), 1);
    assert!(whole[0].short_message.is_empty());
    assert_eq!(whole[0].esm_class, 0);
    assert_eq!(
        whole[0].tlvs.message_payload().map(|p| &p[..]),
        Some(text.as_bytes())
    );

    let latin1 = SmppSettings {
        gsm7: Gsm7Form::Latin1,
        ..settings()
    };
    let text = "é[".repeat(100);
    let messages = composed(&latin1, &queued_text(&text));
    let written: Vec<u8> = messages
        .iter()
        .flat_map(|m| m.short_message[6..].to_vec())
        .collect();
    assert_eq!(written, b"\xE9[".repeat(100));
    assert_eq!(messages.len(), 2, "as many parts as were paid");
}

#[test]
fn the_callers_own_header_goes_as_it_is_however_long_texts_go() {
    let udh: Udh = "%05%00%03%2A%02%01".parse().expect("a header");
    for long_text in [LongText::Udh, LongText::Sar, LongText::Payload] {
        let settings = SmppSettings {
            long_text,
            ..settings()
        };
        let shape = measure_as("ab", Coding::Gsm7, Some(&udh)).expect("short");
        let queued = QueuedMessage {
            udh: Some(udh.clone()),
            ..queued(7, "ab", shape)
        };
        let messages = composed(&settings, &queued);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].esm_class, 0x40);
        assert_eq!(
            messages[0].short_message[..],
            [5, 0, 3, 0x2A, 2, 1, b'a', b'b']
        );
        assert!(messages[0].tlvs.is_empty());
    }
}

#[test]
fn addresses_are_numbered_by_what_they_are_unless_set() {
    let set = SmppSettings {
        source_ton: Some(0),
        source_npi: Some(9),
        dest_ton: Some(2),
        dest_npi: Some(8),
        ..settings()
    };
    let number = Originator::Msisdn(Msisdn::parse("+37120000002").expect("a number"));
    let name = |name: &str| Originator::Name(name.to_owned());
    for (from, (ton, npi, letters)) in [
        (Some(number), (1, 1, "37120000002")),
        (Some(name("Acme Inc.")), (5, 0, "Acme Inc.")),
        (Some(name("1882")), (3, 0, "1882")),
        (None, (0, 0, "")),
    ] {
        let queued = QueuedMessage {
            from,
            ..queued_text("Hi")
        };
        let [automatic, by_setting] = [&settings(), &set].map(|s| composed(s, &queued).remove(0));
        assert_eq!(automatic.source, Address::new(ton, npi, letters));
        assert_eq!(automatic.destination, Address::new(1, 1, "37120000001"));
        assert_eq!(by_setting.source, Address::new(0, 9, letters));
        assert_eq!(by_setting.destination, Address::new(2, 8, "37120000001"));
    }
}

#[test]
fn the_time_that_is_left_is_relative_and_within_bounds() {
    for (left_s, expected) in [
        (259_200, "000003000000000R"),
        (93_784, "000001020304000R"),
        (60, "000000000100000R"),
        (1, "000000000100000R"),
        (-5, "000000000100000R"),
        (i64::MAX, "000030000000000R"),
    ] {
        assert_eq!(validity(left_s), expected, "{left_s}");
    }
    let silent = SmppSettings {
        validity: false,
        registered_delivery: 0x11,
        service_type: "CMT".to_owned(),
        ..settings()
    };
    let message = composed(&silent, &queued_text("Hi")).remove(0);
    assert!(message.validity_period.is_empty());
    assert_eq!(message.registered_delivery, 0x11);
    assert_eq!(message.service_type, "CMT");
}

proptest! {
    #[test]
    fn any_text_is_sent_whole_in_what_was_paid(
        text in "[a-zA-Z0-9 @\\[€éΩж😀]{1,600}",
        id in 1_u64..1 << 53,
        long_text in prop::sample::select(vec![LongText::Udh, LongText::Sar, LongText::Payload]),
        gsm7 in prop::sample::select(vec![Gsm7Form::Default, Gsm7Form::Latin1]),
    ) {
        let shape = measure(&text).expect("a text");
        let settings = SmppSettings { gsm7, long_text, ..settings() };
        let queued = queued(id, &text, shape);
        let messages = composed(&settings, &queued);
        let expected = if long_text == LongText::Payload { 1 } else { usize::from(shape.parts) };
        prop_assert_eq!(messages.len(), expected);
        let mut octets = Vec::new();
        for message in &messages {
            prop_assert!(message.short_message.len() <= 160);
            let header = if message.esm_class & HAS_HEADER != 0 { 6 } else { 0 };
            octets.extend_from_slice(&message.text()[header..]);
        }
        let shown = match messages[0].data_coding {
            DEFAULT_ALPHABET => decode(Coding::Gsm7, &octets),
            LATIN1 => decode(Coding::Binary, &octets),
            _ => decode(Coding::Ucs2, &octets),
        };
        prop_assert_eq!(shown, text);
        prop_assert_eq!(composed(&settings, &queued), messages, "again the same");
    }
}
