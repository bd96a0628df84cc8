//! Each PDU and its exact octets, encoded and decoded.

use bytes::BytesMut;
use smpp::{
    Address, AlertNotification, Bind, BindKind, BindResp, Body, BodyError, CancelSm, DataMessage,
    Decoder, Destination, EncodeError, FatalLength, Frame, MessageResp, Outbind, Pdu, QuerySm,
    QuerySmResp, ReplaceSm, ShortMessage, Status, SubmitMulti, SubmitMultiResp, Tlvs, command,
    encode, message_state, tag,
};

use crate::notation::octets;

fn decode(octets: &[u8]) -> Frame {
    let mut buffer = BytesMut::from(octets);
    let frame = Decoder::default().next(&mut buffer).expect("a length");
    assert!(buffer.is_empty(), "all octets belong to the frame");
    frame.expect("a whole frame")
}

fn pdu(written: &str) -> Pdu {
    match decode(&octets(written)) {
        Frame::Ok(pdu) => pdu,
        bad @ Frame::Bad { .. } => panic!("{bad:?}"),
    }
}

fn written(pdu: &Pdu) -> Vec<u8> {
    let mut out = BytesMut::from(&b"before"[..]);
    encode(pdu, &mut out).expect("valid");
    assert!(out.starts_with(b"before"));
    out[6..].to_vec()
}

/// Checks that the PDU encodes to these octets and decodes from them.
fn both_ways(name: &str, pdu: &Pdu, expected: &str) {
    assert_eq!(written(pdu), octets(expected), "{name} is written");
    assert_eq!(
        decode(&octets(expected)),
        Frame::Ok(pdu.clone()),
        "{name} is read"
    );
}

fn phone() -> Address {
    Address::new(1, 1, "31612")
}

fn name() -> Address {
    Address::new(5, 0, "Shop")
}

fn bind() -> Box<Bind> {
    Box::new(Bind {
        system_id: "esme".into(),
        password: "pw".into(),
        system_type: "vm".into(),
        interface_version: 0x34,
        address_range: Address::new(1, 2, "316"),
    })
}

fn message() -> ShortMessage {
    let mut tlvs = Tlvs::new();
    tlvs.push_u16(tag::SAR_MSG_REF_NUM, 0x0102);
    tlvs.push(0x1501, &b"odd"[..]);
    ShortMessage {
        service_type: "CMT".into(),
        source: name(),
        destination: phone(),
        esm_class: 0x40,
        protocol_id: 1,
        priority_flag: 2,
        schedule_delivery_time: "t1".into(),
        validity_period: "t2".into(),
        registered_delivery: 3,
        replace_if_present: 4,
        data_coding: 8,
        default_message_id: 5,
        short_message: (&[0x00, 0xFF, 0x41][..]).into(),
        tlvs,
    }
}

const MESSAGE: &str = "'CMT'00 05 00 'Shop'00 01 01 '31612'00 40 01 02 't1'00 't2'00 03 04 08 05
                       03 00FF41 020C 0002 0102 1501 0003 'odd'";

#[test]
fn binds() {
    let body = "'esme'00 'pw'00 'vm'00 34 01 02 '316'00";
    for (kind, id) in [
        (BindKind::Receiver, "00000001"),
        (BindKind::Transmitter, "00000002"),
        (BindKind::Transceiver, "00000009"),
    ] {
        both_ways(
            "a bind",
            &Pdu::new(1, Body::Bind(kind, bind())),
            &format!("00000022 {id} 00000000 00000001 {body}"),
        );
    }
}

#[test]
fn answers_to_binds() {
    let mut tlvs = Tlvs::new();
    tlvs.push_u8(tag::SC_INTERFACE_VERSION, 0x34);
    let resp = BindResp {
        system_id: "smsc".into(),
        tlvs,
    };
    for (kind, id) in [
        (BindKind::Receiver, "80000001"),
        (BindKind::Transmitter, "80000002"),
        (BindKind::Transceiver, "80000009"),
    ] {
        both_ways(
            "an answer",
            &Pdu::new(1, Body::BindResp(kind, resp.clone())),
            &format!("0000001A {id} 00000000 00000001 'smsc'00 0210 0001 34"),
        );
        both_ways(
            "a refusal",
            &Pdu::with_status(
                Status::ESME_RINVPASWD,
                1,
                Body::BindResp(kind, BindResp::default()),
            ),
            &format!("00000010 {id} 0000000E 00000001"),
        );
    }
}

