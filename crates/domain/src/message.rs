//! A message on its way: what was submitted, and what became of it.

pub mod channel;
pub mod code;
pub mod code_text;
pub mod interactive;
pub mod lookup;
pub mod outcome;
pub mod schedule;
pub mod text;

use std::str::FromStr;

use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::ids::{AccountId, MessageId, NodeId, PoolId};
use crate::message::channel::Channel;
use crate::message::code_text::SHOWN;
use crate::message::interactive::Interactive;
use crate::message::outcome::Outcome;
use crate::message::text::{Shape, Udh};
use crate::money::Money;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::sender::originator::Originator;
use crate::shown::Shown;

/// The most recipients that one request may name.
pub const MAX_RECIPIENTS: usize = 1000;

/// Which lane a message travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Registration codes, password reminders, urgent notices.
    High,
    /// Everything that does not say otherwise.
    #[default]
    Normal,
    /// Mass messages.
    Low,
}

impl Priority {
    /// Every lane, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The number of the lane as both databases keep it; the most urgent is 0.
    pub const fn lane(self) -> i16 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

/// The name belongs to no lane.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is no priority; give high, normal or low", Shown(.0))]
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

/// A message that never leaves the service and is never billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TestMode {
    /// Emulate a successful delivery.
    Deliver,
    /// Emulate a failed delivery.
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

    /// Reads back a number.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::Deliver),
            2 => Some(Self::Fail),
            _ => None,
        }
    }
}

/// When a message goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendTime {
    /// As soon as it is accepted.
    Now,
    /// At a time to come.
    At(Timestamp),
}

impl SendTime {
    /// The time from which a message may be handed to a network.
    pub const fn due_at(self, accepted_at: Timestamp) -> Timestamp {
        match self {
            Self::Now => accepted_at,
            Self::At(time) => time,
        }
    }
}

/// One recipient of a submission and the ID that its message got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// The message's ID.
    pub id: MessageId,
    /// Where it goes.
    pub to: Msisdn,
    /// The network that the number belongs to, as far as its prefix tells.
    pub network: Option<Network>,
    /// What the message costs, all parts together.
    pub price: Money,
}

/// One valid request to send, ready to be stored: every recipient gets the same message, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Whose.
    pub account: AccountId,
    /// By which channel.
    pub channel: Channel,
    /// To whom; at least one, with ascending consecutive IDs.
    pub recipients: Vec<Recipient>,
    /// From whom; nobody signs a lookup.
    pub from: Option<Originator>,
    /// The text as it was sent; empty for a lookup.
    pub text: String,
    /// Whether the text carries a confirmation code: it is stored encrypted and nobody reads it back ([`crate::message::code_text`]).
    pub carries_code: bool,
    /// What a Viber message has besides its text.
    pub interactive: Option<Interactive>,
    /// How the text is coded and into how many parts it splits.
    pub shape: Shape,
    /// The header that the caller gave for a text that is not split here.
    pub udh: Option<Udh>,
    /// Whether the caller chose the coding, so that nothing may be split.
    pub coding_given: bool,
    /// Where the delivery report goes.
    pub dlr_url: Option<CallbackUrl>,
    /// Which lane.
    pub priority: Priority,
    /// When it goes out.
    pub send: SendTime,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// From when on it is no longer attempted.
    pub expires_at: Timestamp,
    /// Whether it only pretends.
    pub test_mode: Option<TestMode>,
    /// The caller's key that makes a repeated request harmless.
    pub idempotency: Option<IdempotencyClaim>,
    /// Whose it is from the start.
    pub holder: Holder,
}

/// Whose a message is while it waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Holder {
    /// Nobody's: whoever has room takes it.
    #[default]
    Nobody,
    /// That of the node that has room to send it at once.
    Node(NodeId),
    /// That of any node with a link to the carrier of this pool.
    Pool(PoolId),
}

impl Holder {
    /// The node that has it, if one has.
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(node) => Some(node),
            Self::Nobody | Self::Pool(_) => None,
        }
    }
}

impl Submission {
    /// The time from which the message may be handed to a network.
    pub const fn due_at(&self) -> Timestamp {
        self.send.due_at(self.accepted_at)
    }

    /// The text as it is stored and shown.
    pub fn shown_text(&self) -> &str {
        if self.carries_code { SHOWN } else { &self.text }
    }

    /// What it costs, all recipients together.
    pub fn cost(&self) -> Money {
        let prices = self.recipients.iter().map(|recipient| recipient.price);
        prices.fold(Money::ZERO, Money::plus)
    }

    /// The same messages under other IDs: `first` and those that follow it.
    #[must_use]
    pub fn renumbered(mut self, first: MessageId) -> Self {
        for (recipient, number) in self.recipients.iter_mut().zip(first.get()..) {
            recipient.id = MessageId::new(number).expect("blocks end within the range of IDs");
        }
        self
    }

    /// What the caller is told.
    pub fn receipt(&self) -> SubmitReceipt {
        let recipients = u32::try_from(self.recipients.len()).expect("at most a thousand");
        SubmitReceipt {
            first: self.recipients[0].id,
            messages: recipients,
            parts: recipients * u32::from(self.shape.parts),
        }
    }
}

/// What an accepted request is answered with. The IDs of one request are consecutive, so two numbers hold them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitReceipt {
    /// The first recipient's message.
    pub first: MessageId,
    /// How many messages.
    pub messages: u32,
    /// How many parts over all recipients.
    pub parts: u32,
}

impl SubmitReceipt {
    /// The IDs, in the order of the recipients.
    pub fn ids(self) -> impl Iterator<Item = u64> {
        self.first.get()..self.first.get() + u64::from(self.messages)
    }
}

/// A caller's `Idempotency-Key`, reduced to what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyClaim {
    /// SHA-256 of the key.
    pub key: [u8; 32],
    /// SHA-256 of the request's body.
    pub body: [u8; 32],
    /// Until when the answer is kept.
    pub expires_at: Timestamp,
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// Waits for the time that its sender asked for.
    Scheduled {
        /// That time.
        at: Timestamp,
    },
    /// Waits to be handed to a network.
    Queued,
    /// Handed to a network, which has not reported on it.
    Sent,
    /// Has come to its end.
    Ended {
        /// How.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
    /// Taken back by its sender before its time came.
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

impl MessageState {
    /// The name in answers.
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

/// What a caller may read back of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRecord {
    /// Its ID.
    pub id: MessageId,
    /// By which channel.
    pub channel: Channel,
    /// Where it stands.
    pub state: MessageState,
    /// Into how many parts it splits.
    pub parts: u8,
    /// The network that its recipient belongs to, where that is known.
    pub network: Option<Network>,
}

/// A message that waits for its time, as the scheduled list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledRecord {
    /// Its ID.
    pub id: MessageId,
    /// Its time.
    pub at: Timestamp,
    /// From whom, as it is shown.
    pub from: String,
    /// To whom.
    pub to: Msisdn,
    /// The text.
    pub text: String,
    /// Where its report goes.
    pub dlr_url: Option<String>,
}
