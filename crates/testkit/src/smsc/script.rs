//! The actions of a script.

use std::time::Duration;

use super::Receipt;

/// How an SMSC writes its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdFormat {
    /// As decimal numbers.
    #[default]
    Decimal,
    /// As hexadecimal numbers in capitals, with leading zeros.
    Hex,
}

impl IdFormat {
    /// Writes an ID in this format.
    pub fn write(self, id: u64) -> String {
        match self {
            Self::Decimal => id.to_string(),
            Self::Hex => format!("{id:010X}"),
        }
    }
}

/// One action for a message. A script returns several, which are performed in order. Other messages do not wait for
/// them.
#[derive(Debug, Clone)]
pub enum Action {
    /// Accepts the message and answers with its ID.
    Answer,
    /// Answers with this status.
    Refuse(u32),
    /// Sends a receipt on the message's own connection.
    Receipt(Receipt),
    /// Sends a receipt on another connection that accepts receipts; on its own if there is none.
    ReceiptOnOtherConnection(Receipt),
    /// Waits for this time.
    Wait(Duration),
    /// Waits until the SMSC has received this many messages in total.
    WaitForSubmits(usize),
    /// Sends these octets.
    Octets(Vec<u8>),
    /// Sends the first half of an answer.
    HalfAnswer,
    /// Sends an `unbind`.
    Unbind,
    /// Sends nothing more on this connection.
    StopAnswering,
    /// Closes the connection.
    HangUp,
}

/// The kind of a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindKind {
    /// `bind_receiver`.
    Receiver,
    /// `bind_transmitter`.
    Transmitter,
    /// `bind_transceiver`.
    Transceiver,
}

impl BindKind {
    /// Whether it accepts receipts.
    pub fn receives(self) -> bool {
        self != Self::Transmitter
    }
}

/// A bind that the SMSC received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindRequest {
    /// The number of the bind, counted from 0 over all connections.
    pub number: usize,
    /// The connection, counted from 0.
    pub connection: usize,
    /// The kind.
    pub kind: BindKind,
    /// The field of that name.
    pub system_id: String,
    /// The field of that name.
    pub password: String,
    /// The field of that name.
    pub system_type: String,
    /// The field of that name.
    pub interface_version: u8,
}

/// What to do with a bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAction {
    /// Accepts it.
    Accept,
    /// Refuses it with this status.
    Refuse(u32),
    /// Never answers.
    Ignore,
    /// Closes the connection.
    HangUp,
    /// Sends these octets instead of an answer.
    Octets(Vec<u8>),
}
