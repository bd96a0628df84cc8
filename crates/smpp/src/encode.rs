//! Encodes PDUs into octets.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::HEADER;
use crate::pdu::{
    Address, AlertNotification, Bind, Body, CancelSm, DataMessage, Destination, Pdu, QuerySm,
    QuerySmResp, ReplaceSm, ShortMessage, SubmitMulti, SubmitMultiResp,
};
use crate::{Status, Tlvs};

/// The maximum size of `short_message`, whose length is a single octet.
pub const MAX_SHORT_MESSAGE: usize = 255;

/// Maximum lengths by the specification, without the NUL.
const MAX_SERVICE_TYPE: usize = 5;
const MAX_ADDRESS: usize = 20;
const MAX_DATA_ADDRESS: usize = 64;
const MAX_TIME: usize = 16;
const MAX_MESSAGE_ID: usize = 64;
const MAX_LIST_NAME: usize = 20;
/// Carriers issue system IDs, types and passwords that are longer than the specification allows.
const MAX_BIND_FIELD: usize = 255;

/// Why a PDU cannot be encoded. Values that do not fit are refused, never truncated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The field contains a NUL, which would end it.
    #[error("{field} holds a NUL octet")]
    Nul {
        /// The name of the field.
        field: &'static str,
    },
    /// The value is too long.
    #[error("{field} has {length} octets, and at most {limit} fit")]
    TooLong {
        /// The name of the field.
        field: &'static str,
        /// The length of the value.
        length: usize,
        /// The maximum length.
        limit: usize,
    },
}

/// Appends a PDU to `out`. On error, `out` is unchanged.
pub fn encode(pdu: &Pdu, out: &mut BytesMut) -> Result<(), EncodeError> {
    encode_into(pdu, out)
}

/// An output buffer. `Vec` is faster than `BytesMut` here, because its small writes are inlined.
pub(crate) trait Out: BufMut {
    fn length(&self) -> usize;
    fn make_room(&mut self, octets: usize);
    fn cut(&mut self, length: usize);
    fn octets(&mut self) -> &mut [u8];
}

impl Out for BytesMut {
    fn length(&self) -> usize {
        self.len()
    }

    fn make_room(&mut self, octets: usize) {
        self.reserve(octets);
    }

    fn cut(&mut self, length: usize) {
        self.truncate(length);
    }

    fn octets(&mut self) -> &mut [u8] {
        self
    }
}

impl Out for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }

    fn make_room(&mut self, octets: usize) {
        self.reserve(octets);
    }

    fn cut(&mut self, length: usize) {
        self.truncate(length);
    }

    fn octets(&mut self) -> &mut [u8] {
        self
    }
}

/// [`encode`] for any output buffer.
pub(crate) fn encode_into(pdu: &Pdu, out: &mut impl Out) -> Result<(), EncodeError> {
    let command = pdu.body.command();
    framed(out, command, pdu.status, pdu.sequence, |out| body(pdu, out))
}

/// Encodes a request with a message directly, which avoids copying the message into a [`Pdu`].
pub(crate) fn encode_message(
    command: u32,
    sequence: u32,
    message: &ShortMessage,
    out: &mut impl Out,
) -> Result<(), EncodeError> {
    framed(out, command, Status::OK, sequence, |out| {
        short_message(message, out)
    })
}

fn framed<O: Out>(
    out: &mut O,
    command: u32,
    status: Status,
    sequence: u32,
    body: impl FnOnce(&mut O) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.length();
    out.make_room(256);
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&command.to_be_bytes());
    header[8..12].copy_from_slice(&status.0.to_be_bytes());
    header[12..].copy_from_slice(&sequence.to_be_bytes());
    out.put_slice(&header);
    let written = body(out).and_then(|()| {
        let length = out.length() - start;
        u32::try_from(length).map_err(|_| EncodeError::TooLong {
            field: "command_length",
            length,
            limit: u32::MAX as usize,
        })
    });
    match written {
        Ok(length) => {
            out.octets()[start..start + 4].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.cut(start);
            Err(error)
        }
    }
}

