//! What a carrier that speaks SMPP is told.

use std::net::IpAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::IdForm;

/// What the links of a carrier bind as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindMode {
    /// Each link sends and receives.
    #[default]
    Transceiver,
    /// Each is a pair: one connection sends, the other receives.
    Pair,
    /// Each only sends; receipts come by another way, or not at all.
    Transmitter,
}

/// How a text of the GSM alphabet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gsm7Form {
    /// Data coding 0, a septet to each octet.
    #[default]
    Default,
    /// Data coding 3, a character of ISO 8859-1 to each octet. A text with a character that is not in it, such as `€` or a
    /// Greek capital, leaves by data coding 0 all the same: its parts are counted and paid.
    Latin1,
}

/// How a text of several parts leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LongText {
    /// Each part with the header that handsets join by.
    #[default]
    Udh,
    /// Each part with the TLVs `sar_…`, of which the carrier makes the header.
    Sar,
    /// Whole, in the TLV `message_payload`; the carrier splits it and gives it one name.
    Payload,
}

/// Whom to trust on a link by TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmppTls {
    /// The name in the carrier's certificate; the host of its address when unset.
    pub server_name: Option<String>,
    /// The authorities that may have signed it; those of the public web when empty.
    pub authorities: Vec<CertificateDer<'static>>,
}

/// A carrier that speaks SMPP. It has no `Debug`, for it holds a password.
#[derive(Clone, PartialEq)]
pub struct SmppSettings {
    /// Its name in configuration, receipts and lists.
    pub name: String,
    /// Host and port.
    pub address: String,
    /// Whether by TLS, and whom to trust then.
    pub tls: Option<SmppTls>,
    /// Who we are there.
    pub system_id: String,
    /// How we prove it.
    pub password: String,
    /// The kind of system that we are, by agreement.
    pub system_type: String,
    /// The service that messages are sent by, by agreement.
    pub service_type: String,
    /// What links bind as.
    pub bind: BindMode,
    /// How many links there are.
    pub binds: u16,
    /// How many parts may wait for their answers on each link.
    pub window: usize,
    /// How many parts may leave in a second, over all links.
    pub max_per_second: Option<u32>,
    /// How long an answer may take before the link is probed.
    pub response_timeout: Duration,
    /// How long the answer to a message is awaited while the link answers its probes.
    pub late_answer: Duration,
    /// How many tries to send a message may end without an answer. After the last one the message is not sent again.
    pub unknown_tries: u32,
    /// How long a link may be silent before it is asked whether it lives.
    pub enquire_every: Duration,
    /// The pause before a lost link is connected again; it doubles up to a minute while that fails.
    pub reconnect_after: Duration,
    /// The address to connect from.
    pub source: Option<IpAddr>,
    /// How a text of the GSM alphabet leaves.
    pub gsm7: Gsm7Form,
    /// The data coding of UCS-2.
    pub ucs2_coding: u8,
    /// How a text of several parts leaves.
    pub long_text: LongText,
    /// The sender's type of number, whatever the sender is.
    pub source_ton: Option<u8>,
    /// The sender's numbering plan, whatever the sender is.
    pub source_npi: Option<u8>,
    /// The recipient's type of number.
    pub dest_ton: Option<u8>,
    /// The recipient's numbering plan.
    pub dest_npi: Option<u8>,
    /// Whether to tell the carrier how long it may try.
    pub validity: bool,
    /// Which receipts to ask for; 1 is the final one.
    pub registered_delivery: u8,
    /// How names of parts are written in answers.
    pub answer_ids: IdForm,
    /// How names of parts are written in receipts.
    pub receipt_ids: IdForm,
    /// Whether a receipt is matched by its recipient, too.
    pub match_recipient: bool,
    /// Whether a message that reads as a receipt is one although `esm_class` does not say so.
    pub unmarked_receipts: bool,
}

impl SmppSettings {
    /// A carrier of which only this is known.
    pub fn new(
        name: impl Into<String>,
        address: impl Into<String>,
        system_id: impl Into<String>,
        password: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            address: address.into(),
            tls: None,
            system_id: system_id.into(),
            password: password.into(),
            system_type: String::new(),
            service_type: String::new(),
            bind: BindMode::default(),
            binds: 1,
            window: 50,
            max_per_second: None,
            response_timeout: Duration::from_secs(10),
            late_answer: Duration::from_mins(5),
            unknown_tries: 2,
            enquire_every: Duration::from_secs(30),
            reconnect_after: Duration::from_secs(1),
            source: None,
            gsm7: Gsm7Form::default(),
            ucs2_coding: 8,
            long_text: LongText::default(),
            source_ton: None,
            source_npi: None,
            dest_ton: None,
            dest_npi: None,
            validity: true,
            registered_delivery: 1,
            answer_ids: IdForm::default(),
            receipt_ids: IdForm::default(),
            match_recipient: true,
            unmarked_receipts: false,
        }
    }
}
