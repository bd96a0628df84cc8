//! Messages on their way to a client, and those that it has not answered yet.

use std::collections::HashMap;

use smpp::{ShortMessage, Status};
use tokio::sync::oneshot;

/// A message for the client of a session.
pub(crate) struct Outgoing {
    pub(crate) message: ShortMessage,
    pub(crate) answered: Answered,
}

/// Where the client's answer goes. Dropped when the session ends without one.
pub(crate) struct Answered(oneshot::Sender<Answer>);

/// The result of a delivery.
pub(crate) enum Answer {
    /// The client's answer.
    Status(Status),
    /// It cannot be encoded.
    Unwritable,
}

impl Answered {
    pub(crate) fn channel() -> (Self, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    pub(crate) fn answer(self, answer: Answer) {
        // The attempt may have given up.
        let _ = self.0.send(answer);
    }

    /// Whether the attempt has not given up yet.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }
}

/// Deliveries that the client has not answered, by sequence number.
#[derive(Default)]
pub(crate) struct Unanswered(HashMap<u32, Answered>);

impl Unanswered {
    /// Adds a delivery. Those whose attempt has given up are dropped, so there are no more than the session's window.
    pub(crate) fn insert(&mut self, sequence: u32, answered: Answered) {
        self.drop_expired();
        self.0.insert(sequence, answered);
    }

    pub(crate) fn take(&mut self, sequence: u32) -> Option<Answered> {
        self.0.remove(&sequence)
    }

    pub(crate) fn drop_expired(&mut self) {
        self.0.retain(|_, answered| answered.is_awaited());
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
