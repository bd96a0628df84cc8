//! Searching messages and callbacks, the newest first.

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
use crate::number::country::Country;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;

/// The states of a message, without their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateName {
    Scheduled,
    /// Waits to be handed to a carrier.
    Queued,
    /// A carrier took it and has not reported on it.
    Sent,
    Delivered,
    Failed,
    Expired,
    Cancelled,
}

impl StateName {
    /// Every state, in the order in which a message may have them.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Failed,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The name in responses, as in [`MessageState::name`].
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

/// Where a message goes, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Network(Network),
    /// A country, for messages whose network is unknown.
    Country(Country),
}

/// All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageFilter {
    /// `None` for all accounts, which only operators see.
    pub account: Option<AccountId>,
    pub channel: Option<Channel>,
    pub to: Option<Msisdn>,
    /// The originator as text.
    pub from: Option<String>,
    pub state: Option<StateName>,
    pub error: Option<Code>,
    /// Accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// To one of these places.
    pub places: Option<Vec<Place>>,
}

/// A cursor of a list. A rare item in a large table takes several pages to find, so that no page takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor<I> {
    /// Only items older than this one.
    pub before: Option<I>,
    pub limit: u32,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, I> {
    /// The items, the newest first.
    pub rows: Vec<T>,
    /// The next page's [`Cursor::before`]. `None` if there is nothing older to search.
    pub next: Option<I>,
}

/// A message, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSummary {
    pub id: MessageId,
    pub account: AccountId,
    pub channel: Channel,
    /// The originator as text; `None` for a lookup.
    pub from: Option<String>,
    /// `None` if it was erased.
    pub to: Option<Msisdn>,
    /// Empty for a lookup, and if it was erased or forgotten.
    pub text: String,
    pub state: MessageState,
    pub parts: u8,
    /// The charge, all parts together.
    pub price: Money,
    /// The charge minus the refund. `None` until the message ends, and for messages that ended before this was stored.
    pub charged: Option<Money>,
    pub test_mode: Option<TestMode>,
    pub network: Option<Network>,
    pub accepted_at: Timestamp,
}

impl MessageSummary {
    /// What was given back when the message ended.
    pub fn refunded(&self) -> Money {
        let charged = self.charged.unwrap_or(self.price);
        self.price.minus(charged)
    }
}

/// A part that a carrier took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDetail {
    /// Counted from 1.
    pub part: u16,
    pub carrier: String,
    pub reference: String,
    pub taken_at: Timestamp,
    pub outcome: Option<Outcome>,
}

/// Everything that is known about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDetail {
    pub summary: MessageSummary,
    /// Coding and number of parts.
    pub shape: Shape,
    pub priority: Priority,
    /// The button and the image of a Viber message.
    pub interactive: Option<Interactive>,
    /// The report of a lookup.
    pub result: Option<String>,
    pub dlr_url: Option<String>,
    pub scheduled_at: Option<Timestamp>,
    /// It is not sent after this time.
    pub expires_at: Timestamp,
    /// When the recipient saw it.
    pub seen_at: Option<Timestamp>,
    /// The number of attempts, until the message is sent.
    pub attempts: Option<u32>,
    /// The next attempt, while the message waits.
    pub due_at: Option<Timestamp>,
    /// The parts that carriers took, in order; deleted some days after their receipts.
    pub parts: Vec<PartDetail>,
    /// Its callbacks, each with its attempts.
    pub callbacks: Vec<(CallbackRecord, Vec<CallbackAttempt>)>,
}

/// Searching messages and callbacks.
#[async_trait]
pub trait HistoryStore: Send + Sync + 'static {
    /// Matching messages, the newest first. Reads a bounded number of rows: a page may be short or even empty and still
    /// have a next one.
    async fn search_messages(
        &self,
        filter: &MessageFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<MessageSummary, MessageId>, StoreError>;

    /// Matching callbacks, the newest first. Reads a bounded number of rows, as [`Self::search_messages`] does.
    async fn search_callbacks(
        &self,
        filter: &CallbackFilter,
        cursor: Cursor<CallbackId>,
    ) -> Result<Page<CallbackRecord, CallbackId>, StoreError>;

    /// One message of this account, or of any.
    async fn find_message_detail(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageDetail>, StoreError>;
}
