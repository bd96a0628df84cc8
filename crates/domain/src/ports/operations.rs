//! What whoever runs the service wants to see: nodes, queues, what is stuck, what fits nothing.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{NodeCard, StoreError};
use crate::ids::{AccountId, MessageId, NodeId};
use crate::message::Priority;
use crate::message::outcome::Outcome;

/// A count that stops at [`Counted::MOST`], so that counting never takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted(pub u32);

impl Counted {
    /// Where counting stops.
    pub const MOST: u32 = 10_000;

    /// Whether there are more.
    pub const fn is_capped(self) -> bool {
        self.0 >= Self::MOST
    }
}

/// A node that lives, or has just died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Which.
    pub node: NodeId,
    /// Until when it counts as alive, on the database's clock.
    pub alive_until: Timestamp,
    /// Whether that is over.
    pub is_dead: bool,
    /// Messages that it holds.
    pub holds: Counted,
    /// What it said of itself; `None` when its program is too old to say anything.
    pub facts: Option<NodeFacts>,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// What it said of itself.
    pub card: NodeCard,
    /// The version of the schema that its program was built for.
    pub schema: u32,
    /// When it was started, on the database's clock.
    pub started_at: Timestamp,
}

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Messages that are due and that no node holds yet.
    Due(Priority),
    /// Messages whose time comes later: scheduled, or tried again.
    Later(Priority),
    /// Messages that nodes hold.
    Held,
    /// Messages that a carrier took and has not reported on.
    Sent,
    /// Messages whose rows could not be read.
    SetAside,
    /// Reports to callers that are due.
    CallbacksDue,
    /// Reports to callers that are tried again later.
    CallbacksLater,
    /// Reports that are tried no more until somebody asks for it.
    CallbacksParked,
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Where.
    pub queue: Queue,
    /// How much.
    pub count: Counted,
    /// The time of what has waited longest, or comes next; `None` when nothing waits or nobody keeps it.
    pub first_at: Option<Timestamp>,
}

/// A message that should have gone on long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    /// Which.
    pub id: MessageId,
    /// Whose.
    pub account: AccountId,
    /// The node that holds it.
    pub node: Option<NodeId>,
    /// When it was due.
    pub due_at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
}

/// A receipt that no part is known for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Which carrier sent it.
    pub carrier: String,
    /// The name in it.
    pub reference: String,
    /// What it reports.
    pub outcome: Option<Outcome>,
    /// When it came.
    pub at: Timestamp,
}

/// A host that receives reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// What the addresses of its reports start with: scheme, host and port, in small letters.
    pub address: String,
    /// The host, with its port as far as that is written.
    pub host: String,
    /// Reports that wait for it.
    pub waiting: Counted,
    /// Reports that are parked.
    pub parked: Counted,
    /// The oldest of them.
    pub oldest_at: Option<Timestamp>,
    /// Why the last try at one of them failed.
    pub last_reason: Option<String>,
}

/// What the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Its product.
    pub product: &'static str,
    /// The version of that.
    pub version: String,
    /// How many steps of our schema it has.
    pub schema: u32,
    /// How many bytes it takes on its disk.
    pub bytes: u64,
}

/// What whoever runs the service sees. Every answer takes a bounded time.
#[async_trait]
pub trait OperationsStore: Send + Sync + 'static {
    /// What the database is.
    async fn describe_database(&self) -> Result<DatabaseFacts, StoreError>;

    /// The nodes.
    async fn list_nodes(&self) -> Result<Vec<NodeSeen>, StoreError>;

    /// How much waits in every queue.
    async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError>;

    /// Messages that were due longer ago than `age` and still wait, the oldest first.
    async fn list_overdue(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Overdue>, StoreError>;

    /// Receipts that fit nothing, the newest first.
    async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError>;

    /// The hosts for which reports of an account, or of all, wait or are parked. Looks at a bounded number of reports,
    /// the newest first.
    async fn list_receivers(&self, account: Option<AccountId>)
    -> Result<Vec<Receiver>, StoreError>;
}