#[test]
fn messages() {
    for (body, id) in [
        (Body::SubmitSm(Box::new(message())), "00000004"),
        (Body::DeliverSm(Box::new(message())), "00000005"),
    ] {
        both_ways(
            "a message",
            &Pdu::new(7, body),
            &format!("00000041 {id} 00000000 00000007 {MESSAGE}"),
        );
    }
    let data = DataMessage {
        service_type: "CMT".into(),
        source: name(),
        destination: phone(),
        esm_class: 1,
        registered_delivery: 2,
        data_coding: 3,
        tlvs: [(tag::MESSAGE_PAYLOAD, (&b"hi"[..]).into())]
            .into_iter()
            .collect(),
    };
    both_ways(
        "data_sm",
        &Pdu::new(7, Body::DataSm(Box::new(data))),
        "0000002C 00000103 00000000 00000007 'CMT'00 05 00 'Shop'00 01 01 '31612'00 01 02 03 0424 0002 'hi'",
    );
}

#[test]
fn answers_to_messages() {
    let resp = || MessageResp::new("a1");
    for (body, id) in [
        (Body::SubmitSmResp(resp()), "80000004"),
        (Body::DeliverSmResp(resp()), "80000005"),
        (Body::DataSmResp(resp()), "80000103"),
    ] {
        both_ways(
            "an answer",
            &Pdu::new(0x7FFF_FFFF, body),
            &format!("00000013 {id} 00000000 7FFFFFFF 'a1'00"),
        );
    }
    let none = MessageResp::default;
    for (name, body, expected) in [
        (
            "a refused submit_sm",
            Body::SubmitSmResp(none()),
            "00000010 80000004 00000058 00000002",
        ),
        (
            "a refused deliver_sm",
            Body::DeliverSmResp(none()),
            "00000011 80000005 00000058 00000002 00",
        ),
        (
            "a refused data_sm",
            Body::DataSmResp(none()),
            "00000011 80000103 00000058 00000002 00",
        ),
    ] {
        let pdu = Pdu::with_status(Status::ESME_RTHROTTLED, 2, body);
        both_ways(name, &pdu, expected);
    }
}

#[test]
fn submit_multi() {
    let multi = SubmitMulti {
        message: ShortMessage {
            source: name(),
            registered_delivery: 1,
            short_message: "hi".into(),
            ..ShortMessage::default()
        },
        destinations: vec![
            Destination::Address(phone()),
            Destination::List("all".into()),
        ],
    };
    let resp = SubmitMultiResp {
        message_id: "a1".into(),
        unsuccessful: vec![(phone(), Status::ESME_RINVDSTADR)],
        tlvs: Tlvs::new(),
    };
    both_ways(
        "submit_multi",
        &Pdu::new(3, Body::SubmitMulti(Box::new(multi))),
        "00000033 00000021 00000000 00000003 00 05 00 'Shop'00 02 01 01 01 '31612'00 02 'all'00 000000 00 00 01000000 02 'hi'",
    );
    both_ways(
        "submit_multi_resp",
        &Pdu::new(3, Body::SubmitMultiResp(Box::new(resp))),
        "00000020 80000021 00000000 00000003 'a1'00 01 01 01 '31612'00 0000000B",
    );
    let bad = "00000016 00000021 00000000 00000003 00 00 00 00 01 03";
    match decode(&octets(bad)) {
        Frame::Bad { why, .. } => assert_eq!(why, BodyError::DestinationFlag(3)),
        good @ Frame::Ok(_) => panic!("{good:?}"),
    }
}

