//! What comes in from a carrier: a receipt, or a message from a handset.
//!
//! What a receipt says stands in its TLVs, in its text or in both. The TLVs count first, and the text fills what they
//! lack.

pub(crate) mod cause;
mod state;
mod text;

use std::borrow::Cow;

use domain::message::text::{Coding, decode};
use domain::{Code, Outcome};

use state::State;

/// The bits of `esm_class` that tell what kind of message it is.
const KIND_BITS: u8 = 0x3C;
/// It tells how a message ended.
const RECEIPT: u8 = 0x04;
/// It tells that a handset has got a message, or how it does on the way. Neither is an end.
const PASSING: [u8; 2] = [0x08, 0x20];

/// What may be a receipt: the fields of a `deliver_sm` or `data_sm` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report<'o> {
    /// The field of that name.
    pub esm_class: u8,
    /// The text, wherever it stands.
    pub text: &'o [u8],
    /// The TLV `receipted_message_id`.
    pub id: Option<&'o [u8]>,
    /// The TLV `message_state`.
    pub state: Option<u8>,
    /// The TLV `network_error_code`.
    pub network_error: Option<&'o [u8]>,
    /// Whether a text that reads as a receipt is one although `esm_class` does not say so. Anyone can write such a text on
    /// a handset.
    pub may_be_unmarked: bool,
}

/// What it turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A part has come to its end.
    Final {
        /// The carrier's name for the part, as it was written.
        id: String,
        /// How it ended.
        outcome: Outcome,
    },
    /// A part is still on its way.
    Passing,
    /// A receipt that does not say for which part.
    Nameless,
    /// Not a receipt but a message from a handset.
    Message,
}

/// Reads what came.
pub fn read(report: &Report<'_>) -> Reading {
    let kind = report.esm_class & KIND_BITS;
    if PASSING.contains(&kind) {
        return Reading::Passing;
    }
    let text = report.letters();
    let fields = text::read(&text);
    let by_word = fields.stat.and_then(State::from_word);
    // Some carriers do not mark their receipts. A TLV that only a receipt has will do: no handset can set it.
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
    /// The text in letters. What a receipt is made of is ASCII, so in UCS-2 its first octet is 0. The data coding tells
    /// less: some carriers copy the message's own.
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
