//! Decodes octets into PDUs.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::pdu::Pdu;
use crate::{HEADER, Status};

mod body;
mod fields;

pub(crate) use body::message_resp_in_place;

/// The longest PDU that a [`Decoder`] accepts by default.
pub const DEFAULT_MAX_PDU: usize = 64 << 10;

/// Splits a stream into PDUs by their length.
///
/// A malformed PDU never affects the next one.
#[derive(Debug, Clone)]
pub struct Decoder {
    max_pdu: usize,
}

/// One frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A readable PDU.
    Ok(Pdu),
    /// A PDU with an unreadable body. Command and sequence number are known, so it can be refused.
    Bad {
        /// The command.
        command: u32,
        /// The sequence number.
        sequence: u32,
        /// What is wrong with the body.
        why: BodyError,
    },
}

/// The length of a PDU is impossible, so the start of the next one is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a PDU claims a length of {0} octets")]
pub struct FatalLength(pub u32);

/// Why a body is unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The frame ends before a required field.
    #[error("the PDU ends before {field}")]
    Truncated {
        /// The first field that is missing.
        field: &'static str,
    },
    /// `sm_length` exceeds the frame.
    #[error("short_message should have {declared} octets, and {present} are there")]
    ShortMessage {
        /// The value of `sm_length`.
        declared: usize,
        /// The octets that follow it.
        present: usize,
    },
    /// A destination of `submit_multi` is neither an address nor a distribution list.
    #[error("a destination has the flag {0}")]
    DestinationFlag(u8),
}

impl BodyError {
    /// The status of the response that refuses the PDU.
    pub const fn status(self) -> Status {
        match self {
            Self::Truncated { .. } => Status::ESME_RINVCMDLEN,
            Self::ShortMessage { .. } => Status::ESME_RINVMSGLEN,
            Self::DestinationFlag(_) => Status::ESME_RINVDESTFLAG,
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_PDU)
    }
}

impl Decoder {
    /// Accepts PDUs of up to `max_pdu` octets.
    pub const fn new(max_pdu: usize) -> Self {
        Self { max_pdu }
    }

    /// The next frame, or `None` until more octets arrive.
    ///
    /// The PDU's octet strings are slices of `buffer`'s memory. Copy those that are kept for long, because a slice
    /// keeps the whole buffer alive.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FatalLength> {
        let Some(length) = self.frame_length(buffer)? else {
            return Ok(None);
        };
        let frame = buffer.split_to(length).freeze();
        Ok(Some(decode(&frame)))
    }

    /// The length of the first frame, if it is complete.
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
    /// Parses the header of a complete frame.
    pub(crate) fn parse(frame: &[u8]) -> Self {
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

/// Decodes a complete frame.
fn decode(frame: &Bytes) -> Frame {
    let Header {
        command,
        status,
        sequence,
    } = Header::parse(frame);
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
