//! The types of PDUs.

use std::fmt;

use bytes::Bytes;

use crate::{Status, Tlvs, command};

/// A request, a response or a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    /// The result of the request; [`Status::OK`] in requests.
    pub status: Status,
    /// Matches a response to its request.
    pub sequence: u32,
    /// The content.
    pub body: Body,
}

impl Pdu {
    /// A request, or a successful response.
    pub const fn new(sequence: u32, body: Body) -> Self {
        Self::with_status(Status::OK, sequence, body)
    }

    /// A response with a status.
    pub const fn with_status(status: Status, sequence: u32, body: Body) -> Self {
        Self {
            status,
            sequence,
            body,
        }
    }
}

/// The content of a PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A client opens a session.
    Bind(BindKind, Box<Bind>),
    /// The response to a bind.
    BindResp(BindKind, BindResp),
    /// An SMSC asks a client to bind.
    Outbind(Box<Outbind>),
    /// Either side ends the session.
    Unbind,
    /// The response to `unbind`.
    UnbindResp,
    /// Either side checks that the other is alive.
    EnquireLink,
    /// The response to `enquire_link`.
    EnquireLinkResp,
    /// The response to a PDU that is not understood.
    GenericNack,
    /// A client sends a message.
    SubmitSm(Box<ShortMessage>),
    /// The response to `submit_sm`.
    SubmitSmResp(MessageResp),
    /// A client sends a message to several destinations.
    SubmitMulti(Box<SubmitMulti>),
    /// The response to `submit_multi`.
    SubmitMultiResp(Box<SubmitMultiResp>),
    /// An SMSC delivers a message or a receipt.
    DeliverSm(Box<ShortMessage>),
    /// The response to `deliver_sm`; its message ID is empty.
    DeliverSmResp(MessageResp),
    /// A message with its text in the optional parameters, in either direction.
    DataSm(Box<DataMessage>),
    /// The response to `data_sm`.
    DataSmResp(MessageResp),
    /// A client asks for the state of a message.
    QuerySm(Box<QuerySm>),
    /// The response to `query_sm`.
    QuerySmResp(Box<QuerySmResp>),
    /// A client cancels a message.
    CancelSm(Box<CancelSm>),
    /// The response to `cancel_sm`.
    CancelSmResp,
    /// A client replaces a message.
    ReplaceSm(Box<ReplaceSm>),
    /// The response to `replace_sm`.
    ReplaceSmResp,
    /// An SMSC reports that a phone is reachable again. It has no response.
    AlertNotification(Box<AlertNotification>),
    /// A command that this crate does not know.
    Unknown {
        /// The command.
        command: u32,
        /// The undecoded body.
        octets: Bytes,
    },
}

impl Body {
    /// The ID of the command; see [`command`].
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
            Self::SubmitMulti(_) => command::SUBMIT_MULTI,
            Self::SubmitMultiResp(_) => command::SUBMIT_MULTI_RESP,
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

/// The direction of a session's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindKind {
    /// The client only sends.
    Transmitter,
    /// The client only receives.
    Receiver,
    /// The client sends and receives.
    Transceiver,
}

impl BindKind {
    /// The ID of the bind request.
    pub const fn command(self) -> u32 {
        match self {
            Self::Transmitter => command::BIND_TRANSMITTER,
            Self::Receiver => command::BIND_RECEIVER,
            Self::Transceiver => command::BIND_TRANSCEIVER,
        }
    }
}

/// A phone number, a short code or a name.
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
    /// Creates an address.
    pub fn new(ton: u8, npi: u8, digits: impl Into<Bytes>) -> Self {
        Self {
            ton,
            npi,
            digits: digits.into(),
        }
    }
}

/// The body of a bind. Its `Debug` output omits the password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bind {
    /// The name of the client.
    pub system_id: Bytes,
    /// The password.
    pub password: Bytes,
    /// The type of the client; often empty.
    pub system_type: Bytes,
    /// The client's protocol version: 0x34, 0x50.
    pub interface_version: u8,
    /// The addresses that the client serves; usually empty.
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

/// The body of a bind response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindResp {
    /// The name of the SMSC.
    pub system_id: Bytes,
    /// Often contains `sc_interface_version`.
    pub tlvs: Tlvs,
}

/// The body of `outbind`. Its `Debug` output omits the password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Outbind {
    /// The name of the SMSC.
    pub system_id: Bytes,
    /// The password.
    pub password: Bytes,
}

impl fmt::Debug for Outbind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbind")
            .field("system_id", &self.system_id)
            .finish_non_exhaustive()
    }
}

