//! Writes receipts and messages from handsets as `deliver_sm`.

use bytes::Bytes;
use domain::delivery::{Callback, CallbackKind};
use domain::message::outcome::Outcome;
use domain::message::text::{Coding, Shape, encode, measure};
use domain::smpp_user::{ReceiptDate, ReceiptErrorField, ReceiptFormat, ReceiptId};
use domain::{Code, MessageId};
use jiff::Timestamp;
use serde::Deserialize;
use smpp::{Address, MAX_SHORT_MESSAGE, ShortMessage, Tlvs, message_state, tag};

use crate::receipt_request::ReceiptRequest;

/// Marks a receipt in `esm_class`.
const IS_RECEIPT: u8 = 0x04;
/// A user data header precedes the text.
const HAS_HEADER: u8 = 0x40;
/// The type of network in `network_error_code`: GSM.
const GSM: u8 = 3;

/// What a callback means for a session.
pub(crate) enum Content {
    Message(Box<ShortMessage>),
    /// The client does not want this receipt.
    Unwanted,
    /// The callback cannot be written as `deliver_sm`.
    Unreadable,
}

/// The message of a receipt whose address names no recipient: one of those of a `submit_multi`.
pub(crate) fn unnamed(callback: &Callback) -> Option<MessageId> {
    if !matches!(callback.kind, CallbackKind::Report) {
        return None;
    }
    let request = ReceiptRequest::parse(&callback.url)?;
    let (id, _) = read_report(&callback.payload)?;
    MessageId::new(id).filter(|_| request.destination.is_none())
}

/// Writes a callback for a user. `recipient` is that of an [`unnamed`] message.
pub(crate) fn content(
    callback: &Callback,
    format: ReceiptFormat,
    recipient: Option<&Address>,
) -> Content {
    let message = match callback.kind {
        CallbackKind::Report => return receipt(callback, format, recipient),
        CallbackKind::Inbound => from_handset(&callback.payload),
        CallbackKind::Lookup | CallbackKind::Sender => None,
    };
    message.map_or(Content::Unreadable, |message| {
        Content::Message(Box::new(message))
    })
}

/// The payload of a delivery report.
#[derive(Deserialize)]
struct Report {
    id: String,
    status: i64,
    error: i64,
}

fn receipt(callback: &Callback, format: ReceiptFormat, recipient: Option<&Address>) -> Content {
    let Some(mut request) = ReceiptRequest::parse(&callback.url) else {
        return Content::Unreadable;
    };
    request.destination = request.destination.or_else(|| recipient.cloned());
    let Some((id, outcome)) = read_report(&callback.payload) else {
        return Content::Unreadable;
    };
    if !request.wanted.includes(outcome) {
        return Content::Unwanted;
    }
    let message = write_receipt(&request, id, outcome, callback.created_at, format);
    Content::Message(Box::new(message))
}

fn read_report(payload: &str) -> Option<(u64, Outcome)> {
    let report: Report = serde_json::from_str(payload).ok()?;
    let outcome = Outcome::from_numbers(report.status, report.error)?;
    Some((report.id.parse().ok()?, outcome))
}

fn write_receipt(
    request: &ReceiptRequest,
    id: u64,
    outcome: Outcome,
    done_at: Timestamp,
    format: ReceiptFormat,
) -> ShortMessage {
    let id = message_id(id, format.id);
    let (state, word) = state(outcome);
    let error = outcome.code().number();
    let shown = match format.error {
        ReceiptErrorField::Code => error,
        ReceiptErrorField::Zero => 0,
    };
    let parts = request.parts;
    let delivered = if outcome == Outcome::Delivered {
        parts
    } else {
        0
    };
    let date = match format.date {
        ReceiptDate::Minutes => "%y%m%d%H%M",
        ReceiptDate::Seconds => "%y%m%d%H%M%S",
    };
    let (submitted, done) = (request.submitted_at.strftime(date), done_at.strftime(date));
    let text = format!(
        "id:{id} sub:{parts:03} dlvrd:{delivered:03} submit date:{submitted} done date:{done} stat:{word} err:{shown:03} text:"
    );
    let mut tlvs = Tlvs::new();
    tlvs.push_c_string(tag::RECEIPTED_MESSAGE_ID, id.as_bytes());
    tlvs.push_u8(tag::MESSAGE_STATE, state);
    if error > 0 {
        let [high, low] = error.to_be_bytes();
        let value = Bytes::copy_from_slice(&[GSM, high, low]);
        tlvs.push(tag::NETWORK_ERROR_CODE, value);
    }
    ShortMessage {
        // A number that was erased is left out.
        source: request.destination.clone().unwrap_or_default(),
        destination: request.source.clone(),
        esm_class: IS_RECEIPT,
        short_message: text.into(),
        tlvs,
        ..ShortMessage::default()
    }
}

