//! What a script may do.

use std::time::Duration;

use super::Receipt;

/// How an SMSC writes its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// As decimal numbers.
    #[default]
    Decimal,
    /// As hexadecimal numbers in capitals, with leading zeros.
    Hex,
}

impl Ids {
    /// An ID in this form.
    pub fn write(self, id: u64) -> String {
        match self {
            Self::Decimal => id.to_string(),
            Self::Hex => format!("{id:010X}"),
        }
    }
}

/// One thing to do about a message. A script gives several, which are done in order; other messages do not wait.
#[derive(Debug, Clone)]
pub enum Act {
    /// Takes the message and answers with its ID.
    Answer,
    /// Answers with this status.
    Refuse(u32),
    /// Sends a receipt on the message's own connection.
    Receipt(Receipt),
    /// Sends a receipt on another connection, if there is one that takes some; otherwise on its own.
    ReceiptElsewhere(Receipt),
    /// Waits so long.
    Wait(Duration),
    /// Waits until so many messages have come in all.
    AfterSubmits(usize),
    /// Sends these octets.
    Octets(Vec<u8>),
    /// Sends the first half of an answer.
    HalfAnswer,
    /// Sends an `unbind`.
    Unbind,
    /// Says nothing more on this connection, whatever comes.
    FallSilent,
    /// Hangs up.
    HangUp,
}

/// What a client binds as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindKind {
    /// To receive.
    Receiver,
    /// To send.
    Transmitter,
    /// To do both.
    Transceiver,
}

impl BindKind {
    /// Whether receipts may be sent to it.
    pub fn receives(self) -> bool {
        self != Self::Transmitter
    }
}

/// A bind that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindRequest {
    /// Which one, from 0, over all connections.
    pub number: usize,
    /// On which connection, from 0.
    pub connection: usize,
    /// As what.
    pub kind: BindKind,
    /// Who.
    pub system_id: String,
    /// With which password.
    pub password: String,
    /// The field of that name.
    pub system_type: String,
    /// The field of that name.
    pub interface_version: u8,
}

/// What to do about a bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAct {
    /// Accepts it.
    Accept,
    /// Refuses it with this status.
    Refuse(u32),
    /// Never answers.
    Ignore,
    /// Hangs up.
    HangUp,
    /// Sends these octets in place of an answer.
    Octets(Vec<u8>),
}