/// The body of `submit_sm` and `deliver_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortMessage {
    /// The service, by agreement; often empty.
    pub service_type: Bytes,
    /// The sender.
    pub source: Address,
    /// The recipient.
    pub destination: Address,
    /// Mode, type and features: 0x04 marks a receipt, 0x40 a header before the text.
    pub esm_class: u8,
    /// The network's protocol identifier.
    pub protocol_id: u8,
    /// From 0 (lowest) to 3.
    pub priority_flag: u8,
    /// When to deliver; empty for immediately.
    pub schedule_delivery_time: Bytes,
    /// How long to try; empty for the SMSC's default.
    pub validity_period: Bytes,
    /// The requested receipts; 1 for the final one.
    pub registered_delivery: u8,
    /// 1 to replace a waiting message.
    pub replace_if_present: u8,
    /// The encoding of the text.
    pub data_coding: u8,
    /// The ID of a message stored at the SMSC (`sm_default_msg_id`).
    pub default_message_id: u8,
    /// The text, at most 255 octets (254 in 3.4). Longer texts go into `message_payload`.
    pub short_message: Bytes,
    /// The optional parameters.
    pub tlvs: Tlvs,
}

impl ShortMessage {
    /// The text: `short_message`, or `message_payload` if that is empty.
    pub fn text(&self) -> &Bytes {
        if self.short_message.is_empty() {
            self.tlvs.message_payload().unwrap_or(&self.short_message)
        } else {
            &self.short_message
        }
    }
}

/// The body of `submit_multi`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmitMulti {
    /// All fields but the destination, which is empty.
    pub message: ShortMessage,
    /// The recipients, at most 255 (254 in 3.4).
    pub destinations: Vec<Destination>,
}

/// A recipient of `submit_multi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// An address.
    Address(Address),
    /// The name of a distribution list at the SMSC.
    List(Bytes),
}

impl Destination {
    /// `dest_flag` of an address.
    pub(crate) const ADDRESS: u8 = 1;
    /// `dest_flag` of a distribution list.
    pub(crate) const LIST: u8 = 2;
}

/// The body of `submit_multi_resp`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmitMultiResp {
    /// The ID that the SMSC gave the message.
    pub message_id: Bytes,
    /// The destinations that do not get the message, and why.
    pub unsuccessful: Vec<(Address, Status)>,
    /// The optional parameters.
    pub tlvs: Tlvs,
}

/// The body of `data_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataMessage {
    /// The service, by agreement; often empty.
    pub service_type: Bytes,
    /// The sender.
    pub source: Address,
    /// The recipient.
    pub destination: Address,
    /// Mode, type and features.
    pub esm_class: u8,
    /// The requested receipts.
    pub registered_delivery: u8,
    /// The encoding of the text.
    pub data_coding: u8,
    /// The optional parameters, with the text in `message_payload`.
    pub tlvs: Tlvs,
}

/// The body of the response to a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageResp {
    /// The ID that the receiving side gave the message. It is not a number: some SMSCs count in hexadecimal.
    pub message_id: Bytes,
    /// The optional parameters.
    pub tlvs: Tlvs,
}

impl MessageResp {
    /// A response with only an ID.
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
    /// The ID of the message.
    pub message_id: Bytes,
    /// The sender of the message.
    pub source: Address,
}

/// The body of `query_sm_resp`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuerySmResp {
    /// The ID of the message.
    pub message_id: Bytes,
    /// When the message reached its final state; empty before that.
    pub final_date: Bytes,
    /// See [`message_state`](crate::message_state).
    pub message_state: u8,
    /// The network's error code, 0 for none.
    pub error_code: u8,
}

/// The body of `cancel_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelSm {
    /// The service that the message was sent by.
    pub service_type: Bytes,
    /// The ID of the message; empty for all messages from this source to this destination.
    pub message_id: Bytes,
    /// The sender of the message.
    pub source: Address,
    /// The recipient of the message.
    pub destination: Address,
}

/// The body of `replace_sm`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplaceSm {
    /// The ID of the message.
    pub message_id: Bytes,
    /// The sender of the message.
    pub source: Address,
    /// When to deliver; empty to leave it unchanged.
    pub schedule_delivery_time: Bytes,
    /// How long to try; empty to leave it unchanged.
    pub validity_period: Bytes,
    /// The requested receipts.
    pub registered_delivery: u8,
    /// The ID of a message stored at the SMSC.
    pub default_message_id: u8,
    /// The replacement text.
    pub short_message: Bytes,
    /// The optional parameters (5.0).
    pub tlvs: Tlvs,
}

/// The body of `alert_notification`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlertNotification {
    /// The reachable phone.
    pub source: Address,
    /// The client that asked for the notification.
    pub esme: Address,
    /// The optional parameters.
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
    fn the_text_is_found_in_either_field() {
        let mut message = ShortMessage::default();
        assert!(message.text().is_empty());
        message.tlvs.push(tag::MESSAGE_PAYLOAD, &b"long"[..]);
        assert_eq!(message.text().as_ref(), b"long");
        message.short_message = (&b"short"[..]).into();
        assert_eq!(message.text().as_ref(), b"short");
    }
}
