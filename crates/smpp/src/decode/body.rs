//! Decodes the body of each command.
//!
//! Responses are always readable: an SMSC that refuses often sends less than the specification requires, and only the
//! status matters. Requests need their fixed fields; a string without a NUL ends with the frame.

use bytes::Bytes;

use super::BodyError;
use super::fields::Fields;
use crate::pdu::{
    AlertNotification, Bind, BindKind, BindResp, Body, CancelSm, DataMessage, Destination,
    MessageResp, Outbind, QuerySm, QuerySmResp, ReplaceSm, ShortMessage, SubmitMulti,
    SubmitMultiResp,
};
use crate::{HEADER, command};

pub(super) fn read(command: u32, frame: &Bytes) -> Result<Body, BodyError> {
    let fields = Fields::new(frame);
    Ok(match command {
        command::BIND_TRANSMITTER => bind(BindKind::Transmitter, fields)?,
        command::BIND_RECEIVER => bind(BindKind::Receiver, fields)?,
        command::BIND_TRANSCEIVER => bind(BindKind::Transceiver, fields)?,
        command::BIND_TRANSMITTER_RESP => bind_resp(BindKind::Transmitter, fields),
        command::BIND_RECEIVER_RESP => bind_resp(BindKind::Receiver, fields),
        command::BIND_TRANSCEIVER_RESP => bind_resp(BindKind::Transceiver, fields),
        command::OUTBIND => outbind(fields),
        command::UNBIND => Body::Unbind,
        command::UNBIND_RESP => Body::UnbindResp,
        command::ENQUIRE_LINK => Body::EnquireLink,
        command::ENQUIRE_LINK_RESP => Body::EnquireLinkResp,
        command::GENERIC_NACK => Body::GenericNack,
        command::SUBMIT_SM => Body::SubmitSm(short_message(fields)?),
        command::SUBMIT_SM_RESP => Body::SubmitSmResp(message_resp(fields)),
        command::SUBMIT_MULTI => submit_multi(fields)?,
        command::SUBMIT_MULTI_RESP => submit_multi_resp(fields),
        command::DELIVER_SM => Body::DeliverSm(short_message(fields)?),
        command::DELIVER_SM_RESP => Body::DeliverSmResp(message_resp(fields)),
        command::DATA_SM => data_message(fields)?,
        command::DATA_SM_RESP => Body::DataSmResp(message_resp(fields)),
        command::QUERY_SM => query_sm(fields)?,
        command::QUERY_SM_RESP => query_sm_resp(fields),
        command::CANCEL_SM => cancel_sm(fields)?,
        command::CANCEL_SM_RESP => Body::CancelSmResp,
        command::REPLACE_SM => replace_sm(fields)?,
        command::REPLACE_SM_RESP => Body::ReplaceSmResp,
        command::ALERT_NOTIFICATION => alert_notification(fields)?,
        _ => Body::Unknown {
            command,
            octets: fields.rest(),
        },
    })
}

/// Decodes a response that contains only a message ID, which is the usual case. The ID is copied out of the frame,
/// because it is kept for days and would keep the whole read buffer alive.
pub(crate) fn message_resp_in_place(frame: &[u8]) -> Option<MessageResp> {
    let body = frame.get(HEADER..)?;
    let id = body.strip_suffix(&[0]).unwrap_or(body);
    (!id.contains(&0)).then(|| MessageResp::new(Bytes::copy_from_slice(id)))
}

fn bind(kind: BindKind, mut fields: Fields<'_>) -> Result<Body, BodyError> {
    let bind = Bind {
        system_id: fields.c_string(),
        password: fields.c_string(),
        system_type: fields.c_string(),
        interface_version: fields.octet("interface_version")?,
        address_range: fields.address("address_range")?,
    };
    Ok(Body::Bind(kind, Box::new(bind)))
}

fn bind_resp(kind: BindKind, mut fields: Fields<'_>) -> Body {
    let resp = BindResp {
        system_id: fields.c_string(),
        tlvs: fields.tlvs(),
    };
    Body::BindResp(kind, resp)
}

fn outbind(mut fields: Fields<'_>) -> Body {
    Body::Outbind(Box::new(Outbind {
        system_id: fields.c_string(),
        password: fields.c_string(),
    }))
}

fn short_message(mut fields: Fields<'_>) -> Result<Box<ShortMessage>, BodyError> {
    let service_type = fields.c_string();
    let source = fields.address("source_addr")?;
    let destination = fields.address("destination_addr")?;
    let message = after_destination(fields)?;
    Ok(Box::new(ShortMessage {
        service_type,
        source,
        destination,
        ..message
    }))
}

