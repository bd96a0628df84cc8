//! Builds the short messages of a message.

use ::smpp::{Address, ShortMessage, tag};
use bytes::Bytes;
use domain::delivery::QueuedMessage;
use domain::message::text::{Coding, Part, decode, encode};
use domain::{MessageId, Originator, Timestamp};

use super::{Gsm7Form, LongText, SmppSettings};

/// A user data header precedes the text.
const HAS_HEADER: u8 = 0x40;

/// Data codings.
const DEFAULT_ALPHABET: u8 = 0;
const LATIN1: u8 = 3;
const BINARY: u8 = 4;

/// Types of number.
const INTERNATIONAL: u8 = 1;
const NETWORK_SPECIFIC: u8 = 3;
const ALPHANUMERIC: u8 = 5;

/// Numbering plans.
const NO_PLAN: u8 = 0;
const TELEPHONE: u8 = 1;

/// The shortest validity period in seconds: some carriers refuse less.
const SHORTEST_VALIDITY_S: i64 = 60;
/// The longest validity period in days: the format has two digits for them, and no carrier keeps a message longer.
const LONGEST_VALIDITY_DAYS: i64 = 30;

/// The short messages of a message, in order. They are the same each time except for the remaining validity, so that a
/// handset recognises a part that it gets twice.
pub(super) fn compose(
    settings: &SmppSettings,
    queued: &QueuedMessage,
    now: Timestamp,
) -> Vec<ShortMessage> {
    let [.., high, low] = queued.id.get().to_be_bytes();
    let mut parts = encode(&queued.text, queued.shape, queued.udh.as_ref(), low);
    let data_coding = recode(settings, queued, &mut parts);
    let message = ShortMessage {
        data_coding,
        ..envelope(settings, queued, now)
    };
    if parts.len() <= 1 {
        return parts
            .iter()
            .map(|part| with_header(&message, part))
            .collect();
    }
    match settings.long_text {
        LongText::Udh => parts
            .iter()
            .map(|part| with_header(&message, part))
            .collect(),
        LongText::Sar => with_tlvs(&message, parts, u16::from_be_bytes([high, low])),
        LongText::Payload => {
            let text: Vec<u8> = parts.into_iter().flat_map(|part| part.payload).collect();
            let mut message = message;
            message.tlvs.push(tag::MESSAGE_PAYLOAD, text);
            vec![message]
        }
    }
}

/// All fields except for the text.
fn envelope(settings: &SmppSettings, queued: &QueuedMessage, now: Timestamp) -> ShortMessage {
    let left_s = queued.expires_at.duration_since(now).as_secs();
    ShortMessage {
        service_type: Bytes::copy_from_slice(settings.service_type.as_bytes()),
        source: source(settings, queued.from.as_ref()),
        destination: Address::new(
            settings.dest_ton.unwrap_or(INTERNATIONAL),
            settings.dest_npi.unwrap_or(TELEPHONE),
            Bytes::copy_from_slice(queued.to.digits().as_bytes()),
        ),
        validity_period: if settings.validity {
            validity(left_s).into()
        } else {
            Bytes::new()
        },
        registered_delivery: settings.registered_delivery,
        ..ShortMessage::default()
    }
}

/// The sender's address. A short code is a network-specific number without a numbering plan.
fn source(settings: &SmppSettings, from: Option<&Originator>) -> Address {
    let (ton, npi, letters) = match from {
        Some(Originator::Msisdn(number)) => (INTERNATIONAL, TELEPHONE, number.digits()),
        Some(Originator::Name(name)) if name.bytes().all(|b| b.is_ascii_digit()) => {
            (NETWORK_SPECIFIC, NO_PLAN, name.as_str())
        }
        Some(Originator::Name(name)) => (ALPHANUMERIC, NO_PLAN, name.as_str()),
        None => (0, NO_PLAN, ""),
    };
    Address::new(
        settings.source_ton.unwrap_or(ton),
        settings.source_npi.unwrap_or(npi),
        latin1(letters).unwrap_or_default(),
    )
}

/// The validity period as `YYMMDDhhmmsstnnp`, relative to the carrier's clock because clocks differ.
fn validity(left_s: i64) -> String {
    let left_s = left_s.clamp(SHORTEST_VALIDITY_S, LONGEST_VALIDITY_DAYS * 86_400);
    let (days, rest) = (left_s / 86_400, left_s % 86_400);
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("0000{days:02}{hours:02}{minutes:02}{seconds:02}000R")
}

/// Encodes the parts as the carrier wants them, and returns the data coding.
fn recode(settings: &SmppSettings, queued: &QueuedMessage, parts: &mut [Part]) -> u8 {
    match (queued.shape.coding, settings.gsm7) {
        (Coding::Binary, _) => BINARY,
        (Coding::Ucs2, _) => settings.ucs2_coding,
        (Coding::Gsm7, Gsm7Form::Default) => DEFAULT_ALPHABET,
        (Coding::Gsm7, Gsm7Form::Latin1) => {
            let recoded: Option<Vec<Vec<u8>>> = parts
                .iter()
                .map(|part| latin1(&decode(Coding::Gsm7, &part.payload)))
                .collect();
            let Some(recoded) = recoded else {
                return DEFAULT_ALPHABET;
            };
            for (part, payload) in parts.iter_mut().zip(recoded) {
                part.payload = payload;
            }
            LATIN1
        }
    }
}

/// The text in ISO 8859-1, if every character is in it.
fn latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(c).ok()).collect()
}

/// A part with its header, if any, before the text.
fn with_header(message: &ShortMessage, part: &Part) -> ShortMessage {
    let header = part.udh.as_ref().map_or(&[][..], |udh| udh.as_bytes());
    ShortMessage {
        esm_class: if header.is_empty() { 0 } else { HAS_HEADER },
        short_message: [header, &part.payload].concat().into(),
        ..message.clone()
    }
}

/// Parts that are joined by TLVs.
fn with_tlvs(message: &ShortMessage, parts: Vec<Part>, reference: u16) -> Vec<ShortMessage> {
    let total = u8::try_from(parts.len()).unwrap_or(u8::MAX);
    let part = |(sequence, part): (u8, Part)| {
        let mut message = ShortMessage {
            short_message: part.payload.into(),
            ..message.clone()
        };
        message.tlvs.push_u16(tag::SAR_MSG_REF_NUM, reference);
        message.tlvs.push_u8(tag::SAR_TOTAL_SEGMENTS, total);
        message.tlvs.push_u8(tag::SAR_SEGMENT_SEQNUM, sequence);
        message
    };
    (1..=total).zip(parts).map(part).collect()
}

/// The reference of a part that a carrier accepted without an ID: unique, but no receipt matches it.
pub(super) fn reference_without_id(id: MessageId, part: usize) -> String {
    format!("unnamed-{id}-{part}")
}

/// The reference of a part that a carrier may have without having answered: no receipt matches it.
pub(super) fn reference_without_answer(id: MessageId, part: usize) -> String {
    format!("unanswered-{id}-{part}")
}

#[cfg(test)]
mod tests;
