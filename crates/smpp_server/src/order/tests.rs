use domain::billing::NotPaid;
use domain::ports::StoreError;
use domain::{Money, Msisdn, Originator};

use super::*;

fn message() -> ShortMessage {
    ShortMessage {
        source: Address::new(5, 0, "Acme"),
        destination: Address::new(1, 1, "447700900123"),
        short_message: "Hello".into(),
        ..ShortMessage::default()
    }
}

fn read_now(message: &ShortMessage) -> Result<Order, Status> {
    let now = "2030-01-31T07:00:00Z".parse().expect("a time");
    read(message, "acme", now)
}

#[test]
fn a_plain_message_becomes_a_plain_request() {
    let order = read_now(&message()).expect("valid");
    assert_eq!(order.receipts, None);
    let sms = order.sms;
    assert_eq!(sms.to, To::List(vec!["447700900123".into()]));
    assert_eq!((&*sms.from, &*sms.message), ("Acme", "Hello"));
    assert_eq!((sms.coding, sms.udh), (Some(0), None));
    assert_eq!(sms.priority.as_deref(), Some("normal"));
    assert_eq!((sms.scheduled, sms.expire_in), (None, None));
}

#[test]
fn codings_are_those_of_the_specification() {
    for (data_coding, octets, expected) in [
        (0, &b"a\0"[..], Ok(("a@", Some(0)))),
        (1, b"b", Ok(("b", Some(0)))),
        (0, b"a\x80", Err(Status::ESME_RINVDCS)),
        (3, b"\xE4\xF8", Ok(("äø", None))),
        (4, b"\x01\xFF", Ok(("\u{1}\u{FF}", Some(1)))),
        (2, b"x", Ok(("x", Some(1)))),
        (4, &[0; 141], Err(Status::ESME_RINVMSGLEN)),
        (8, b"\x04\x16", Ok(("Ж", Some(2)))),
        (8, b"\x04", Err(Status::ESME_RINVMSGLEN)),
        (6, b"x", Err(Status::ESME_RINVDCS)),
        // Class 1; class 0 cannot be sent on.
        (0xF1, b"a\0", Ok(("a@", Some(0)))),
        (0x11, b"b", Ok(("b", Some(0)))),
        (0xF5, b"\x01\xFF", Ok(("\u{1}\u{FF}", Some(1)))),
        (0x15, b"x", Ok(("x", Some(1)))),
        (0x19, b"\x04\x16", Ok(("Ж", Some(2)))),
        (0xF0, b"x", Err(Status::ESME_RINVDCS)),
        (0x10, b"x", Err(Status::ESME_RINVDCS)),
        (0xF6, b"x", Err(Status::ESME_RINVDCS)),
        // The text would not give these octets again.
        (0, b"a\x1B", Err(Status::ESME_RINVDCS)),
        (0, b"\x1Ba", Err(Status::ESME_RINVDCS)),
        (8, b"\0a\xD8\x3D", Err(Status::ESME_RINVDCS)),
        // Longer than one part: the service splits it.
        (0, &[b'x'; 161], Ok(("x", None))),
        (8, &[0x04; 142], Ok(("\u{404}", None))),
    ] {
        let sent = ShortMessage {
            data_coding,
            short_message: bytes::Bytes::copy_from_slice(octets),
            ..message()
        };
        let read = read_now(&sent).map(|order| (order.sms.message, order.sms.coding));
        match (read, expected) {
            (Ok((text, coding)), Ok((start, expected))) => {
                assert!(text.starts_with(start), "{data_coding}: {text}");
                assert_eq!(coding, expected, "{data_coding}: {text}");
            }
            (read, expected) => {
                assert_eq!(read.err(), expected.err(), "{data_coding}");
            }
        }
    }
}

