//! Settings of an SMPP carrier.

use std::net::IpAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::IdForm;

/// How the links of a carrier bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindMode {
    /// Each link sends and receives.
    #[default]
    Transceiver,
    /// Each link is a pair: one connection sends, the other receives.
    Pair,
    /// Each link only sends; receipts arrive elsewhere, or not at all.
    Transmitter,
}

/// The encoding of texts in the GSM alphabet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gsm7Form {
    /// Data coding 0, one septet per octet.
    #[default]
    Default,
    /// Data coding 3, ISO 8859-1. A text with other characters, such as `€` or a Greek capital, is still sent with data
    /// coding 0, because its parts are already counted and paid.
    Latin1,
}

/// How texts of several parts are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LongText {
    /// Each part has a user data header.
    #[default]
    Udh,
    /// Each part has the TLVs `sar_…`, from which the carrier makes the header.
    Sar,
    /// As a whole in the TLV `message_payload`; the carrier splits it and returns one ID.
    Payload,
}

/// The trusted certificates of a TLS link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmppTls {
    /// The name in the carrier's certificate; by default the host of its address.
    pub server_name: Option<String>,
    /// The trusted certificate authorities; if empty, those of the public web.
    pub authorities: Vec<CertificateDer<'static>>,
}

/// Settings of an SMPP carrier. No `Debug`, because they contain a password.
#[derive(Clone, PartialEq)]
pub struct SmppSettings {
    /// The name in configuration, receipts and lists.
    pub name: String,
    /// Host and port.
    pub address: String,
    pub tls: Option<SmppTls>,
    pub system_id: String,
    pub password: String,
    /// By agreement with the carrier.
    pub system_type: String,
    /// By agreement with the carrier.
    pub service_type: String,
    pub bind: BindMode,
    pub binds: u16,
    /// How many parts may wait for an answer on each link.
    pub window: usize,
    /// The maximum rate over all links, in parts a second.
    pub max_per_second: Option<u32>,
    /// How long an answer may take before the link is probed.
    pub response_timeout: Duration,
    /// How long to wait for the answer to a message while the link answers its probes.
    pub late_answer: Duration,
    /// How many attempts to send a message may end without an answer. After the last one, it is not sent again.
    pub unknown_tries: u32,
    /// How long a link may be silent before it is probed.
    pub enquire_every: Duration,
    /// The pause before a lost link is reconnected. It doubles with each failure, up to a minute.
    pub reconnect_after: Duration,
    /// The local address to connect from.
    pub source: Option<IpAddr>,
    pub gsm7: Gsm7Form,
    /// The data coding of UCS-2.
    pub ucs2_coding: u8,
    pub long_text: LongText,
    /// The sender's type of number, for all senders.
    pub source_ton: Option<u8>,
    /// The sender's numbering plan, for all senders.
    pub source_npi: Option<u8>,
    /// The recipient's type of number.
    pub dest_ton: Option<u8>,
    /// The recipient's numbering plan.
    pub dest_npi: Option<u8>,
    /// Whether to send the validity period.
    pub validity: bool,
    /// The requested receipts; 1 for the final one.
    pub registered_delivery: u8,
    /// The form of IDs in answers.
    pub answer_ids: IdForm,
    /// The form of IDs in receipts.
    pub receipt_ids: IdForm,
    /// Whether the recipient must match as well.
    pub match_recipient: bool,
    /// Whether a message that looks like a receipt counts as one even if `esm_class` does not say so.
    pub unmarked_receipts: bool,
}

impl SmppSettings {
    /// The defaults.
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
