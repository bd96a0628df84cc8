//! What operators see: nodes, queues, overdue messages, unmatched receipts.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{NodeCarrierStatus, NodeInfo, StoreError};
use crate::ids::{AccountId, MessageId, NodeId};
use crate::message::Priority;
use crate::message::outcome::Outcome;

/// A count that stops at [`Counted::MOST`], so that counting never takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted(pub u32);

impl Counted {
    pub const MOST: u32 = 10_000;

    pub const fn is_capped(self) -> bool {
        self.0 >= Self::MOST
    }
}

/// A node that lives, or has just died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub node: NodeId,
    /// On the database's clock.
    pub alive_until: Timestamp,
    pub is_dead: bool,
    pub holds: Counted,
    /// `None` if its program is too old to describe itself.
    pub facts: Option<NodeFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    pub info: NodeInfo,
    /// The version of the schema that its program was built for.
    pub schema: u32,
    /// On the database's clock.
    pub started_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Due messages that no node holds yet.
    Due(Priority),
    /// Messages that are due later: scheduled, or to be sent again.
    Later(Priority),
    Held,
    /// Messages that a carrier took and has not reported on.
    Sent,
    /// Messages whose rows cannot be read.
    SetAside,
    CallbacksDue,
    CallbacksLater,
    /// Callbacks that are not sent again until somebody replays them.
    CallbacksParked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    pub queue: Queue,
    pub count: Counted,
    /// The time of the first item; `None` if the queue is empty or has no times.
    pub first_at: Option<Timestamp>,
}

/// A message that should have been sent long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    pub id: MessageId,
    pub account: AccountId,
    pub node: Option<NodeId>,
    pub due_at: Timestamp,
    pub attempts: u32,
}

/// A receipt that matches no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    pub carrier: String,
    pub reference: String,
    pub outcome: Option<Outcome>,
    pub at: Timestamp,
}

/// A host that callbacks go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The beginning of its URLs: scheme, host and port, in lower case.
    pub address: String,
    /// The host, with its port if the URL has one.
    pub host: String,
    pub waiting: Counted,
    pub parked: Counted,
    pub oldest_at: Option<Timestamp>,
    /// Why the last attempt of one of them failed.
    pub last_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    pub product: &'static str,
    pub version: String,
    /// The version of our schema.
    pub schema: u32,
    /// The size on disk.
    pub bytes: u64,
}

/// What operators see. Every answer takes a bounded time.
#[async_trait]
pub trait OperationsStore: Send + Sync + 'static {
    async fn describe_database(&self) -> Result<DatabaseFacts, StoreError>;

    async fn list_nodes(&self) -> Result<Vec<NodeStatus>, StoreError>;

    /// The latest carrier states of living nodes, sorted by name and node.
    async fn list_carrier_statuses(&self) -> Result<Vec<NodeCarrierStatus>, StoreError>;

    async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError>;

    /// Messages that were due more than `age` ago and still wait, the oldest first.
    async fn list_overdue(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Overdue>, StoreError>;

    /// Receipts that match no part, the newest first.
    async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError>;

    /// The hosts for which callbacks of an account, or of all, wait or are parked. Reads a bounded number of callbacks,
    /// the newest first.
    async fn list_receivers(&self, account: Option<AccountId>)
    -> Result<Vec<Receiver>, StoreError>;
}
