//! Messages: what was submitted, and the state of each.

pub mod channel;
pub mod code;
pub mod code_text;
pub mod interactive;
pub mod lookup;
pub mod outcome;
pub mod schedule;
pub mod send_window;
pub mod text;

use std::str::FromStr;

use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::ids::{AccountId, MessageId, NodeId, PoolId};
use crate::message::channel::Channel;
use crate::message::code::Code;
use crate::message::code_text::SHOWN;
use crate::message::interactive::Interactive;
use crate::message::outcome::Outcome;
use crate::message::text::{Coding, Shape, Udh};
use crate::money::Money;
use crate::number::country::Country;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::quoted::Quoted;
use crate::sender::originator::Originator;
use crate::trace::TraceContext;

pub const MAX_RECIPIENTS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// One-time codes, password reminders, urgent notices.
    High,
    #[default]
    Normal,
    /// Bulk messages.
    Low,
}

impl Priority {
    /// Every priority, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The stored number of the lane; the most urgent is 0.
    pub const fn lane(self) -> i16 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a priority; give high, normal or low", Quoted(.0))]
pub struct UnknownPriority(String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(name: &str) -> Result<Self, UnknownPriority> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| UnknownPriority(name.to_owned()))
    }
}

/// For a message that never leaves the service and is never charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestMode {
    /// Simulate a successful delivery.
    Deliver,
    /// Simulate a failed delivery.
    Fail,
}

impl TestMode {
    /// The number in requests and in both databases.
    pub const fn number(self) -> i16 {
        match self {
            Self::Deliver => 1,
            Self::Fail => 2,
        }
    }

    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::Deliver),
            2 => Some(Self::Fail),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendTime {
    Now,
    At(Timestamp),
}

impl SendTime {
    /// The time from which the message may be handed to a carrier.
    pub const fn due_at(self, accepted_at: Timestamp) -> Timestamp {
        match self {
            Self::Now => accepted_at,
            Self::At(time) => time,
        }
    }
}

/// One recipient of a submission and the ID of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    pub id: MessageId,
    pub to: Msisdn,
    /// The network that the number's prefix tells, if any.
    pub network: Option<Network>,
    /// The country that the number's prefix tells, if any.
    pub country: Option<Country>,
    /// The price of the message, all parts together.
    pub price: Money,
    /// Why it is not sent: it ends with this code in the transaction that stores it. Its price must be zero.
    pub refused: Option<Code>,
}

/// A checked request, ready to be stored: every recipient gets the same message, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    pub account: AccountId,
    pub channel: Channel,
    /// At least one, with ascending consecutive IDs.
    pub recipients: Vec<Recipient>,
    /// `None` for a lookup.
    pub from: Option<Originator>,
    /// The text as the caller gave it; empty for a lookup.
    pub text: String,
    /// Whether the text carries a confirmation code: it is then stored encrypted, and nobody can read it back
    /// ([`crate::message::code_text`]).
    pub carries_code: bool,
    /// Whether it is a message of the service itself, such as a PIN. Opt-outs do not stop it.
    pub notice: bool,
    /// The button and the image of a Viber message.
    pub interactive: Option<Interactive>,
    /// Coding and number of parts.
    pub shape: Shape,
    /// The caller's own user data header, for a text that is not split here.
    pub udh: Option<Udh>,
    /// Whether the caller chose the coding; the text is then not split.
    pub coding_given: bool,
    pub dlr_url: Option<CallbackUrl>,
    pub priority: Priority,
    pub send: SendTime,
    pub accepted_at: Timestamp,
    /// It is not sent after this time.
    pub expires_at: Timestamp,
    pub test_mode: Option<TestMode>,
    /// The caller's key that makes a repeated request harmless.
    pub idempotency: Option<IdempotencyClaim>,
    /// The initial holder.
    pub holder: Holder,
    /// The trace of the caller's request.
    pub trace: Option<TraceContext>,
}

