//! Reports on their way to the callers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{Page, StoreError};
use crate::delivery::receiver::ReceiverId;
use crate::delivery::{Callback, CallbackAttempt, CallbackKind, CallbackSettlement, Claim};
use crate::ids::{AccountId, CallbackId, MessageId, NodeId, SenderId};

/// Where a replay looks for callbacks, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaySource {
    /// Those that wait.
    Queue,
    /// Those that are tried no more.
    Parked,
    /// Those that were received.
    Done,
}

/// How far a replay has come: the last row that it has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayCursor {
    /// Among which callbacks.
    pub source: ReplaySource,
    /// In whose queue.
    pub owner: i64,
    /// Due when.
    pub due_us: i64,
    /// Which.
    pub id: i64,
}

impl ReplayCursor {
    /// Nothing is looked at yet.
    pub const START: Self = Self::before(ReplaySource::Queue);

    /// The beginning of a source.
    pub const fn before(source: ReplaySource) -> Self {
        Self {
            source,
            owner: i64::MIN,
            due_us: i64::MIN,
            id: i64::MIN,
        }
    }
}

/// What a step of a replay did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// How many callbacks are due now.
    pub count: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<ReplayCursor>,
}

/// The secrets that sign an account's callbacks. Their debug form is blank.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecrets {
    /// The one that people are shown.
    pub newest: String,
    /// The one before, and until when it signs besides.
    pub former: Option<(String, Timestamp)>,
}

impl SigningSecrets {
    /// Those that sign now, the newest first.
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

/// What a callback is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackSubject {
    /// A message, or a lookup.
    Message(MessageId),
    /// A sender.
    Sender(SenderId),
}

/// Where a callback stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackState {
    /// It waits for its next try.
    Waiting {
        /// The time of that.
        due_at: Timestamp,
    },
    /// It is tried no more until somebody asks for it.
    Parked,
    /// It was received.
    Done,
}

/// A callback, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRecord {
    /// Its ID.
    pub id: CallbackId,
    /// What it tells.
    pub kind: CallbackKind,
    /// What it is about.
    pub about: CallbackSubject,
    /// Whose.
    pub account: AccountId,
    /// Where it goes.
    pub url: String,
    /// What it says.
    pub payload: String,
    /// Where it stands.
    pub state: CallbackState,
    /// How often it was tried.
    pub tries: u32,
    /// When it came into being.
    pub created_at: Timestamp,
    /// The last try.
    pub last: Option<CallbackAttempt>,
}

/// Which callbacks. Every condition that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallbackFilter {
    /// Those of this account.
    pub account: Option<AccountId>,
    /// This one.
    pub id: Option<CallbackId>,
    /// Those whose address starts so.
    pub url_prefix: Option<String>,
    /// Those that came into being at this time or later.
    pub from: Option<Timestamp>,
    /// Those that came into being before this time.
    pub until: Option<Timestamp>,
    /// With those that were received, too.
    pub with_done: bool,
}

/// A callback that the database says a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldCallback {
    /// Which callback.
    pub id: CallbackId,
    /// The claim under which it is held.
    pub claim: Claim,
}

/// A callback that was claimed and whose row cannot be read. It must be set aside, or it would be claimed for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableCallback {
    /// The row, held by the claim.
    pub held: HeldCallback,
    /// The part that cannot be read.
    pub part: &'static str,
}

/// What a claim took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedCallbacks {
    /// Those that had become due, the earliest first.
    pub due: Vec<Callback>,
    /// Those from receivers' queues, in the order of each queue.
    pub queued: Vec<Callback>,
    /// Those that cannot be read.
    pub unreadable: Vec<UnreadableCallback>,
}

/// A request of a person to send callbacks again now. Nodes end the pauses of the receivers that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    /// Requests are numbered in ascending order.
    pub number: u64,
    /// Receivers of this account; `None` for all.
    pub account: Option<AccountId>,
    /// The beginning of the receivers' URLs; empty for all.
    pub url_prefix: String,
}

/// Callbacks.
///
/// A callback that waits is in one of three places: among those that wait for their time, in the queue of its receiver,
/// or held by a node. What waits in a receiver's queue is due and costs nothing until a node asks for it.
#[async_trait]
pub trait CallbackStore: Send + Sync + 'static {
    /// Takes at most `limit` callbacks whose time has come, the earliest first, and from each of the given receivers'
    /// queues at most so many.
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError>;

    /// Receivers in whose queues callbacks wait, at most `limit`, in the store's own order after the given one.
    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError>;

    /// Stores what came of tries, in one transaction; `false` for a claim that is not this node's any more.
    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError>;

    /// Callbacks that the database says the node holds, and that became due more than `age` ago: at most `limit`, in
    /// the store's own order after the given one.
    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError>;

    /// Gives back callbacks that the node holds under these very claims, so that any node may take them. Says how many.
    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError>;

    /// Callbacks, the newest first.
    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: Page,
    ) -> Result<Vec<CallbackRecord>, StoreError>;

    /// Every try of a callback, in order.
    async fn list_attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError>;

    /// Makes callbacks due now, parked ones too: one bounded step, and where to go on. Those that a node holds at the
    /// moment are left alone. Those in a receiver's queue are due already and keep their place. The last step tells the
    /// nodes to end the pauses of the receivers ([`Self::list_replay_requests`]).
    async fn replay_callbacks(
        &self,
        filter: &CallbackFilter,
        from: ReplayCursor,
    ) -> Result<Replayed, StoreError>;

    /// Requests to send callbacks again of the last hour, above this number, in ascending order.
    async fn list_replay_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError>;

    /// The secrets that sign an account's callbacks; `None` where there is no such account.
    async fn find_signing_secrets(
        &self,
        account: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError>;

    /// Gives an account a new secret; the one before it signs besides until the given time. `false` where there is no
    /// such account.
    async fn replace_signing_secret(
        &self,
        account: AccountId,
        secret: &str,
        former_until: Timestamp,
    ) -> Result<bool, StoreError>;
}