fn body(pdu: &Pdu, out: &mut impl Out) -> Result<(), EncodeError> {
    match &pdu.body {
        Body::Bind(_, bind) => self::bind(bind, out),
        Body::BindResp(_, resp) => {
            if !pdu.status.is_ok() && resp.system_id.is_empty() && resp.tlvs.is_empty() {
                // By the specification, an error response has no body.
                return Ok(());
            }
            c_string("system_id", &resp.system_id, MAX_BIND_FIELD, out)?;
            tlvs(&resp.tlvs, out)
        }
        Body::Outbind(outbind) => {
            c_string("system_id", &outbind.system_id, MAX_BIND_FIELD, out)?;
            c_string("password", &outbind.password, MAX_BIND_FIELD, out)
        }
        Body::SubmitSm(message) | Body::DeliverSm(message) => short_message(message, out),
        Body::SubmitMulti(multi) => submit_multi(multi, out),
        Body::SubmitMultiResp(resp) => submit_multi_resp(resp, out),
        Body::SubmitSmResp(resp)
            if !pdu.status.is_ok() && resp.message_id.is_empty() && resp.tlvs.is_empty() =>
        {
            Ok(())
        }
        Body::SubmitSmResp(resp) | Body::DeliverSmResp(resp) | Body::DataSmResp(resp) => {
            c_string("message_id", &resp.message_id, MAX_MESSAGE_ID, out)?;
            tlvs(&resp.tlvs, out)
        }
        Body::DataSm(message) => data_message(message, out),
        Body::QuerySm(query) => query_sm(query, out),
        Body::QuerySmResp(resp) => query_sm_resp(resp, out),
        Body::CancelSm(cancel) => cancel_sm(cancel, out),
        Body::ReplaceSm(replace) => replace_sm(replace, out),
        Body::AlertNotification(alert) => alert_notification(alert, out),
        Body::Unknown { octets, .. } => {
            out.put_slice(octets);
            Ok(())
        }
        Body::Unbind
        | Body::UnbindResp
        | Body::EnquireLink
        | Body::EnquireLinkResp
        | Body::GenericNack
        | Body::CancelSmResp
        | Body::ReplaceSmResp => Ok(()),
    }
}

fn bind(bind: &Bind, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("system_id", &bind.system_id, MAX_BIND_FIELD, out)?;
    c_string("password", &bind.password, MAX_BIND_FIELD, out)?;
    c_string("system_type", &bind.system_type, MAX_BIND_FIELD, out)?;
    out.put_u8(bind.interface_version);
    address("address_range", &bind.address_range, MAX_BIND_FIELD, out)
}

fn short_message(message: &ShortMessage, out: &mut impl Out) -> Result<(), EncodeError> {
    service_type(&message.service_type, out)?;
    address("source_addr", &message.source, MAX_ADDRESS, out)?;
    address("destination_addr", &message.destination, MAX_ADDRESS, out)?;
    after_destination(message, out)
}

/// The fields that `submit_sm` and `submit_multi` have after their destinations.
fn after_destination(message: &ShortMessage, out: &mut impl Out) -> Result<(), EncodeError> {
    out.put_slice(&[
        message.esm_class,
        message.protocol_id,
        message.priority_flag,
    ]);
    times(
        &message.schedule_delivery_time,
        &message.validity_period,
        out,
    )?;
    out.put_slice(&[
        message.registered_delivery,
        message.replace_if_present,
        message.data_coding,
        message.default_message_id,
    ]);
    text(&message.short_message, out)?;
    tlvs(&message.tlvs, out)
}

fn submit_multi(multi: &SubmitMulti, out: &mut impl Out) -> Result<(), EncodeError> {
    service_type(&multi.message.service_type, out)?;
    address("source_addr", &multi.message.source, MAX_ADDRESS, out)?;
    count("number_of_dests", multi.destinations.len(), out)?;
    for destination in &multi.destinations {
        match destination {
            Destination::Address(to) => {
                out.put_u8(Destination::ADDRESS);
                address("destination_addr", to, MAX_ADDRESS, out)?;
            }
            Destination::List(name) => {
                out.put_u8(Destination::LIST);
                c_string("dl_name", name, MAX_LIST_NAME, out)?;
            }
        }
    }
    after_destination(&multi.message, out)
}

fn submit_multi_resp(resp: &SubmitMultiResp, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("message_id", &resp.message_id, MAX_MESSAGE_ID, out)?;
    count("no_unsuccess", resp.unsuccessful.len(), out)?;
    for (to, status) in &resp.unsuccessful {
        address("destination_addr", to, MAX_ADDRESS, out)?;
        out.put_u32(status.0);
    }
    tlvs(&resp.tlvs, out)
}

