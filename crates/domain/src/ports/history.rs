//! Messages as people look for them: newest first, by what they remember of one.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{CallbackFilter, CallbackRecord, StoreError};
use crate::delivery::CallbackAttempt;
use crate::ids::{AccountId, CallbackId, MessageId};
use crate::message::channel::Channel;
use crate::message::code::Code;
use crate::message::interactive::Interactive;
use crate::message::outcome::Outcome;
use crate::message::text::Shape;
use crate::message::{MessageState, Priority, TestMode};
use crate::money::Money;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;

/// The states of a message, without what belongs to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateName {
    /// Waits for its time.
    Scheduled,
    /// Waits to be handed to a network.
    Queued,
    /// Handed to a network, which has not reported.
    Sent,
    /// Reached the handset.
    Delivered,
    /// Did not.
    Failed,
    /// Was not delivered in time.
    Expired,
    /// Taken back.
    Cancelled,
}

impl StateName {
    /// Every state, in the order in which a message may pass through them.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Failed,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The name in answers, the same as [`MessageState::name`] gives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Which messages. Every condition that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageFilter {
    /// Those of this account; `None`: of all, for whoever runs the service.
    pub account: Option<AccountId>,
    /// By this channel.
    pub channel: Option<Channel>,
    /// To this number.
    pub to: Option<Msisdn>,
    /// From this sender, as it is shown.
    pub from: Option<String>,
    /// In this state.
    pub state: Option<StateName>,
    /// Ended with this code.
    pub error: Option<Code>,
    /// Accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
}

/// How far to look. Rare things in a large store are found in several steps, so that no look takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look<I> {
    /// Only what is older than this.
    pub before: Option<I>,
    /// At most so many finds.
    pub limit: u32,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T, I> {
    /// The finds, the newest first.
    pub rows: Vec<T>,
    /// Where the next look starts: [`Look::before`]. `None`: there is nothing older to look at.
    pub next: Option<I>,
}

/// A message, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSummary {
    /// Its ID.
    pub id: MessageId,
    /// Whose.
    pub account: AccountId,
    /// By which channel.
    pub channel: Channel,
    /// From whom, as it is shown; nobody signs a lookup.
    pub from: Option<String>,
    /// To whom.
    pub to: Msisdn,
    /// The text.
    pub text: String,
    /// Where it stands.
    pub state: MessageState,
    /// Into how many parts it splits.
    pub parts: u8,
    /// What it was charged, all parts together.
    pub price: Money,
    /// The recipient's network, as far as it is known.
    pub network: Option<Network>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

/// A part that a carrier took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartStory {
    /// Which part, from 1.
    pub part: u16,
    /// Which carrier.
    pub carrier: String,
    /// Its name for the part.
    pub reference: String,
    /// When it took it.
    pub taken_at: Timestamp,
    /// What it reported.
    pub outcome: Option<Outcome>,
}

/// Everything that is known of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageStory {
    /// What lists show.
    pub summary: MessageSummary,
    /// How the text is coded and split.
    pub shape: Shape,
    /// Which lane.
    pub priority: Priority,
    /// What a Viber message has besides its text.
    pub interactive: Option<Interactive>,
    /// What a lookup found, as it was reported.
    pub result: Option<String>,
    /// Where the report goes.
    pub dlr_url: Option<String>,
    /// Whether it only pretends.
    pub test_mode: Option<TestMode>,
    /// The time that its sender asked for.
    pub scheduled_at: Option<Timestamp>,
    /// From when on it is no longer attempted.
    pub expires_at: Timestamp,
    /// When its recipient looked at it.
    pub seen_at: Option<Timestamp>,
    /// How often it was tried to hand it to a carrier, while it is on its way.
    pub attempts: Option<u32>,
    /// When it is tried next, while it waits.
    pub due_at: Option<Timestamp>,
    /// The parts that carriers took, in order; forgotten some days after they were reported on.
    pub parts: Vec<PartStory>,
    /// Its reports to the caller, each with its tries.
    pub callbacks: Vec<(CallbackRecord, Vec<CallbackAttempt>)>,
}

/// Looking for messages.
#[async_trait]
pub trait HistoryStore: Send + Sync + 'static {
    /// Messages that fit, the newest first. Looks at a bounded number of rows: it may find fewer than asked for, even
    /// none, and still name a place to go on from.
    async fn look_for_messages(
        &self,
        filter: &MessageFilter,
        look: Look<MessageId>,
    ) -> Result<Found<MessageSummary, MessageId>, StoreError>;

    /// Callbacks that fit, the newest first. Looks at a bounded number of rows, as
    /// [`Self::look_for_messages`] does.
    async fn look_for_callbacks(
        &self,
        filter: &CallbackFilter,
        look: Look<CallbackId>,
    ) -> Result<Found<CallbackRecord, CallbackId>, StoreError>;

    /// One message of this account, or of any.
    async fn find_story(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageStory>, StoreError>;
}
