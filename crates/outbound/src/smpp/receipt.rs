//! Parses deliveries from a carrier: receipts, and messages from handsets.
//!
//! The content of a receipt is in its TLVs, in its text, or in both. TLVs take precedence, and the text fills the gaps.

pub(crate) mod cause;
mod state;
mod text;

use std::borrow::Cow;

use domain::message::text::{Coding, decode};
use domain::{Code, Outcome};

use state::State;

/// The bits of `esm_class` with the type of the message.
const KIND_BITS: u8 = 0x3C;
/// A receipt about a final state.
const RECEIPT: u8 = 0x04;
/// An acknowledgement by the handset, or an intermediate notification. Neither is final.
const INTERMEDIATE: [u8; 2] = [0x08, 0x20];

/// The fields of a `deliver_sm` or `data_sm` that may make it a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryFields<'o> {
    pub esm_class: u8,
    /// The text, from either field.
    pub text: &'o [u8],
    /// The TLV `receipted_message_id`.
    pub id: Option<&'o [u8]>,
    /// The TLV `message_state`.
    pub state: Option<u8>,
    /// The TLV `network_error_code`.
    pub network_error: Option<&'o [u8]>,
    /// Whether a text that looks like a receipt counts as one even if `esm_class` does not say so. Anyone can write
    /// such a text on a handset.
    pub may_be_unmarked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// A part has reached a final state.
    Final {
        /// The carrier's ID of the part, as it was written.
        id: String,
        outcome: Outcome,
    },
    /// A part is still in transit.
    Intermediate,
    /// A receipt without an ID.
    WithoutId,
    /// A message from a handset.
    Message,
}

pub fn parse(fields: &DeliveryFields<'_>) -> Parsed {
    let kind = fields.esm_class & KIND_BITS;
    if INTERMEDIATE.contains(&kind) {
        return Parsed::Intermediate;
    }
    let text = fields.letters();
    let written = text::parse(&text);
    let by_word = written.stat.and_then(State::from_word);
    // Some carriers do not mark their receipts. A state and a TLV that only receipts have are enough: no handset can set
    // the TLV. Without a state nothing could be done with a receipt, but a text would be lost.
    let has_state = fields.state.is_some() || by_word.is_some();
    let looks_like_one = written.id.is_some() && by_word.is_some();
    let is_receipt = kind == RECEIPT
        || fields.id.is_some() && has_state
        || fields.may_be_unmarked && looks_like_one;
    if !is_receipt {
        return Parsed::Message;
    }
    let by_tlv = fields.id.map(latin1).filter(|id| !is_blank(id));
    let Some(id) = by_tlv.or_else(|| written.id.map(str::to_owned)) else {
        return Parsed::WithoutId;
    };
    let state = fields.state.and_then(State::from_number).or(by_word);
    let cause = fields.cause(written.err);
    match state.and_then(|state| state.outcome(cause)) {
        Some(outcome) => Parsed::Final { id, outcome },
        None => Parsed::Intermediate,
    }
}

impl DeliveryFields<'_> {
    /// The text as characters. Receipts are ASCII, so in UCS-2 their first octet is 0. The data coding is less
    /// reliable: some carriers copy that of the message.
    fn letters(&self) -> Cow<'_, str> {
        if self.text.first() == Some(&0) {
            return Cow::Owned(decode(Coding::Ucs2, self.text));
        }
        match str::from_utf8(self.text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(latin1(self.text)),
        }
    }

    fn cause(&self, err: Option<&str>) -> Option<Code> {
        let by_tlv = self.network_error.and_then(cause::code_from_tlv);
        by_tlv.or_else(|| err.and_then(cause::code_from_text))
    }
}

fn latin1(octets: &[u8]) -> String {
    octets.iter().copied().map(char::from).collect()
}

fn is_blank(id: &str) -> bool {
    id.chars().all(|c| c == '\0' || c.is_whitespace())
}

#[cfg(test)]
mod tests;