#[test]
fn other_pdus() {
    let query = QuerySm {
        message_id: "a1".into(),
        source: phone(),
    };
    let queried = QuerySmResp {
        message_id: "a1".into(),
        final_date: "t".into(),
        message_state: message_state::DELIVERED,
        error_code: 9,
    };
    let cancel = CancelSm {
        service_type: "X".into(),
        message_id: "a1".into(),
        source: name(),
        destination: phone(),
    };
    let replace = ReplaceSm {
        message_id: "a1".into(),
        source: phone(),
        schedule_delivery_time: "t".into(),
        validity_period: "u".into(),
        registered_delivery: 1,
        default_message_id: 2,
        short_message: "hi".into(),
        tlvs: Tlvs::new(),
    };
    let mut tlvs = Tlvs::new();
    tlvs.push_u8(tag::MS_AVAILABILITY_STATUS, 0);
    let alert = AlertNotification {
        source: phone(),
        esme: name(),
        tlvs,
    };
    let outbind = Outbind {
        system_id: "smsc".into(),
        password: "pw".into(),
    };
    let unknown = Body::Unknown {
        command: 0x0001_0203,
        octets: "?!".into(),
    };
    #[rustfmt::skip]
    let table = [
        (Body::Unbind, "00000010 00000006 00000000 00000003"),
        (Body::UnbindResp, "00000010 80000006 00000000 00000003"),
        (Body::EnquireLink, "00000010 00000015 00000000 00000003"),
        (Body::EnquireLinkResp, "00000010 80000015 00000000 00000003"),
        (Body::GenericNack, "00000010 80000000 00000000 00000003"),
        (Body::CancelSmResp, "00000010 80000008 00000000 00000003"),
        (Body::ReplaceSmResp, "00000010 80000007 00000000 00000003"),
        (Body::Outbind(Box::new(outbind)), "00000018 0000000B 00000000 00000003 'smsc'00 'pw'00"),
        (Body::QuerySm(Box::new(query)), "0000001B 00000003 00000000 00000003 'a1'00 01 01 '31612'00"),
        (Body::QuerySmResp(Box::new(queried)), "00000017 80000003 00000000 00000003 'a1'00 't'00 02 09"),
        (Body::CancelSm(Box::new(cancel)), "00000024 00000008 00000000 00000003 'X'00 'a1'00 05 00 'Shop'00 01 01 '31612'00"),
        (Body::ReplaceSm(Box::new(replace)), "00000024 00000007 00000000 00000003 'a1'00 01 01 '31612'00 't'00 'u'00 01 02 02 'hi'"),
        (Body::AlertNotification(Box::new(alert)), "00000024 00000102 00000000 00000003 01 01 '31612'00 05 00 'Shop'00 0422 0001 00"),
        (unknown, "00000012 00010203 00000000 00000003 '?!'"),
    ];
    for (body, expected) in table {
        let name = command::name(body.command()).unwrap_or("unknown");
        both_ways(name, &Pdu::new(3, body), expected);
    }
}

#[test]
fn malformed_pdus_are_still_read() {
    let id = |id: &'static str| Body::SubmitSmResp(MessageResp::new(id));
    #[rustfmt::skip]
    let table = [
        ("no NUL after the ID", "00000012 80000004 00000000 00000001 'a1'", id("a1")),
        ("no body and no error", "00000010 80000004 00000000 00000001", id("")),
        ("a stray NUL at the end", "00000014 80000004 00000000 00000001 'a1'00 00", id("a1")),
        ("half a tag", "00000014 80000004 00000000 00000001 'a1'00 04", id("a1")),
        ("a tag without a length", "00000015 80000004 00000000 00000001 'a1'00 0427", id("a1")),
        ("a parameter that is cut off", "00000018 80000004 00000000 00000001 'a1'00 0427 0002 01", id("a1")),
        ("a body in enquire_link", "00000013 00000015 00000000 00000001 'abc'", Body::EnquireLink),
        ("a body in generic_nack", "00000011 80000000 00000000 00000001 00", Body::GenericNack),
        ("a short query_sm_resp", "00000013 80000003 00000000 00000001 'a1'00",
            Body::QuerySmResp(Box::new(QuerySmResp { message_id: "a1".into(), ..QuerySmResp::default() }))),
        ("a bind_resp without NUL", "00000012 80000009 00000000 00000001 'ab'",
            Body::BindResp(BindKind::Transceiver, BindResp { system_id: "ab".into(), tlvs: Tlvs::new() })),
        ("an outbind without password", "00000012 0000000B 00000000 00000001 'ab'",
            Body::Outbind(Box::new(Outbind { system_id: "ab".into(), ..Outbind::default() }))),
    ];
    for (name, written, expected) in table {
        assert_eq!(pdu(written).body, expected, "{name}");
    }
    let error = pdu("00000014 80000004 00000045 00000001 'x'00 0000");
    assert_eq!(
        (error.status, error.body),
        (Status::ESME_RSUBMITFAIL, id("x")),
        "a body in an error"
    );
    let cut = "0000003F 00000005 00000000 00000007 'CMT'00 05 00 'Shop'00 01 01 '31612'00 40 01 02
               't1'00 't2'00 03 04 08 05 03 00FF41 020C 0002 0102 1501 0003 'o'";
    let Body::DeliverSm(message) = pdu(cut).body else {
        panic!("a deliver_sm");
    };
    assert_eq!(message.short_message.as_ref(), [0x00, 0xFF, 0x41]);
    assert_eq!(message.tlvs.len(), 1, "the complete parameter is kept");
}

