//! The SMPP protocol: a codec for its PDUs and a client session.
//!
//! What belongs here: what any program that speaks SMPP could use.
//!
//! What never enters: anything of this product. No type of ours crosses this line, in either direction.
//!
//! * [`encode`] and [`Decoder`] turn PDUs into octets and back: SMPP 3.4, and 5.0 where it is more of the same. Reading
//!   is lenient, since what SMSCs send is: each PDU is cut out by its own length, and a strange one never harms the
//!   next.
//! * [`Framed`] puts them on a connection: enough for a server.
//! * [`Session`] is a client: it binds, keeps a window of messages under way, watches the link, and hands over what the
//!   SMSC brings.
//!
//! Text stays octets throughout: how it is coded is the business of whoever sends it.

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
    Address, AlertNotification, Bind, BindKind, BindResp, Body, CancelSm, DataMessage, MessageResp,
    Outbind, Pdu, QuerySm, QuerySmResp, ReplaceSm, ShortMessage,
};
pub use session::{
    ConnectError, Ended, Incoming, Session, SessionOptions, SubmitAnswer, SubmitError, Tls,
};
pub use status::Status;
pub use tlv::{NetworkErrorCode, Tlvs};

/// The octets of a header: length, command, status, sequence number.
pub const HEADER: usize = 16;
