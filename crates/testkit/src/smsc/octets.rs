//! Reads and writes SMPP PDUs.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt as _};

pub(super) const BIND_RECEIVER: u32 = 0x0000_0001;
pub(super) const BIND_TRANSMITTER: u32 = 0x0000_0002;
pub(super) const SUBMIT_SM: u32 = 0x0000_0004;
pub(super) const DELIVER_SM: u32 = 0x0000_0005;
pub(super) const UNBIND: u32 = 0x0000_0006;
pub(super) const BIND_TRANSCEIVER: u32 = 0x0000_0009;
pub(super) const ENQUIRE_LINK: u32 = 0x0000_0015;
/// The bit that marks a command as an answer.
pub(super) const ANSWER: u32 = 0x8000_0000;
pub(super) const GENERIC_NACK: u32 = 0x8000_0000;
/// The status for an unknown command.
pub(super) const UNKNOWN_COMMAND: u32 = 0x03;

/// The octets of a header: length, command, status and sequence number.
const HEADER: usize = 16;
/// Larger than any PDU of our client.
const MAX_PDU_OCTETS: usize = 128 * 1024;

/// A whole PDU.
pub(super) struct Pdu {
    pub(super) command: u32,
    pub(super) status: u32,
    pub(super) sequence: u32,
    pub(super) octets: Vec<u8>,
}

impl Pdu {
    /// Reads the next PDU; `None` at the end of the connection.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut octets = vec![0; 4];
        if stream.read_exact(&mut octets).await.is_err() {
            return Ok(None);
        }
        let length = u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]) as usize;
        if !(HEADER..=MAX_PDU_OCTETS).contains(&length) {
            return Err(io::Error::other(format!("a PDU of {length} octets")));
        }
        octets.resize(length, 0);
        stream.read_exact(&mut octets[4..]).await?;
        let mut fields = Fields(&octets[4..]);
        Ok(Some(Self {
            command: fields.long()?,
            status: fields.long()?,
            sequence: fields.long()?,
            octets,
        }))
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(&self.octets[HEADER..])
    }
}

/// Builds a PDU.
pub(super) fn pdu(command: u32, status: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).expect("short");
    let header = [length, command, status, sequence].map(u32::to_be_bytes);
    [header.as_flattened(), body].concat()
}

/// A string with a NUL at its end.
pub(super) fn c_string(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// A TLV.
pub(super) fn tlv(tag: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("short");
    [&tag.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

/// Reads the fields of a body one after the other.
pub(super) struct Fields<'o>(&'o [u8]);

impl<'o> Fields<'o> {
    fn take(&mut self, count: usize) -> io::Result<&'o [u8]> {
        let short = || io::Error::other("a PDU ends before its fields do");
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn octet(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn short(&mut self) -> io::Result<u16> {
        let octets = self.take(2)?;
        Ok(u16::from_be_bytes([octets[0], octets[1]]))
    }

    fn long(&mut self) -> io::Result<u32> {
        let octets = self.take(4)?;
        Ok(u32::from_be_bytes([
            octets[0], octets[1], octets[2], octets[3],
        ]))
    }

    /// A string up to its NUL, one character for each octet.
    pub(super) fn string(&mut self) -> io::Result<String> {
        let no_end = || io::Error::other("a string without its NUL");
        let length = self
            .0
            .iter()
            .position(|octet| *octet == 0)
            .ok_or_else(no_end)?;
        let text = self.take(length)?.iter().copied().map(char::from).collect();
        self.take(1)?;
        Ok(text)
    }

    fn tlvs(&mut self) -> io::Result<Vec<(u16, Vec<u8>)>> {
        let mut tlvs = Vec::new();
        while !self.0.is_empty() {
            let (tag, length) = (self.short()?, self.short()?);
            tlvs.push((tag, self.take(usize::from(length))?.to_vec()));
        }
        Ok(tlvs)
    }
}

/// A message that the SMSC received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// The number of the message, counted from 0 over all connections.
    pub number: usize,
    /// The connection, counted from 0.
    pub connection: usize,
    /// When it was received.
    pub at: Instant,
    /// The sequence number.
    pub sequence: u32,
    /// The whole PDU.
    pub octets: Vec<u8>,
    /// The field of that name.
    pub service_type: String,
    /// Type of number, numbering plan and address of the sender.
    pub source: (u8, u8, String),
    /// Type of number, numbering plan and address of the recipient.
    pub destination: (u8, u8, String),
    /// The field of that name.
    pub esm_class: u8,
    /// The field of that name.
    pub validity_period: String,
    /// The field of that name.
    pub registered_delivery: u8,
    /// The field of that name.
    pub data_coding: u8,
    /// The field of that name.
    pub short_message: Vec<u8>,
    /// All TLVs, in order.
    pub tlvs: Vec<(u16, Vec<u8>)>,
}

impl Submit {
    /// The ID that the SMSC assigns to it.
    pub fn id(&self) -> u64 {
        1_000_000 + self.number as u64
    }

    /// The value of a TLV.
    pub fn tlv(&self, tag: u16) -> Option<&[u8]> {
        let found = self.tlvs.iter().find(|(known, _)| *known == tag);
        found.map(|(_, value)| value.as_slice())
    }

    pub(super) fn read(pdu: Pdu, connection: usize, at: Instant) -> io::Result<Self> {
        let mut fields = pdu.fields();
        let service_type = fields.string()?;
        let source = (fields.octet()?, fields.octet()?, fields.string()?);
        let destination = (fields.octet()?, fields.octet()?, fields.string()?);
        let esm_class = fields.octet()?;
        let (_protocol, _priority) = (fields.octet()?, fields.octet()?);
        let _scheduled = fields.string()?;
        let validity_period = fields.string()?;
        let registered_delivery = fields.octet()?;
        let _replace = fields.octet()?;
        let data_coding = fields.octet()?;
        let _predefined = fields.octet()?;
        let length = fields.octet()?;
        let short_message = fields.take(usize::from(length))?.to_vec();
        let tlvs = fields.tlvs()?;
        Ok(Self {
            number: 0,
            connection,
            at,
            sequence: pdu.sequence,
            service_type,
            source,
            destination,
            esm_class,
            validity_period,
            registered_delivery,
            data_coding,
            short_message,
            tlvs,
            octets: pdu.octets,
        })
    }
}
