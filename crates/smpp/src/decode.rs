//! From octets to PDUs: framing, and how a PDU that cannot be read is told.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::pdu::Pdu;
use crate::{HEADER, Status};

mod body;
mod fields;

pub(crate) use body::message_resp_in_place;

/// The longest PDU that a [`Decoder`] takes unless told otherwise.
pub const DEFAULT_MAX_PDU: usize = 64 << 10;

/// Cuts a stream into PDUs, each by its own length.
///
/// One PDU never harms the next: what is missing in it, what is too much, what is unknown, stays inside its frame.
#[derive(Debug, Clone)]
pub struct Decoder {
    max_pdu: usize,
}

/// One frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A PDU.
    Ok(Pdu),
    /// A PDU whose body cannot be read. Command and sequence number are enough to refuse it.
    Bad {
        /// What it would have been.
        command: u32,
        /// Its sequence number.
        sequence: u32,
        /// What is wrong.
        why: BodyError,
    },
}

/// The stream has no PDUs any more: after a length like that nobody knows where the next one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a PDU claims a length of {0} octets")]
pub struct FatalLength(pub u32);

/// Why a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The frame ends where a field should be.
    #[error("the PDU ends before {field}")]
    Truncated {
        /// The first field that is missing.
        field: &'static str,
    },
    /// `sm_length` goes beyond the frame.
    #[error("short_message should have {declared} octets, and {present} are there")]
    ShortMessage {
        /// What `sm_length` says.
        declared: usize,
        /// What is there.
        present: usize,
    },
}

impl BodyError {
    /// The status to answer with.
    pub const fn status(self) -> Status {
        match self {
            Self::Truncated { .. } => Status::ESME_RINVCMDLEN,
            Self::ShortMessage { .. } => Status::ESME_RINVMSGLEN,
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_PDU)
    }
}

impl Decoder {
    /// Takes PDUs of up to so many octets.
    pub const fn new(max_pdu: usize) -> Self {
        Self { max_pdu }
    }

    /// The next frame, or none until more octets are there.
    ///
    /// The PDU's octet strings are slices of `buffer`'s memory. Copy what is kept for long: a slice keeps all of
    /// the memory it was cut from.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FatalLength> {
        let Some(length) = self.frame_length(buffer)? else {
            return Ok(None);
        };
        let frame = buffer.split_to(length).freeze();
        Ok(Some(decode(&frame)))
    }

    /// The length of the frame at the start, if all of it is there.
    pub(crate) fn frame_length(&self, octets: &[u8]) -> Result<Option<usize>, FatalLength> {
        let Some(declared) = octets.first_chunk().copied().map(u32::from_be_bytes) else {
            return Ok(None);
        };
        match usize::try_from(declared) {
            Ok(length) if (HEADER..=self.max_pdu).contains(&length) => {
                Ok((octets.len() >= length).then_some(length))
            }
            _ => Err(FatalLength(declared)),
        }
    }
}

/// The header of a frame, without its length.
pub(crate) struct Header {
    pub(crate) command: u32,
    pub(crate) status: Status,
    pub(crate) sequence: u32,
}

impl Header {
    /// Of a frame that is there in full.
    pub(crate) fn of(frame: &[u8]) -> Self {
        let word = |at: usize| {
            let octets = frame[at..].first_chunk().copied();
            u32::from_be_bytes(octets.expect("a frame has a header"))
        };
        Self {
            command: word(4),
            status: Status(word(8)),
            sequence: word(12),
        }
    }
}

/// One frame that is there in full.
fn decode(frame: &Bytes) -> Frame {
    let Header {
        command,
        status,
        sequence,
    } = Header::of(frame);
    match body::read(command, frame) {
        Ok(body) => Frame::Ok(Pdu {
            status,
            sequence,
            body,
        }),
        Err(why) => Frame::Bad {
            command,
            sequence,
            why,
        },
    }
}
