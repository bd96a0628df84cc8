//! The SMPP protocol: a codec for PDUs and a client session.
//!
//! The crate is independent of this product: any program that speaks SMPP could use it.
//!
//! * [`encode`] and [`Decoder`] convert PDUs to octets and back: SMPP 3.4, and the parts of 5.0 that extend it.
//!   Decoding is lenient, because many SMSCs deviate from the specification: each PDU is framed by its own length, and
//!   a malformed one never affects the next.
//! * [`Framed`] reads and writes PDUs on a connection, which is enough for a server.
//! * [`Session`] is a client: it binds, keeps a window of messages in flight, probes the link, and hands over
//!   deliveries.
//!
//! Texts are octets throughout; encoding them is up to the caller.

#![warn(missing_docs)]

pub mod command;
mod decode;
mod encode;
mod framed;
pub mod message_state;
mod pdu;
mod session;
mod status;
pub mod tag;
mod tlv;

pub use decode::{BodyError, DEFAULT_MAX_PDU, Decoder, FatalLength, Frame};
pub use encode::{EncodeError, MAX_SHORT_MESSAGE, encode};
pub use framed::{Framed, ReadError, WriteError};
pub use pdu::{
    Address, AlertNotification, Bind, BindKind, BindResp, Body, CancelSm, DataMessage, Destination,
    MessageResp, Outbind, Pdu, QuerySm, QuerySmResp, ReplaceSm, ShortMessage, SubmitMulti,
    SubmitMultiResp,
};
pub use session::{
    ConnectError, EndReason, Incoming, Session, SessionOptions, SubmitAnswer, SubmitError, Tls,
};
pub use status::Status;
pub use tlv::{NetworkErrorCode, Tlvs};

/// The size of a header in octets: length, command, status, sequence number.
pub const HEADER: usize = 16;
