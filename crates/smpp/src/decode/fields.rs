//! Reads the fields of a body one by one.

use bytes::Bytes;

use super::BodyError;
use crate::pdu::Address;
use crate::{HEADER, Status, Tlvs};

/// A cursor over a frame, starting after the header.
pub(super) struct Fields<'a> {
    frame: &'a Bytes,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(frame: &'a Bytes) -> Self {
        Self { frame, at: HEADER }
    }

    fn left(&self) -> &'a [u8] {
        &self.frame[self.at..]
    }

    fn take(&mut self, length: usize) -> Bytes {
        let start = self.at;
        self.at += length;
        self.frame.slice(start..self.at)
    }

    /// The remaining octets.
    pub(super) fn rest(mut self) -> Bytes {
        self.take(self.left().len())
    }

    /// The octets up to a NUL or the end of the frame; empty at the end of the frame.
    pub(super) fn c_string(&mut self) -> Bytes {
        let left = self.left();
        match left.iter().position(|octet| *octet == 0) {
            Some(length) => {
                let value = self.take(length);
                self.at += 1;
                value
            }
            None => self.take(left.len()),
        }
    }

    pub(super) fn octet(&mut self, field: &'static str) -> Result<u8, BodyError> {
        self.octet_if_there().ok_or(BodyError::Truncated { field })
    }

    pub(super) fn octet_if_there(&mut self) -> Option<u8> {
        let octet = *self.left().first()?;
        self.at += 1;
        Some(octet)
    }

    pub(super) fn address(&mut self, field: &'static str) -> Result<Address, BodyError> {
        Ok(Address {
            ton: self.octet(field)?,
            npi: self.octet(field)?,
            digits: self.c_string(),
        })
    }

    /// An entry of `unsuccess_sme`; `None` if the frame ends before its end.
    pub(super) fn unsuccessful(&mut self) -> Option<(Address, Status)> {
        let address = self.address("destination_addr").ok()?;
        let status: [u8; 4] = *self.left().first_chunk()?;
        self.at += status.len();
        Some((address, Status(u32::from_be_bytes(status))))
    }

    /// `sm_length` and `short_message`.
    pub(super) fn short_message(&mut self) -> Result<Bytes, BodyError> {
        let declared = usize::from(self.octet("sm_length")?);
        let present = self.left().len();
        if declared > present {
            return Err(BodyError::ShortMessage { declared, present });
        }
        Ok(self.take(declared))
    }

    /// The optional parameters. A truncated one at the end is ignored.
    pub(super) fn tlvs(mut self) -> Tlvs {
        let mut tlvs = Tlvs::new();
        while let Some(&[tag_high, tag_low, high, low]) = self.left().first_chunk() {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if length > self.left().len() - 4 {
                break;
            }
            self.at += 4;
            tlvs.push(u16::from_be_bytes([tag_high, tag_low]), self.take(length));
        }
        tlvs
    }
}
