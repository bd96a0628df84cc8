//! Random PDUs.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{
    Address, AlertNotification, Bind, BindKind, BindResp, Body, CancelSm, DataMessage, Destination,
    MessageResp, Outbind, Pdu, QuerySm, QuerySmResp, ReplaceSm, ShortMessage, Status, SubmitMulti,
    SubmitMultiResp, Tlvs, command,
};

/// PDUs that can be encoded.
pub(crate) fn any_pdu() -> impl Strategy<Value = Pdu> {
    (any::<u32>(), any::<u32>(), any_body())
        .prop_map(|(status, sequence, body)| Pdu::with_status(Status(status), sequence, body))
}

fn string(longest: usize) -> impl Strategy<Value = Bytes> {
    vec(1..=u8::MAX, 0..=longest).prop_map(Bytes::from)
}

fn address(longest: usize) -> impl Strategy<Value = Address> {
    (any::<u8>(), any::<u8>(), string(longest)).prop_map(|(ton, npi, digits)| Address {
        ton,
        npi,
        digits,
    })
}

fn tlvs() -> impl Strategy<Value = Tlvs> {
    vec((any::<u16>(), vec(any::<u8>(), 0..40)), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(tag, value)| (tag, value.into()))
            .collect()
    })
}

fn kind() -> impl Strategy<Value = BindKind> {
    prop_oneof![
        Just(BindKind::Transmitter),
        Just(BindKind::Receiver),
        Just(BindKind::Transceiver)
    ]
}

fn short_message() -> impl Strategy<Value = Box<ShortMessage>> {
    let addresses = (string(5), address(20), address(20));
    let times = (string(16), string(16));
    (
        addresses,
        times,
        any::<[u8; 7]>(),
        vec(any::<u8>(), 0..=255),
        tlvs(),
    )
        .prop_map(|(addresses, times, octets, text, tlvs)| {
            Box::new(ShortMessage {
                service_type: addresses.0,
                source: addresses.1,
                destination: addresses.2,
                esm_class: octets[0],
                protocol_id: octets[1],
                priority_flag: octets[2],
                schedule_delivery_time: times.0,
                validity_period: times.1,
                registered_delivery: octets[3],
                replace_if_present: octets[4],
                data_coding: octets[5],
                default_message_id: octets[6],
                short_message: text.into(),
                tlvs,
            })
        })
}

fn message_resp() -> impl Strategy<Value = MessageResp> {
    (string(64), tlvs()).prop_map(|(message_id, tlvs)| MessageResp { message_id, tlvs })
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        1 => bind_bodies(),
        4 => short_message().prop_map(Body::SubmitSm),
        4 => short_message().prop_map(Body::DeliverSm),
        2 => message_resp().prop_map(Body::SubmitSmResp),
        1 => message_resp().prop_map(Body::DeliverSmResp),
        1 => message_resp().prop_map(Body::DataSmResp),
        1 => data_message(),
        2 => rare_bodies(),
        1 => prop_oneof![
            Just(Body::Unbind),
            Just(Body::UnbindResp),
            Just(Body::EnquireLink),
            Just(Body::EnquireLinkResp),
            Just(Body::GenericNack),
            Just(Body::CancelSmResp),
            Just(Body::ReplaceSmResp),
        ],
        1 => (any::<u32>(), vec(any::<u8>(), 0..60))
            .prop_filter("known", |(id, _)| command::name(*id).is_none())
            .prop_map(|(command, octets)| Body::Unknown { command, octets: octets.into() }),
    ]
}

fn bind_bodies() -> impl Strategy<Value = Body> {
    let bind = (
        string(15),
        string(8),
        string(12),
        any::<u8>(),
        address(40),
        kind(),
    );
    prop_oneof![
        bind.prop_map(|(system_id, password, system_type, version, range, kind)| {
            let bind = Bind {
                system_id,
                password,
                system_type,
                interface_version: version,
                address_range: range,
            };
            Body::Bind(kind, Box::new(bind))
        }),
        (kind(), string(15), tlvs()).prop_map(|(kind, system_id, tlvs)| {
            Body::BindResp(kind, BindResp { system_id, tlvs })
        }),
        (string(15), string(8)).prop_map(|(system_id, password)| Body::Outbind(Box::new(
            Outbind {
                system_id,
                password
            }
        ))),
    ]
}

fn data_message() -> impl Strategy<Value = Body> {
    (
        string(5),
        address(64),
        address(64),
        any::<[u8; 3]>(),
        tlvs(),
    )
        .prop_map(|(service_type, source, destination, octets, tlvs)| {
            Body::DataSm(Box::new(DataMessage {
                service_type,
                source,
                destination,
                esm_class: octets[0],
                registered_delivery: octets[1],
                data_coding: octets[2],
                tlvs,
            }))
        })
}

fn destination() -> impl Strategy<Value = Destination> {
    prop_oneof![
        address(20).prop_map(Destination::Address),
        string(20).prop_map(Destination::List)
    ]
}

fn rare_bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        (string(64), address(20)).prop_map(|(message_id, source)| Body::QuerySm(Box::new(
            QuerySm { message_id, source }
        ))),
        (string(64), string(16), any::<u8>(), any::<u8>()).prop_map(
            |(message_id, final_date, message_state, error_code)| {
                Body::QuerySmResp(Box::new(QuerySmResp {
                    message_id,
                    final_date,
                    message_state,
                    error_code,
                }))
            }
        ),
        (string(5), string(64), address(20), address(20)).prop_map(
            |(service_type, message_id, source, destination)| {
                Body::CancelSm(Box::new(CancelSm {
                    service_type,
                    message_id,
                    source,
                    destination,
                }))
            }
        ),
        (short_message(), string(64)).prop_map(|(message, message_id)| {
            Body::ReplaceSm(Box::new(ReplaceSm {
                message_id,
                source: message.source,
                schedule_delivery_time: message.schedule_delivery_time,
                validity_period: message.validity_period,
                registered_delivery: message.registered_delivery,
                default_message_id: message.default_message_id,
                short_message: message.short_message,
                tlvs: message.tlvs,
            }))
        }),
        (short_message(), vec(destination(), 0..4)).prop_map(|(message, destinations)| {
            let message = ShortMessage {
                destination: Address::default(),
                ..*message
            };
            Body::SubmitMulti(Box::new(SubmitMulti {
                message,
                destinations,
            }))
        }),
        (string(64), vec((address(20), any::<u32>()), 0..4), tlvs()).prop_map(
            |(message_id, unsuccessful, tlvs)| {
                let unsuccessful = unsuccessful.into_iter();
                Body::SubmitMultiResp(Box::new(SubmitMultiResp {
                    message_id,
                    unsuccessful: unsuccessful
                        .map(|(address, status)| (address, Status(status)))
                        .collect(),
                    tlvs,
                }))
            }
        ),
        (address(64), address(64), tlvs()).prop_map(|(source, esme, tlvs)| {
            Body::AlertNotification(Box::new(AlertNotification { source, esme, tlvs }))
        }),
    ]
}
