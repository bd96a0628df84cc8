//! Reads submitted messages and writes receipts.

use bytes::Bytes;
use domain::message::text::{Coding, decode};
use domain::{Code, Msisdn};
use jiff::Timestamp;
use smpp::{Address, ShortMessage, Status, Tlvs, message_state, tag};

use super::receipt_queue::QueuedReceipt;
use super::{ArrivedMessage, Ids};
use crate::simulator::{SimulatedOutcome, simulated_outcome};
use crate::smpp::receipt::cause;
use crate::smpp::refusal;

/// Marks a receipt in bits 2 to 5 of `esm_class`.
const IS_RECEIPT: u8 = 0x04;
/// A user data header precedes the text.
const HAS_HEADER: u8 = 0x40;
/// The type of network in `network_error_code`: GSM.
const GSM: u8 = 3;
/// The start of vendor-specific statuses; the code is added to it.
const VENDOR: u32 = 0x400;
/// The date format of receipts.
const DATE: &str = "%y%m%d%H%M";

pub(super) fn outcome_for(message: &ShortMessage) -> SimulatedOutcome {
    let digits = String::from_utf8_lossy(&message.destination.digits);
    let digits = digits.trim_start_matches('+');
    Msisdn::parse(digits).map_or(
        SimulatedOutcome::Refused(Code::new(53).expect("in the catalogue")),
        |to| simulated_outcome(&to),
    )
}

/// The status that refuses a message with this code.
pub(super) fn status_for(code: Code) -> Status {
    let own = Status(VENDOR + u32::from(code.number()));
    refusal::status_for(code).unwrap_or(own)
}

/// The ID in answers.
pub(super) fn answer_id(ids: Ids, id: u64) -> String {
    match ids {
        Ids::Decimal => id.to_string(),
        Ids::Hex | Ids::HexThenDecimal => format!("{id:x}"),
    }
}

fn receipt_id(ids: Ids, id: u64) -> String {
    match ids {
        Ids::Decimal | Ids::HexThenDecimal => id.to_string(),
        Ids::Hex => format!("{id:x}"),
    }
}

/// The receipt, as text and as TLVs.
pub(super) fn receipt(queued: &QueuedReceipt, ids: Ids, now: Timestamp) -> ShortMessage {
    let (state, word, error) = match queued.outcome {
        SimulatedOutcome::Delivered | SimulatedOutcome::Silent | SimulatedOutcome::Refused(_) => {
            (message_state::DELIVERED, "DELIVRD", 0)
        }
        SimulatedOutcome::Failed(code) => failure(code),
    };
    let id = receipt_id(ids, queued.id);
    let (submitted, done) = (queued.accepted_at.strftime(DATE), now.strftime(DATE));
    let delivered = u8::from(error == 0 && state == message_state::DELIVERED);
    let text = format!(
        "id:{id} sub:001 dlvrd:00{delivered} submit date:{submitted} done date:{done} stat:{word} err:{error:03} text:"
    );
    let mut tlvs = Tlvs::new();
    tlvs.push_c_string(tag::RECEIPTED_MESSAGE_ID, id.as_bytes());
    tlvs.push_u8(tag::MESSAGE_STATE, state);
    if error > 0 {
        let [high, low] = error.to_be_bytes();
        tlvs.push(
            tag::NETWORK_ERROR_CODE,
            Bytes::copy_from_slice(&[GSM, high, low]),
        );
    }
    let address = |(ton, npi, digits): &(u8, u8, Bytes)| Address::new(*ton, *npi, digits.clone());
    ShortMessage {
        source: address(&queued.to),
        destination: address(&queued.from),
        esm_class: IS_RECEIPT,
        short_message: text.into(),
        tlvs,
        ..ShortMessage::default()
    }
}

/// The state, its word and the network's error number for a code.
fn failure(code: Code) -> (u8, &'static str, u16) {
    match code.number() {
        12 => (message_state::REJECTED, "REJECTD", 0),
        13 => (message_state::DELETED, "DELETED", 0),
        14 => (message_state::UNKNOWN, "UNKNOWN", 0),
        _ => {
            let error = cause::number_for_code(code).unwrap_or(0);
            (message_state::UNDELIVERABLE, "UNDELIV", error)
        }
    }
}

/// The message as a handset would show it.
pub(super) fn arrived(message: &ShortMessage) -> ArrivedMessage {
    let mut octets = &message.text()[..];
    let mut part = message
        .tlvs
        .sar_segment_seqnum()
        .zip(message.tlvs.sar_total_segments());
    if message.esm_class & HAS_HEADER != 0
        && let Some((length, rest)) = octets.split_first()
        && let Some((header, text)) = rest.split_at_checked(usize::from(*length))
    {
        if let [0, 3, _, total, number] = header {
            part = Some((*number, *total));
        }
        octets = text;
    }
    let coding = match message.data_coding {
        0 => Coding::Gsm7,
        8 => Coding::Ucs2,
        _ => Coding::Binary,
    };
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    ArrivedMessage {
        from: text(&message.source.digits),
        to: text(&message.destination.digits),
        text: decode(coding, octets),
        part,
    }
}
