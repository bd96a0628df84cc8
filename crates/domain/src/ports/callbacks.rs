//! Callbacks and the secrets that sign them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{ListRange, StoreError};
use crate::delivery::receiver::ReceiverId;
use crate::delivery::{Callback, CallbackAttempt, CallbackKind, CallbackSettlement, Claim};
use crate::ids::{AccountId, CallbackId, MessageId, NodeId, SenderId};

/// The sets of callbacks that a replay goes through, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaySource {
    Queue,
    /// Callbacks that are not sent again on their own.
    Parked,
    Done,
}

/// How far a replay has got: the last row that it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayCursor {
    pub source: ReplaySource,
    /// The owner of the row: its queue or node.
    pub owner: i64,
    pub due_us: i64,
    pub id: i64,
}

impl ReplayCursor {
    pub const START: Self = Self::before(ReplaySource::Queue);

    /// The beginning of a set.
    pub const fn before(source: ReplaySource) -> Self {
        Self {
            source,
            owner: i64::MIN,
            due_us: i64::MIN,
            id: i64::MIN,
        }
    }
}

/// The result of one step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// How many callbacks became due.
    pub count: u64,
    /// Where to continue; `None` at the end.
    pub next: Option<ReplayCursor>,
}

/// The secrets that sign an account's callbacks. Their debug form hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecrets {
    /// The secret that people see.
    pub newest: String,
    /// The previous secret, and until when it signs as well.
    pub former: Option<(String, Timestamp)>,
}

impl SigningSecrets {
    /// The secrets that sign now, the newest first.
    pub fn at(&self, now: Timestamp) -> Vec<&str> {
        let former = self.former.as_ref().filter(|(_, until)| now < *until);
        let former = former.map(|(secret, _)| secret.as_str());
        std::iter::once(self.newest.as_str())
            .chain(former)
            .collect()
    }
}

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecrets")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackSubject {
    /// A message or a lookup.
    Message(MessageId),
    /// A message from a handset.
    Inbound(MessageId),
    Sender(SenderId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackState {
    /// It waits for its next attempt.
    Waiting {
        due_at: Timestamp,
    },
    /// It is not sent again until somebody replays it.
    Parked,
    Done,
}

/// A callback, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRecord {
    pub id: CallbackId,
    pub kind: CallbackKind,
    pub about: CallbackSubject,
    pub account: AccountId,
    pub url: String,
    pub payload: String,
    pub state: CallbackState,
    /// The number of attempts.
    pub tries: u32,
    pub created_at: Timestamp,
    /// The last attempt.
    pub last: Option<CallbackAttempt>,
}

/// All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallbackFilter {
    pub account: Option<AccountId>,
    pub id: Option<CallbackId>,
    pub url_prefix: Option<String>,
    /// Created at this time or later.
    pub from: Option<Timestamp>,
    /// Created before this time.
    pub until: Option<Timestamp>,
    /// Whether to include received callbacks.
    pub with_done: bool,
}

/// A callback that a node holds according to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldCallback {
    pub id: CallbackId,
    pub claim: Claim,
}

/// A claimed callback whose row cannot be read. It must be set aside, or it would be claimed again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableCallback {
    pub held: HeldCallback,
    /// The column or field that cannot be read.
    pub part: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedCallbacks {
    /// Callbacks that became due, the earliest first.
    pub due: Vec<Callback>,
    /// Callbacks from receivers' queues, in the order of each queue.
    pub queued: Vec<Callback>,
    pub unreadable: Vec<UnreadableCallback>,
}

/// A person's request to replay callbacks. Nodes end the pauses of its receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    /// Increases with each request.
    pub number: u64,
    /// `None` for all accounts.
    pub account: Option<AccountId>,
    /// Empty for all receivers.
    pub url_prefix: String,
}

/// Callbacks.
///
/// A waiting callback is in one of three states: waiting for its due time, in the queue of its receiver, or held by a
/// node. Callbacks in a receiver's queue are due and cost nothing until a node asks for them.
#[async_trait]
pub trait CallbackStore: Send + Sync + 'static {
    /// Claims at most `limit` callbacks that are due, the earliest first, and up to the given number from each of these
    /// receivers' queues.
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError>;

    /// Receivers with a non-empty queue, at most `limit`, in the store's own order, after `after`.
    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError>;

    /// Stores the results of attempts in one transaction; `false` for a claim that this node no longer has.
    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError>;

    /// Callbacks that the node holds according to the database, and that became due more than `age` ago: at most
    /// `limit`, in the store's own order, after `after`.
    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError>;

    /// Releases callbacks that the node holds under exactly these claims. Returns the number.
    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError>;

    /// Callbacks, the newest first.
    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError>;

    /// Every attempt of a callback, in order.
    async fn list_attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError>;

    /// Makes callbacks due now, including parked ones: one bounded step, and where to continue. Callbacks that a node
    /// holds are skipped. Callbacks in a receiver's queue are due already and keep their position. The last step tells
    /// the nodes to end the pauses of the receivers ([`Self::list_replay_requests`]).
    async fn replay_callbacks(
        &self,
        filter: &CallbackFilter,
        from: ReplayCursor,
    ) -> Result<Replayed, StoreError>;

    /// Replay requests of the last hour with a higher number, in ascending order.
    async fn list_replay_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError>;

    /// The secrets that sign an account's callbacks; `None` if there is no such account.
    async fn find_signing_secrets(
        &self,
        account: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError>;

    /// Gives an account a new secret; the previous one signs as well until `former_until`. `false` if there is no such
    /// account.
    async fn replace_signing_secret(
        &self,
        account: AccountId,
        secret: &str,
        former_until: Timestamp,
    ) -> Result<bool, StoreError>;
}
