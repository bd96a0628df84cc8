//! The PDUs.

use std::fmt;

use bytes::Bytes;

use crate::{Status, Tlvs, command};

/// One PDU: a request, an answer, a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    /// How the request went; [`Status::OK`] in a request.
    pub status: Status,
    /// Ties an answer to its request.
    pub sequence: u32,
    /// What it says.
    pub body: Body,
}

impl Pdu {
    /// A request, or an answer without error.
    pub const fn new(sequence: u32, body: Body) -> Self {
        Self::with_status(Status::OK, sequence, body)
    }

    /// An answer with a status.
    pub const fn with_status(status: Status, sequence: u32, body: Body) -> Self {
        Self {
            status,
            sequence,
            body,
        }
    }
}

/// What a PDU says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A client opens a session.
    Bind(BindKind, Box<Bind>),
    /// The answer to it.
    BindResp(BindKind, BindResp),
    /// An SMSC asks a client to bind.
    Outbind(Box<Outbind>),
    /// One side wants to end the session.
    Unbind,
    /// The answer to it.
    UnbindResp,
    /// One side asks whether the other still hears.
    EnquireLink,
    /// The answer to it.
    EnquireLinkResp,
    /// The answer to what could not be understood.
    GenericNack,
    /// A client sends a message.
    SubmitSm(Box<ShortMessage>),
    /// The answer to it.
    SubmitSmResp(MessageResp),
    /// An SMSC brings a message or a receipt.
    DeliverSm(Box<ShortMessage>),
    /// The answer to it; its message ID is empty.
    DeliverSmResp(MessageResp),
    /// A message with all of its text in the optional part; in both directions.
    DataSm(Box<DataMessage>),
    /// The answer to it.
    DataSmResp(MessageResp),
    /// A client asks what became of a message.
    QuerySm(Box<QuerySm>),
    /// The answer to it.
    QuerySmResp(Box<QuerySmResp>),
    /// A client takes a message back.
    CancelSm(Box<CancelSm>),
    /// The answer to it.
    CancelSmResp,
    /// A client changes a message.
    ReplaceSm(Box<ReplaceSm>),
    /// The answer to it.
    ReplaceSmResp,
    /// An SMSC tells that a phone can be reached again. It has no answer.
    AlertNotification(Box<AlertNotification>),
    /// A command that this crate does not know, as it came.
    Unknown {
        /// Its number.
        command: u32,
        /// Its body.
        octets: Bytes,
    },
}

impl Body {
    /// The number of the command; see [`command`].
    pub const fn command(&self) -> u32 {
        match self {
            Self::Bind(kind, _) => kind.command(),
            Self::BindResp(kind, _) => kind.command() | command::RESPONSE,
            Self::Outbind(_) => command::OUTBIND,
            Self::Unbind => command::UNBIND,
            Self::UnbindResp => command::UNBIND_RESP,
            Self::EnquireLink => command::ENQUIRE_LINK,
            Self::EnquireLinkResp => command::ENQUIRE_LINK_RESP,
            Self::GenericNack => command::GENERIC_NACK,
            Self::SubmitSm(_) => command::SUBMIT_SM,
            Self::SubmitSmResp(_) => command::SUBMIT_SM_RESP,
            Self::DeliverSm(_) => command::DELIVER_SM,
            Self::DeliverSmResp(_) => command::DELIVER_SM_RESP,
            Self::DataSm(_) => command::DATA_SM,
            Self::DataSmResp(_) => command::DATA_SM_RESP,
            Self::QuerySm(_) => command::QUERY_SM,
            Self::QuerySmResp(_) => command::QUERY_SM_RESP,
            Self::CancelSm(_) => command::CANCEL_SM,
            Self::CancelSmResp => command::CANCEL_SM_RESP,
            Self::ReplaceSm(_) => command::REPLACE_SM,
            Self::ReplaceSmResp => command::REPLACE_SM_RESP,
            Self::AlertNotification(_) => command::ALERT_NOTIFICATION,
            Self::Unknown { command, .. } => *command,
        }
    }
}

/// What a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindKind {
    /// Send.
    Transmitter,
    /// Receive.
    Receiver,
    /// Both.
    Transceiver,
}

impl BindKind {
    /// The number of the request.
    pub const fn command(self) -> u32 {
        match self {
            Self::Transmitter => command::BIND_TRANSMITTER,
            Self::Receiver => command::BIND_RECEIVER,
            Self::Transceiver => command::BIND_TRANSCEIVER,
        }
    }
}

/// An address: a number, a short code, a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// Type of number: 0 unknown, 1 international, 2 national, 3 network's own, 5 alphanumeric.
    pub ton: u8,
    /// Numbering plan: 0 unknown, 1 telephone (E.164).
    pub npi: u8,
    /// The digits or letters.
    pub digits: Bytes,
}

impl Address {
    /// An address.
    pub fn new(ton: u8, npi: u8, digits: impl Into<Bytes>) -> Self {
        Self {
            ton,
            npi,
            digits: digits.into(),
        }
    }
}

/// The body of a bind. The password is not in its `Debug` text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bind {
    /// Who binds.
    pub system_id: Bytes,
    /// How it proves that.
    pub password: Bytes,
    /// What kind of system it is; often empty.
    pub system_type: Bytes,
    /// The version it speaks: 0x34, 0x50.
    pub interface_version: u8,
    /// The addresses it serves; mostly empty.
    pub address_range: Address,
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bind")
            .field("system_id", &self.system_id)
            .field("system_type", &self.system_type)
            .field("interface_version", &self.interface_version)
            .field("address_range", &self.address_range)
            .finish_non_exhaustive()
    }
}