#[test]
fn unreadable_bodies_can_be_refused() {
    let cut = |field| BodyError::Truncated { field };
    let short = BodyError::ShortMessage {
        declared: 5,
        present: 2,
    };
    #[rustfmt::skip]
    let table = [
        ("nothing", "00000010 00000004 00000000 00000009", cut("source_addr"), Status::ESME_RINVCMDLEN),
        ("no fixed fields", "00000016 00000005 00000000 00000009 'CMT'00 05 00", cut("destination_addr"), Status::ESME_RINVCMDLEN),
        ("no length", "00000020 00000004 00000000 00000009 00 0000 00 0000 00 000000 00 00 00000000", cut("sm_length"), Status::ESME_RINVCMDLEN),
        ("a text that is cut off", "00000023 00000004 00000000 00000009 00 0000 00 0000 00 000000 00 00 00000000 05 'hi'", short, Status::ESME_RINVMSGLEN),
        ("a bind without version", "00000015 00000009 00000000 00000009 'esme'00", cut("interface_version"), Status::ESME_RINVCMDLEN),
    ];
    for (name, written, expected, status) in table {
        match decode(&octets(written)) {
            Frame::Bad { sequence, why, .. } => {
                assert_eq!((sequence, why), (9, expected), "{name}");
                assert_eq!(why.status(), status, "{name}");
            }
            Frame::Ok(pdu) => panic!("{name}: {pdu:?}"),
        }
    }
}

#[test]
fn absurd_lengths_end_the_stream() {
    for (length, known) in [
        (0, false),
        (15, false),
        (16, true),
        (65_536, true),
        (65_537, false),
        (u32::MAX, false),
    ] {
        let mut buffer = BytesMut::from(&length.to_be_bytes()[..]);
        let found = Decoder::default().next(&mut buffer);
        let expected = if known {
            Ok(None)
        } else {
            Err(FatalLength(length))
        };
        assert_eq!(found, expected, "{length}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let with = |change: fn(&mut ShortMessage)| {
        let mut message = ShortMessage::default();
        change(&mut message);
        Body::SubmitSm(Box::new(message))
    };
    let long = |field, length, limit| EncodeError::TooLong {
        field,
        length,
        limit,
    };
    let table = [
        (
            with(|message| message.short_message = vec![1; 256].into()),
            long("short_message", 256, 255),
        ),
        (
            with(|message| message.destination.digits = vec![b'1'; 21].into()),
            long("destination_addr", 21, 20),
        ),
        (
            with(|message| message.source.digits = "a\0b".into()),
            EncodeError::Nul {
                field: "source_addr",
            },
        ),
        (
            with(|message| message.tlvs.push(tag::MESSAGE_PAYLOAD, vec![0; 65_536])),
            long("message_payload", 65_536, 65_535),
        ),
        (
            Body::SubmitSmResp(MessageResp::new(vec![b'1'; 65])),
            long("message_id", 65, 64),
        ),
    ];
    for (body, expected) in table {
        let mut out = BytesMut::from(&b"before"[..]);
        assert_eq!(encode(&Pdu::new(1, body), &mut out), Err(expected));
        assert_eq!(out.as_ref(), b"before", "nothing is left behind");
    }
}
