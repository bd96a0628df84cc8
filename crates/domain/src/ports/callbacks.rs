//! Reports on their way to the callers.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Page, StoreError};
use crate::delivery::{Callback, CallbackAttempt, CallbackKind, CallbackSettlement};
use crate::ids::{AccountId, CallbackId, MessageId, NodeId, SenderId};

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

/// Callbacks.
#[async_trait]
pub trait CallbackStore: Send + Sync + 'static {
    /// Takes callbacks that are due and that nobody holds, the earliest first.
    async fn claim_callbacks(&self, node: NodeId, limit: u32) -> Result<Vec<Callback>, StoreError>;

    /// Stores what came of tries, in one transaction; `false` for a claim that is not this node's any more.
    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError>;

    /// Gives back the callbacks that the node holds, but for those in `keep`: after a write whose outcome is unknown
    /// the store may know of some that the node does not.
    async fn release_callbacks(
        &self,
        node: NodeId,
        keep: Vec<CallbackId>,
    ) -> Result<u64, StoreError>;

    /// Callbacks, the newest first.
    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: Page,
    ) -> Result<Vec<CallbackRecord>, StoreError>;

    /// Every try of a callback, in order.
    async fn list_attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError>;

    /// Makes callbacks due now, parked ones too; those that a node holds at the moment are left alone. Says how many.
    async fn replay_callbacks(&self, filter: &CallbackFilter) -> Result<u64, StoreError>;

    /// The secret that signs an account's callbacks.
    async fn find_callback_secret(&self, account: AccountId) -> Result<Option<String>, StoreError>;
}
