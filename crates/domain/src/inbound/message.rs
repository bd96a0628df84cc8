//! A message from a handset, as accounts see it.

use jiff::Timestamp;
use serde::Serialize;

use super::number::InboundNumber;
use crate::ids::{AccountId, MessageId};
use crate::message::text::{Coding, Udh};
use crate::money::Money;
use crate::number::network::Network;

/// A message from a handset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMessage {
    pub id: MessageId,
    /// Whose number it was sent to; `None` if nobody owns the number.
    pub account: Option<AccountId>,
    /// Which carrier delivered it.
    pub carrier: String,
    /// The sender, with `+` if it is a phone number.
    pub from: String,
    pub to: InboundNumber,
    /// Hexadecimal digits if the coding is binary.
    pub text: String,
    pub coding: Coding,
    /// What the header holds besides concatenation.
    pub udh: Option<Udh>,
    /// Of the sender, as its prefix tells.
    pub network: Option<Network>,
    /// How many parts were announced.
    pub parts: u8,
    /// As it was configured, if the text begins with it.
    pub keyword: Option<String>,
    /// The newest message of the account from this number to this sender.
    pub in_reply_to: Option<MessageId>,
    /// Whether a part did not arrive.
    pub is_incomplete: bool,
    /// When its first part was stored.
    pub received_at: Timestamp,
    /// What the account pays for it.
    pub price: Money,
}

/// The form in callbacks and responses.
#[derive(Debug, Clone, Serialize)]
pub struct InboundRecord {
    id: String,
    from: String,
    to: String,
    message: String,
    received: String,
    parts: u8,
    coding: u8,
    udh: Option<String>,
    mcc: Option<String>,
    mnc: Option<String>,
    keyword: Option<String>,
    #[serde(rename = "inReplyTo")]
    in_reply_to: Option<String>,
    incomplete: bool,
}

impl InboundMessage {
    pub fn record(&self) -> InboundRecord {
        InboundRecord {
            id: self.id.to_string(),
            from: self.from.clone(),
            to: self.to.to_string(),
            message: self.text.clone(),
            received: self.received_at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            parts: self.parts,
            coding: self.coding.number(),
            udh: self.udh.as_ref().map(ToString::to_string),
            mcc: self.network.map(|network| format!("{:03}", network.mcc())),
            mnc: self.network.map(Network::mnc),
            keyword: self.keyword.clone(),
            in_reply_to: self.in_reply_to.map(|id| id.to_string()),
            incomplete: self.is_incomplete,
        }
    }

    /// The body of its callback.
    pub fn payload(&self) -> String {
        serde_json::to_string(&self.record()).expect("texts and numbers can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_every_field() {
        let message = InboundMessage {
            id: MessageId::new(7).expect("in range"),
            account: None,
            carrier: "alpha".to_owned(),
            from: "+37120000001".to_owned(),
            to: InboundNumber::parse("1234").expect("a short code"),
            text: "Join \"us\"".to_owned(),
            coding: Coding::Gsm7,
            udh: None,
            network: Network::new("247", "02"),
            parts: 1,
            keyword: Some("join".to_owned()),
            in_reply_to: MessageId::new(5),
            is_incomplete: false,
            received_at: "2026-11-17T08:09:10.9Z".parse().expect("a time"),
            price: Money::from_micros(7),
        };
        let expected = r#"{"id":"7","from":"+37120000001","to":"1234","message":"Join \"us\"","received":"2026-11-17 08:09:10","parts":1,"coding":0,"udh":null,"mcc":"247","mnc":"02","keyword":"join","inReplyTo":"5","incomplete":false}"#;
        assert_eq!(message.payload(), expected);
        let plain = InboundMessage {
            keyword: None,
            in_reply_to: None,
            network: None,
            udh: Some(Udh::from_bytes(&[3, 0x70, 1, 9]).expect("a header")),
            ..message
        };
        let payload = plain.payload();
        for part in [
            r#""mcc":null,"mnc":null,"keyword":null,"inReplyTo":null"#,
            r#""udh":""#,
        ] {
            assert!(payload.contains(part), "{payload}");
        }
    }
}