/// The number of entries in a list.
fn count(field: &'static str, entries: usize, out: &mut impl Out) -> Result<(), EncodeError> {
    let count = u8::try_from(entries).map_err(|_| EncodeError::TooLong {
        field,
        length: entries,
        limit: u8::MAX.into(),
    })?;
    out.put_u8(count);
    Ok(())
}

fn data_message(message: &DataMessage, out: &mut impl Out) -> Result<(), EncodeError> {
    service_type(&message.service_type, out)?;
    address("source_addr", &message.source, MAX_DATA_ADDRESS, out)?;
    address(
        "destination_addr",
        &message.destination,
        MAX_DATA_ADDRESS,
        out,
    )?;
    out.put_slice(&[
        message.esm_class,
        message.registered_delivery,
        message.data_coding,
    ]);
    tlvs(&message.tlvs, out)
}

fn query_sm(query: &QuerySm, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("message_id", &query.message_id, MAX_MESSAGE_ID, out)?;
    address("source_addr", &query.source, MAX_ADDRESS, out)
}

fn query_sm_resp(resp: &QuerySmResp, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("message_id", &resp.message_id, MAX_MESSAGE_ID, out)?;
    c_string("final_date", &resp.final_date, MAX_TIME, out)?;
    out.put_slice(&[resp.message_state, resp.error_code]);
    Ok(())
}

fn cancel_sm(cancel: &CancelSm, out: &mut impl Out) -> Result<(), EncodeError> {
    service_type(&cancel.service_type, out)?;
    c_string("message_id", &cancel.message_id, MAX_MESSAGE_ID, out)?;
    address("source_addr", &cancel.source, MAX_ADDRESS, out)?;
    address("destination_addr", &cancel.destination, MAX_ADDRESS, out)
}

fn replace_sm(replace: &ReplaceSm, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("message_id", &replace.message_id, MAX_MESSAGE_ID, out)?;
    address("source_addr", &replace.source, MAX_ADDRESS, out)?;
    times(
        &replace.schedule_delivery_time,
        &replace.validity_period,
        out,
    )?;
    out.put_slice(&[replace.registered_delivery, replace.default_message_id]);
    text(&replace.short_message, out)?;
    tlvs(&replace.tlvs, out)
}

fn alert_notification(alert: &AlertNotification, out: &mut impl Out) -> Result<(), EncodeError> {
    address("source_addr", &alert.source, MAX_DATA_ADDRESS, out)?;
    address("esme_addr", &alert.esme, MAX_DATA_ADDRESS, out)?;
    tlvs(&alert.tlvs, out)
}

fn service_type(value: &Bytes, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("service_type", value, MAX_SERVICE_TYPE, out)
}

fn times(schedule: &Bytes, validity: &Bytes, out: &mut impl Out) -> Result<(), EncodeError> {
    c_string("schedule_delivery_time", schedule, MAX_TIME, out)?;
    c_string("validity_period", validity, MAX_TIME, out)
}

fn address(
    field: &'static str,
    address: &Address,
    limit: usize,
    out: &mut impl Out,
) -> Result<(), EncodeError> {
    out.put_slice(&[address.ton, address.npi]);
    c_string(field, &address.digits, limit, out)
}

fn text(text: &Bytes, out: &mut impl Out) -> Result<(), EncodeError> {
    let length = u8::try_from(text.len()).map_err(|_| EncodeError::TooLong {
        field: "short_message",
        length: text.len(),
        limit: MAX_SHORT_MESSAGE,
    })?;
    out.put_u8(length);
    out.put_slice(text);
    Ok(())
}

fn c_string(
    field: &'static str,
    value: &Bytes,
    limit: usize,
    out: &mut impl Out,
) -> Result<(), EncodeError> {
    if value.len() > limit {
        let length = value.len();
        return Err(EncodeError::TooLong {
            field,
            length,
            limit,
        });
    }
    if value.contains(&0) {
        return Err(EncodeError::Nul { field });
    }
    if !value.is_empty() {
        out.put_slice(value);
    }
    out.put_u8(0);
    Ok(())
}

fn tlvs(tlvs: &Tlvs, out: &mut impl Out) -> Result<(), EncodeError> {
    for (tag, value) in tlvs.iter() {
        let length = u16::try_from(value.len()).map_err(|_| EncodeError::TooLong {
            field: crate::tag::name(tag).unwrap_or("an optional parameter"),
            length: value.len(),
            limit: u16::MAX.into(),
        })?;
        out.put_u16(tag);
        out.put_u16(length);
        out.put_slice(value);
    }
    Ok(())
}