/// The fields that `submit_sm` and `submit_multi` have after their destinations.
fn after_destination(mut fields: Fields<'_>) -> Result<ShortMessage, BodyError> {
    Ok(ShortMessage {
        esm_class: fields.octet("esm_class")?,
        protocol_id: fields.octet("protocol_id")?,
        priority_flag: fields.octet("priority_flag")?,
        schedule_delivery_time: fields.c_string(),
        validity_period: fields.c_string(),
        registered_delivery: fields.octet("registered_delivery")?,
        replace_if_present: fields.octet("replace_if_present_flag")?,
        data_coding: fields.octet("data_coding")?,
        default_message_id: fields.octet("sm_default_msg_id")?,
        short_message: fields.short_message()?,
        tlvs: fields.tlvs(),
        ..ShortMessage::default()
    })
}

fn submit_multi(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    let service_type = fields.c_string();
    let source = fields.address("source_addr")?;
    let count = fields.octet("number_of_dests")?;
    let destinations = (0..count).map(|_| destination(&mut fields));
    let destinations = destinations.collect::<Result<_, _>>()?;
    let message = ShortMessage {
        service_type,
        source,
        ..after_destination(fields)?
    };
    Ok(Body::SubmitMulti(Box::new(SubmitMulti {
        message,
        destinations,
    })))
}

fn destination(fields: &mut Fields<'_>) -> Result<Destination, BodyError> {
    match fields.octet("dest_flag")? {
        Destination::ADDRESS => fields.address("destination_addr").map(Destination::Address),
        Destination::LIST => Ok(Destination::List(fields.c_string())),
        other => Err(BodyError::DestinationFlag(other)),
    }
}

fn submit_multi_resp(mut fields: Fields<'_>) -> Body {
    let message_id = fields.c_string();
    let count = fields.octet_if_there().unwrap_or_default();
    let unsuccessful = (0..count).map_while(|_| fields.unsuccessful());
    let unsuccessful = unsuccessful.collect();
    Body::SubmitMultiResp(Box::new(SubmitMultiResp {
        message_id,
        unsuccessful,
        tlvs: fields.tlvs(),
    }))
}

fn message_resp(mut fields: Fields<'_>) -> MessageResp {
    MessageResp {
        message_id: fields.c_string(),
        tlvs: fields.tlvs(),
    }
}

fn data_message(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    Ok(Body::DataSm(Box::new(DataMessage {
        service_type: fields.c_string(),
        source: fields.address("source_addr")?,
        destination: fields.address("destination_addr")?,
        esm_class: fields.octet("esm_class")?,
        registered_delivery: fields.octet("registered_delivery")?,
        data_coding: fields.octet("data_coding")?,
        tlvs: fields.tlvs(),
    })))
}

fn query_sm(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    Ok(Body::QuerySm(Box::new(QuerySm {
        message_id: fields.c_string(),
        source: fields.address("source_addr")?,
    })))
}

fn query_sm_resp(mut fields: Fields<'_>) -> Body {
    Body::QuerySmResp(Box::new(QuerySmResp {
        message_id: fields.c_string(),
        final_date: fields.c_string(),
        message_state: fields.octet_if_there().unwrap_or_default(),
        error_code: fields.octet_if_there().unwrap_or_default(),
    }))
}

fn cancel_sm(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    Ok(Body::CancelSm(Box::new(CancelSm {
        service_type: fields.c_string(),
        message_id: fields.c_string(),
        source: fields.address("source_addr")?,
        destination: fields.address("destination_addr")?,
    })))
}

fn replace_sm(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    Ok(Body::ReplaceSm(Box::new(ReplaceSm {
        message_id: fields.c_string(),
        source: fields.address("source_addr")?,
        schedule_delivery_time: fields.c_string(),
        validity_period: fields.c_string(),
        registered_delivery: fields.octet("registered_delivery")?,
        default_message_id: fields.octet("sm_default_msg_id")?,
        short_message: fields.short_message()?,
        tlvs: fields.tlvs(),
    })))
}

fn alert_notification(mut fields: Fields<'_>) -> Result<Body, BodyError> {
    Ok(Body::AlertNotification(Box::new(AlertNotification {
        source: fields.address("source_addr")?,
        esme: fields.address("esme_addr")?,
        tlvs: fields.tlvs(),
    })))
}