/// The ID of a message, as this user wants it.
pub(crate) fn message_id(id: u64, form: ReceiptId) -> String {
    match form {
        ReceiptId::Decimal => id.to_string(),
        ReceiptId::Hex => format!("{id:x}"),
    }
}

/// The reverse of [`message_id`].
pub(crate) fn read_message_id(octets: &[u8], form: ReceiptId) -> Option<u64> {
    let text = std::str::from_utf8(octets).ok()?;
    match form {
        ReceiptId::Decimal => text.parse().ok(),
        ReceiptId::Hex => u64::from_str_radix(text, 16).ok(),
    }
}

/// The state of an ended message, and its word in receipts.
pub(crate) fn state(outcome: Outcome) -> (u8, &'static str) {
    match outcome {
        Outcome::Delivered => (message_state::DELIVERED, "DELIVRD"),
        Outcome::Expired => (message_state::EXPIRED, "EXPIRED"),
        Outcome::Failed(code) => match code {
            Code::EXPIRED => (message_state::EXPIRED, "EXPIRED"),
            Code::CANCELLED => (message_state::DELETED, "DELETED"),
            Code::NO_FINAL_REPORT => (message_state::UNKNOWN, "UNKNOWN"),
            Code::NO_ROUTE | Code::BLOCKED | Code::OPTED_OUT => {
                (message_state::REJECTED, "REJECTD")
            }
            _ => (message_state::UNDELIVERABLE, "UNDELIV"),
        },
    }
}

/// The payload of a message from a handset.
#[derive(Deserialize)]
struct Inbound {
    from: String,
    to: String,
    message: String,
    coding: u8,
    udh: Option<String>,
}

fn from_handset(payload: &str) -> Option<ShortMessage> {
    let inbound: Inbound = serde_json::from_str(payload).ok()?;
    let mut octets = Vec::new();
    let mut esm_class = 0;
    if let Some(udh) = &inbound.udh {
        let udh: domain::message::text::Udh = udh.parse().ok()?;
        octets.extend_from_slice(udh.as_bytes());
        esm_class = HAS_HEADER;
    }
    let data_coding = if Coding::from_number(inbound.coding)? == Coding::Binary {
        octets.extend(hexadecimal(&inbound.message)?);
        4
    } else {
        let coding = measure(&inbound.message).map_or(Coding::Ucs2, |shape| shape.coding);
        let shape = Shape { coding, parts: 1 };
        for part in encode(&inbound.message, shape, None, 0) {
            octets.extend_from_slice(&part.payload);
        }
        if coding == Coding::Gsm7 { 0 } else { 8 }
    };
    let mut message = ShortMessage {
        source: address(&inbound.from),
        destination: address(&inbound.to),
        esm_class,
        data_coding,
        ..ShortMessage::default()
    };
    if octets.len() < MAX_SHORT_MESSAGE {
        message.short_message = octets.into();
    } else {
        message.tlvs.push(tag::MESSAGE_PAYLOAD, octets);
    }
    Some(message)
}

