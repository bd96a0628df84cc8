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
const PASSING: [u8; 2] = [0x08, 0x20];

/// The fields of a `deliver_sm` or `data_sm` that may make it a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report<'o> {
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
pub enum Reading {
    /// A part has reached a final state.
    Final {
        /// The carrier's ID of the part, as it was written.
        id: String,
        outcome: Outcome,
    },
    /// A part is still in transit.
    Passing,
    /// A receipt without an ID.
    Nameless,
    /// A message from a handset.
    Message,
}

pub fn read(report: &Report<'_>) -> Reading {
    let kind = report.esm_class & KIND_BITS;
    if PASSING.contains(&kind) {
        return Reading::Passing;
    }
    let text = report.letters();
    let fields = text::read(&text);
    let by_word = fields.stat.and_then(State::from_word);
    // Some carriers do not mark their receipts. A TLV that only receipts have is enough: no handset can set it.
    let reads_as_one = fields.id.is_some() && by_word.is_some();
    let is_receipt =
        kind == RECEIPT || report.id.is_some() || report.may_be_unmarked && reads_as_one;
    if !is_receipt {
        return Reading::Message;
    }
    let by_tlv = report.id.map(latin1).filter(|id| !is_blank(id));
    let Some(id) = by_tlv.or_else(|| fields.id.map(str::to_owned)) else {
        return Reading::Nameless;
    };
    let state = report.state.and_then(State::from_number).or(by_word);
    let cause = report.cause(fields.err);
    match state.and_then(|state| state.outcome(cause)) {
        Some(outcome) => Reading::Final { id, outcome },
        None => Reading::Passing,
    }
}

impl Report<'_> {
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
        let by_tlv = self.network_error.and_then(cause::of_tlv);
        by_tlv.or_else(|| err.and_then(cause::of_text))
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