#[test]
fn parts_that_the_client_split_stay_as_they_are() {
    let with_header = ShortMessage {
        esm_class: HAS_HEADER,
        short_message: (&b"\x05\x00\x03\x2A\x02\x01part"[..]).into(),
        ..message()
    };
    let sms = read_now(&with_header).expect("valid").sms;
    assert_eq!(sms.udh.as_deref(), Some("%05%00%03%2A%02%01"));
    assert_eq!((&*sms.message, sms.coding), ("part", Some(0)));

    // Half of an emoji, and half of a character of the extension table.
    for (data_coding, part) in [
        (8, &b"\x05\x00\x03\x2A\x02\x01\xD8\x3D"[..]),
        (0, b"\x05\x00\x03\x2A\x02\x01\x1B"),
    ] {
        let half = ShortMessage {
            esm_class: HAS_HEADER,
            data_coding,
            short_message: part.into(),
            ..message()
        };
        assert_eq!(read_now(&half).err(), Some(Status::ESME_RINVDCS));
    }

    let mut segment = message();
    segment.tlvs.push_u16(tag::SAR_MSG_REF_NUM, 0x1234);
    segment.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 3);
    assert_eq!(
        read_now(&segment).err(),
        Some(Status::ESME_RMISSINGOPTPARAM)
    );
    segment.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 2);
    let sms = read_now(&segment).expect("valid").sms;
    assert_eq!(sms.udh.as_deref(), Some("%05%00%03%34%03%02"));
}

/// Clients that split by themselves make parts of 153 characters, 67 in UCS-2 or 134 octets, with either kind of header.
#[test]
fn parts_of_full_size_fit() {
    for (data_coding, text) in [
        (0, vec![b'x'; 153]),
        (8, vec![4; 134]),
        (4, vec![0xFF; 134]),
    ] {
        let mut segment = ShortMessage {
            data_coding,
            short_message: text.into(),
            ..message()
        };
        segment.tlvs.push_u16(tag::SAR_MSG_REF_NUM, 0x1234);
        segment.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 2);
        segment.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 1);
        let sms = read_now(&segment).expect("valid").sms;
        let (coding, udh) = (sms.coding.expect("given"), sms.udh.expect("given"));
        let coding = Coding::from_number(u8::try_from(coding).expect("small")).expect("known");
        let udh: Udh = udh.parse().expect("valid");
        let measured = measure_as(&sms.message, coding, Some(&udh));
        assert!(measured.is_ok(), "{data_coding}: {measured:?}");
    }
}

/// Some clients name each message as the only segment of itself.
#[test]
fn a_single_segment_is_a_whole_message() {
    let mut single = message();
    single.short_message = vec![b'x'; 160].into();
    single.tlvs.push_u16(tag::SAR_MSG_REF_NUM, 1);
    single.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 1);
    single.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 1);
    let sms = read_now(&single).expect("valid").sms;
    assert_eq!((sms.udh, sms.coding), (None, Some(0)));
}

/// All of it is the same but for one field.
#[test]
fn a_repeated_message_has_the_same_content() {
    type Change = fn(&mut ShortMessage);
    let sent = |change: Change| {
        let mut sent = message();
        sent.tlvs.push_u16(tag::USER_MESSAGE_REFERENCE, 7);
        change(&mut sent);
        repeatable(&sent, "acme").expect("it has a reference")
    };
    assert_eq!(sent(|_| {}), sent(|_| {}));
    assert_eq!(repeatable(&message(), "acme"), None);
    let segment: Change = |it| {
        it.tlvs.push_u16(tag::SAR_MSG_REF_NUM, 1);
        it.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 2);
        it.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 1);
    };
    let next_segment: Change = |it| {
        it.tlvs.push_u16(tag::SAR_MSG_REF_NUM, 1);
        it.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, 2);
        it.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, 2);
    };
    let changes: [(&str, Change); 13] = [
        ("nothing", |_| {}),
        ("segment", segment),
        ("next segment", next_segment),
        ("source", |it| it.source = Address::new(5, 0, "Other")),
        ("source type", |it| it.source.ton = 1),
        ("source plan", |it| it.source.npi = 1),
        ("destination type", |it| it.destination.ton = 2),
        ("destination plan", |it| it.destination.npi = 2),
        ("priority", |it| it.priority_flag = 2),
        ("receipt", |it| it.registered_delivery = 1),
        ("coding", |it| it.data_coding = 1),
        ("validity", |it| {
            it.validity_period = "000000020000000R".into();
        }),
        ("text", |it| it.short_message = "Hallo".into()),
    ];
    for (index, (name, change)) in changes.iter().enumerate() {
        for (other, changed) in &changes[index + 1..] {
            assert_ne!(sent(*change), sent(*changed), "{name}, {other}");
        }
    }
}