/// The body of an answer to a bind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindResp {
    /// Who answers.
    pub system_id: Bytes,
    /// Often `sc_interface_version`.
    pub tlvs: Tlvs,
}

/// The body of `outbind`. The password is not in its `Debug` text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Outbind {
    /// Who asks.
    pub system_id: Bytes,
    /// How it proves that.
    pub password: Bytes,
}

impl fmt::Debug for Outbind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbind")
            .field("system_id", &self.system_id)
            .finish_non_exhaustive()
    }
}

/// The body of `submit_sm` and of `deliver_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortMessage {
    /// The service, by agreement; often empty.
    pub service_type: Bytes,
    /// From whom.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// Mode, type and features; 0x04 marks a receipt, 0x40 a header before the text.
    pub esm_class: u8,
    /// The network's protocol identifier.
    pub protocol_id: u8,
    /// From 0, the lowest, to 3.
    pub priority_flag: u8,
    /// When to deliver; empty for at once.
    pub schedule_delivery_time: Bytes,
    /// Until when to try; empty for the SMSC's default.
    pub validity_period: Bytes,
    /// Which receipts are wanted; 1 for the final one.
    pub registered_delivery: u8,
    /// 1 to replace a message that waits.
    pub replace_if_present: u8,
    /// How the text is coded.
    pub data_coding: u8,
    /// A message that the SMSC has in store; `sm_default_msg_id`.
    pub default_message_id: u8,
    /// The text, at most 255 octets (254 in 3.4). Longer ones go into `message_payload`.
    pub short_message: Bytes,
    /// The optional part.
    pub tlvs: Tlvs,
}

impl ShortMessage {
    /// The text, wherever it is: `short_message`, or `message_payload` when that is empty.
    pub fn text(&self) -> &Bytes {
        if self.short_message.is_empty() {
            self.tlvs.message_payload().unwrap_or(&self.short_message)
        } else {
            &self.short_message
        }
    }
}

/// The body of `data_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataMessage {
    /// The service, by agreement; often empty.
    pub service_type: Bytes,
    /// From whom.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// Mode, type and features.
    pub esm_class: u8,
    /// Which receipts are wanted.
    pub registered_delivery: u8,
    /// How the text is coded.
    pub data_coding: u8,
    /// The optional part, with the text in `message_payload`.
    pub tlvs: Tlvs,
}

/// The body of the answer to a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageResp {
    /// The ID that the other side gave the message. Octets, not a number: some SMSCs count in hexadecimal.
    pub message_id: Bytes,
    /// The optional part.
    pub tlvs: Tlvs,
}

impl MessageResp {
    /// An answer with an ID and nothing else.
    pub fn new(message_id: impl Into<Bytes>) -> Self {
        Self {
            message_id: message_id.into(),
            tlvs: Tlvs::new(),
        }
    }
}

/// The body of `query_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuerySm {
    /// Which message.
    pub message_id: Bytes,
    /// From whom it was.
    pub source: Address,
}

/// The body of `query_sm_resp`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuerySmResp {
    /// Which message.
    pub message_id: Bytes,
    /// When it reached its last state; empty when it has not.
    pub final_date: Bytes,
    /// See [`message_state`](crate::message_state).
    pub message_state: u8,
    /// The network's own error, 0 for none.
    pub error_code: u8,
}

/// The body of `cancel_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelSm {
    /// The service it was sent by.
    pub service_type: Bytes,
    /// Which message; empty for all from this source to this destination.
    pub message_id: Bytes,
    /// From whom it was.
    pub source: Address,
    /// To whom it was.
    pub destination: Address,
}

/// The body of `replace_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplaceSm {
    /// Which message.
    pub message_id: Bytes,
    /// From whom it was.
    pub source: Address,
    /// When to deliver; empty for unchanged.
    pub schedule_delivery_time: Bytes,
    /// Until when to try; empty for unchanged.
    pub validity_period: Bytes,
    /// Which receipts are wanted.
    pub registered_delivery: u8,
    /// A message that the SMSC has in store.
    pub default_message_id: u8,
    /// The new text.
    pub short_message: Bytes,
    /// The optional part; of 5.0.
    pub tlvs: Tlvs,
}

/// The body of `alert_notification`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlertNotification {
    /// The phone that can be reached.
    pub source: Address,
    /// The client that asked to know.
    pub esme: Address,
    /// The optional part.
    pub tlvs: Tlvs,
}

#[cfg(test)]
mod tests {
    use super::{Bind, Outbind, ShortMessage};
    use crate::tag;

    #[test]
    fn passwords_are_not_in_debug_text() {
        let password = bytes::Bytes::from_static(b"hush");
        let bind = Bind {
            password: password.clone(),
            ..Bind::default()
        };
        let outbind = Outbind {
            password,
            ..Outbind::default()
        };
        for text in [format!("{bind:?}"), format!("{outbind:?}")] {
            assert!(!text.contains("hush"), "{text}");
        }
    }

    #[test]
    fn the_text_is_found_in_either_place() {
        let mut message = ShortMessage::default();
        assert!(message.text().is_empty());
        message.tlvs.push(tag::MESSAGE_PAYLOAD, &b"long"[..]);
        assert_eq!(message.text().as_ref(), b"long");
        message.short_message = (&b"short"[..]).into();
        assert_eq!(message.text().as_ref(), b"short");
    }
}
