//! Texts from handsets, as SMPP carries them.

use ::smpp::{Address, DataMessage, ShortMessage, Tlvs};
use domain::Msisdn;
use domain::inbound::header::{Concatenation, Header};
use domain::inbound::number::InboundNumber;
use domain::inbound::text::Alphabet;
use domain::ports::HandsetText;
use ring::digest::{Context, SHA256};

/// The bit of `esm_class` that announces a header before the text.
const HEADER: u8 = 0x40;
/// Types of number.
const INTERNATIONAL: u8 = 1;
/// The longest sender that is kept.
const MAX_SENDER_CHARS: usize = 20;

/// The fields of a `deliver_sm` or `data_sm` that make a text.
#[derive(Clone, Copy)]
pub(super) struct HandsetFields<'o> {
    pub(super) source: &'o Address,
    pub(super) destination: &'o Address,
    pub(super) esm_class: u8,
    pub(super) data_coding: u8,
    pub(super) text: &'o [u8],
    pub(super) tlvs: &'o Tlvs,
}

impl<'o> HandsetFields<'o> {
    pub(super) fn from_deliver(message: &'o ShortMessage) -> Self {
        Self {
            source: &message.source,
            destination: &message.destination,
            esm_class: message.esm_class,
            data_coding: message.data_coding,
            text: message.text(),
            tlvs: &message.tlvs,
        }
    }

    pub(super) fn from_data(message: &'o DataMessage) -> Self {
        Self {
            source: &message.source,
            destination: &message.destination,
            esm_class: message.esm_class,
            data_coding: message.data_coding,
            text: message.tlvs.message_payload().map_or(&[], |text| text),
            tlvs: &message.tlvs,
        }
    }

    /// The text; `None` if it was sent to something that is no number.
    pub(super) fn read(&self, carrier: &str) -> Option<HandsetText> {
        let to = str::from_utf8(&self.destination.digits).ok()?;
        let to = InboundNumber::from_address(to, self.destination.ton == INTERNATIONAL).ok()?;
        let header = if self.esm_class & HEADER == 0 {
            None
        } else {
            Header::read(self.text)
        };
        let header = header.unwrap_or_default();
        Some(HandsetText {
            carrier: carrier.to_owned(),
            from: sender(self.source),
            to,
            concatenation: header.concatenation.or_else(|| self.segment()),
            alphabet: Alphabet::from_data_coding(self.data_coding),
            octets: self.text[header.octets..].to_vec(),
            udh: header.rest,
        })
    }

    /// The part that the SAR fields tell.
    fn segment(&self) -> Option<Concatenation> {
        let (total, sequence) = (
            self.tlvs.sar_total_segments()?,
            self.tlvs.sar_segment_seqnum()?,
        );
        Concatenation::new(self.tlvs.sar_msg_ref_num()?, total, sequence)
    }

    /// A hash of the carrier and the content, by which a repetition is recognised.
    pub(super) fn hash(&self, carrier: &str) -> [u8; 16] {
        let mut context = Context::new(&SHA256);
        let mut add = |bytes: &[u8]| {
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(bytes);
        };
        add(carrier.as_bytes());
        for address in [self.source, self.destination] {
            add(&[address.ton, address.npi]);
            add(&address.digits);
        }
        add(&[self.esm_class, self.data_coding]);
        add(self.text);
        for (tag, value) in self.tlvs.iter() {
            add(&tag.to_be_bytes());
            add(value);
        }
        let digest = context.finish();
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest.as_ref()[..16]);
        hash
    }
}

/// The sender as it is shown: with a plus sign if it is a phone number, and without characters that nobody can see.
fn sender(address: &Address) -> String {
    let text = String::from_utf8_lossy(&address.digits);
    let text = text.trim();
    if let Ok(InboundNumber::Msisdn(number)) =
        InboundNumber::from_address(text, address.ton == INTERNATIONAL)
    {
        return Msisdn::to_string(&number);
    }
    let visible = text.chars().filter(|c| !c.is_control());
    visible.take(MAX_SENDER_CHARS).collect()
}