/// A number in international form, a short code, or a name.
fn address(text: &str) -> Address {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match text.strip_prefix('+') {
        Some(digits) if is_number(digits) => Address::new(1, 1, digits.to_owned()),
        _ if is_number(text) => Address::new(3, 0, text.to_owned()),
        _ => Address::new(5, 0, text.to_owned()),
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let octet = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(octet).collect()
}

#[cfg(test)]
mod tests {
    use domain::delivery::Claim;
    use domain::message::text::decode;
    use domain::{AccountId, CallbackId, CallbackUrl};

    use super::*;
    use crate::receipt_request::Wanted;

    fn callback(kind: CallbackKind, url: CallbackUrl, payload: &str) -> Callback {
        let at = Timestamp::from_second(1_900_000_060).expect("in range");
        Callback {
            id: CallbackId::from_i64(1).expect("in range"),
            message: MessageId::new(7),
            kind,
            account: AccountId::new(1).expect("in range"),
            url,
            payload: payload.to_owned(),
            created_at: at,
            tries: 0,
            claim: Claim {
                due_at: at,
                attempt: 1,
            },
            trace: None,
        }
    }

    fn request(wanted: Wanted) -> CallbackUrl {
        let request = ReceiptRequest {
            wanted,
            submitted_at: Timestamp::from_second(1_900_000_000).expect("in range"),
            parts: 2,
            source: Address::new(5, 0, "Acme"),
            destination: Some(Address::new(1, 1, "447700900123")),
        };
        request.url("acme")
    }

    fn message(content: Content) -> ShortMessage {
        match content {
            Content::Message(message) => *message,
            Content::Unwanted | Content::Unreadable => panic!("there is a message"),
        }
    }

    #[test]
    fn a_receipt_has_text_and_parameters() {
        let report = callback(
            CallbackKind::Report,
            request(Wanted::Final),
            r#"{"id":"255","status":2,"error":43,"mcc":"234","mnc":"10"}"#,
        );
        let receipt = message(content(&report, ReceiptFormat::default(), None));
        assert_eq!(
            receipt.short_message,
            "id:255 sub:002 dlvrd:000 submit date:3003171746 done date:3003171747 stat:UNDELIV err:043 text:"
        );
        assert_eq!(receipt.esm_class, IS_RECEIPT);
        assert_eq!(receipt.source.digits, "447700900123");
        assert_eq!(receipt.destination.digits, "Acme");
        let tlvs = &receipt.tlvs;
        assert_eq!(tlvs.receipted_message_id().as_deref(), Some(&b"255"[..]));
        assert_eq!(tlvs.message_state(), Some(message_state::UNDELIVERABLE));
        let error = tlvs.network_error_code().expect("it failed");
        assert_eq!((error.network, error.code), (GSM, 43));
        let format = ReceiptFormat {
            date: ReceiptDate::Seconds,
            id: ReceiptId::Hex,
            error: ReceiptErrorField::Zero,
        };
        assert_eq!(
            message(content(&report, format, None)).short_message,
            "id:ff sub:002 dlvrd:000 submit date:300317174640 done date:300317174740 stat:UNDELIV err:000 text:"
        );
        assert_eq!(read_message_id(b"ff", ReceiptId::Hex), Some(255));
        assert_eq!(read_message_id(b"ff", ReceiptId::Decimal), None);
    }

    #[test]
    fn a_receipt_of_several_gets_its_recipient_later() {
        let delivered = r#"{"id":"255","status":1,"error":0}"#;
        let named = request(Wanted::Final);
        let several = ReceiptRequest {
            destination: None,
            ..ReceiptRequest::parse(&named).expect("readable")
        };
        let named = callback(CallbackKind::Report, named, delivered);
        assert_eq!(unnamed(&named), None);
        let several = callback(CallbackKind::Report, several.url("acme"), delivered);
        assert_eq!(unnamed(&several), MessageId::new(255));
        let recipient = Address::new(1, 1, "37120000001");
        let written = |recipient| message(content(&several, ReceiptFormat::default(), recipient));
        assert_eq!(written(Some(&recipient)).source, recipient);
        assert_eq!(written(None).source, Address::default());
    }

    #[test]
    fn an_unwanted_receipt_is_not_written() {
        let delivered = r#"{"id":"255","status":1,"error":0}"#;
        let report = callback(CallbackKind::Report, request(Wanted::Failures), delivered);
        let content = content(&report, ReceiptFormat::default(), None);
        assert!(matches!(content, Content::Unwanted));
    }

    #[test]
    fn texts_of_handsets_are_written_in_the_shortest_coding() {
        for (text, coding, data_coding, octets) in [
            ("Yes@", 0, 0, &b"Yes\0"[..]),
            ("Ж", 2, 8, b"\x04\x16"),
            ("00FF", 1, 4, b"\x00\xFF"),
        ] {
            let payload = format!(
                r#"{{"id":"7","from":"+37120000001","to":"1234","message":"{text}","coding":{coding},"udh":null}}"#
            );
            let callback = callback(
                CallbackKind::Inbound,
                CallbackUrl::smpp("", "inbound"),
                &payload,
            );
            let message = message(content(&callback, ReceiptFormat::default(), None));
            assert_eq!(
                (message.data_coding, &message.short_message[..]),
                (data_coding, octets)
            );
            assert_eq!((message.source.ton, message.destination.ton), (1, 3));
        }
        let long = "x".repeat(300);
        let payload = format!(
            r#"{{"from":"+37120000001","to":"1234","message":"{long}","coding":0,"udh":null}}"#
        );
        let payload = from_handset(&payload).expect("readable");
        assert_eq!(decode(Coding::Gsm7, payload.text()), long);
        assert!(payload.short_message.is_empty());
    }
}