/// Who holds a message while it waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Holder {
    /// No node: any node with capacity claims it.
    #[default]
    Nobody,
    /// The node that has capacity to send it at once.
    Node(NodeId),
    /// Any node with a link to the carrier of this pool.
    Pool(PoolId),
}

impl Holder {
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(node) => Some(node),
            Self::Nobody | Self::Pool(_) => None,
        }
    }
}

impl Submission {
    /// The time from which the message may be handed to a carrier.
    pub const fn due_at(&self) -> Timestamp {
        self.send.due_at(self.accepted_at)
    }

    /// The text as it is stored in plain and shown.
    pub fn shown_text(&self) -> &str {
        if self.carries_code { SHOWN } else { &self.text }
    }

    /// The price of all recipients together.
    pub fn cost(&self) -> Money {
        let prices = self.recipients.iter().map(|recipient| recipient.price);
        prices.fold(Money::ZERO, Money::plus)
    }

    /// Whether some recipients are refused.
    pub fn has_refused(&self) -> bool {
        let mut recipients = self.recipients.iter();
        recipients.any(|recipient| recipient.refused.is_some())
    }

    /// The same messages with other IDs: `first` and the following ones.
    #[must_use]
    pub fn renumbered(mut self, first: MessageId) -> Self {
        for (recipient, number) in self.recipients.iter_mut().zip(first.get()..) {
            recipient.id = MessageId::new(number).expect("blocks end within the range of IDs");
        }
        self
    }

    pub fn receipt(&self) -> AcceptedMessages {
        let recipients = u32::try_from(self.recipients.len()).expect("at most a thousand");
        AcceptedMessages {
            first: self.recipients[0].id,
            messages: recipients,
            parts: recipients * u32::from(self.shape.parts),
        }
    }
}

/// The answer to an accepted request. The IDs of one request are consecutive, so two numbers are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedMessages {
    pub first: MessageId,
    pub messages: u32,
    /// The number of parts over all recipients.
    pub parts: u32,
}

impl AcceptedMessages {
    /// The IDs, in the order of the recipients.
    pub fn ids(self) -> impl Iterator<Item = u64> {
        self.first.get()..self.first.get() + u64::from(self.messages)
    }
}

/// A caller's `Idempotency-Key`, as hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyClaim {
    /// SHA-256 of the key.
    pub key: [u8; 32],
    /// SHA-256 of the request's body.
    pub body: [u8; 32],
    /// How long the answer is stored.
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// Waits for its send time.
    Scheduled {
        at: Timestamp,
    },
    /// Waits to be handed to a carrier.
    Queued,
    /// A carrier took it, and has not reported a final state.
    Sent,
    Ended {
        outcome: Outcome,
        at: Timestamp,
    },
    /// Cancelled by its sender before its send time.
    Cancelled {
        at: Timestamp,
    },
}

impl MessageState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled { .. } => "scheduled",
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Ended {
                outcome: Outcome::Delivered,
                ..
            } => "delivered",
            Self::Ended {
                outcome: Outcome::Failed(_),
                ..
            } => "failed",
            Self::Ended {
                outcome: Outcome::Expired,
                ..
            } => "expired",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// What the API shows of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRecord {
    pub id: MessageId,
    pub channel: Channel,
    pub state: MessageState,
    pub parts: u8,
    /// The recipient's network, if it is known.
    pub network: Option<Network>,
}

/// A scheduled SMS with what stays the same when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The originator as text.
    pub from: String,
    pub to: Msisdn,
    pub text: String,
    pub coding: Coding,
    /// See [`Submission::coding_given`].
    pub coding_given: bool,
    /// Whether it has a user data header of the caller.
    pub has_udh: bool,
    pub dlr_url: Option<CallbackUrl>,
    pub priority: Priority,
    pub test_mode: Option<TestMode>,
    /// The send time.
    pub at: Timestamp,
    pub expires_at: Timestamp,
}

/// A scheduled message, as the scheduled list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledRecord {
    pub id: MessageId,
    pub at: Timestamp,
    /// The originator as text.
    pub from: String,
    pub to: Msisdn,
    pub text: String,
    pub dlr_url: Option<String>,
}