#[test]
fn a_refused_submit_has_the_status_of_its_reason() {
    let to = Msisdn::parse("+447700900123").expect("a number");
    let sender = Originator::parse("Acme").expect("a name");
    let none = Money::from_micros(0);
    let balance = NotPaid::Balance {
        cost: none,
        available: none,
    };
    let cap = NotPaid::DailyCap {
        cost: none,
        left: none,
    };
    let away = StoreError::Unavailable {
        source: "away".into(),
    };
    for (error, status) in [
        (SubmitError::NotPaid(balance), Status::ESME_RSUBMITFAIL),
        (SubmitError::NotPaid(cap), Status::ESME_RSUBMITFAIL),
        (
            SubmitError::Country { to, country: None },
            Status::ESME_RSUBMITFAIL,
        ),
        (SubmitError::Sender(sender), Status::ESME_RINVSRCADR),
        (away.into(), Status::ESME_RSYSERR),
        (SubmitError::Busy, Status::ESME_RTHROTTLED),
        (SubmitError::Stopping, Status::ESME_RSYSERR),
        (SubmitError::Suspended, Status::ESME_RSUBMITFAIL),
        (SubmitError::KeyConflict, Status::ESME_RSUBMITFAIL),
    ] {
        assert_eq!(refusal(&error), status, "{error}");
    }
}

#[test]
fn a_long_text_is_in_the_payload() {
    let mut sent = message();
    sent.short_message = bytes::Bytes::new();
    sent.tlvs.push(tag::MESSAGE_PAYLOAD, vec![b'x'; 400]);
    let sms = read_now(&sent).expect("valid").sms;
    assert_eq!((sms.message.len(), sms.coding), (400, None));
    sent.registered_delivery = 1;
    let url = read_now(&sent).expect("valid").receipts.expect("wanted");
    let request = ReceiptRequest::parse(&url).expect("readable");
    assert_eq!(request.parts, 3);
}

#[test]
fn times_priorities_and_receipts_are_read() {
    let sent = ShortMessage {
        schedule_delivery_time: "300131083000004+".into(),
        validity_period: "000000020000000R".into(),
        priority_flag: 3,
        registered_delivery: 1,
        source: Address::new(1, 1, "447700900000"),
        ..message()
    };
    let order = read_now(&sent).expect("valid");
    let url = order.receipts.expect("wanted");
    assert!(url.as_str().starts_with("smpp:acme/1/"), "{}", url.as_str());
    let sms = order.sms;
    assert_eq!(sms.scheduled.as_deref(), Some("2030-01-31T07:30:00Z"));
    assert_eq!(sms.expire_in, Some(5400), "from the send time on");
    assert_eq!(sms.priority.as_deref(), Some("high"));
    assert_eq!(sms.from, "+447700900000");

    let mut lives = message();
    lives.tlvs.push(tag::QOS_TIME_TO_LIVE, vec![0, 0, 14, 16]);
    let sms = read_now(&lives).expect("valid").sms;
    assert_eq!(sms.expire_in, Some(3600));
}

#[test]
fn what_cannot_be_done_is_refused() {
    type Change = fn(&mut ShortMessage);
    let cases: [(Change, Status); 12] = [
        (
            |it| it.tlvs.push(tag::MESSAGE_PAYLOAD, vec![b'x']),
            Status::ESME_RINVMSGLEN,
        ),
        (
            |it| it.tlvs.push_u16(tag::DESTINATION_PORT, 2948),
            Status::ESME_ROPTPARNOTALLWD,
        ),
        (
            |it| it.tlvs.push_u8(tag::DEST_ADDR_SUBUNIT, MS_DISPLAY),
            Status::ESME_ROPTPARNOTALLWD,
        ),
        (|it| it.esm_class = 0x04, Status::ESME_RINVESMCLASS),
        (|it| it.replace_if_present = 1, Status::ESME_RINVREPFLAG),
        (|it| it.default_message_id = 1, Status::ESME_RINVDFTMSGID),
        (|it| it.priority_flag = 9, Status::ESME_RINVPRTFLG),
        (
            |it| it.schedule_delivery_time = "soon".into(),
            Status::ESME_RINVSCHED,
        ),
        (
            |it| it.validity_period = "long".into(),
            Status::ESME_RINVEXPIRY,
        ),
        (
            |it| it.destination.digits = bytes::Bytes::new(),
            Status::ESME_RINVDSTADR,
        ),
        (
            |it| it.source.digits = (&b"\xFF"[..]).into(),
            Status::ESME_RINVSRCADR,
        ),
        (|it| it.esm_class = HAS_HEADER, Status::ESME_RINVMSGLEN),
    ];
    for (change, status) in cases {
        let mut sent = message();
        change(&mut sent);
        assert_eq!(read_now(&sent).err(), Some(status));
    }
}
