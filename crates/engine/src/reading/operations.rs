//! What whoever runs the service sees: nodes, carriers, queues, what is stuck, what fits nothing.

use std::sync::Arc;

use domain::ports::{
    CarrierSeen, DatabaseFacts, NodeSeen, Overdue, QueueDepth, Receiver, Store, StoreError,
    Unmatched,
};
use domain::{AccountId, Timestamp};
use jiff::SignedDuration;

use crate::reading::history::MOST_ROWS;

/// What is due for longer than so is stuck.
pub const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Looks at how the service does.
pub struct Operations {
    store: Arc<dyn Store>,
    started_at: Timestamp,
}

impl Operations {
    /// Works on a store, in a process that starts now.
    pub fn new(store: Arc<dyn Store>, now: Timestamp) -> Self {
        Self {
            store,
            started_at: now,
        }
    }

    /// When this process started.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// What the database is.
    pub async fn describe_database(&self) -> Result<DatabaseFacts, StoreError> {
        self.store.describe_database().await
    }

    /// The nodes.
    pub async fn list_nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        self.store.list_nodes().await
    }

    /// How the carriers do, as the nodes that live noted it last.
    pub async fn list_carriers(&self) -> Result<Vec<CarrierSeen>, StoreError> {
        self.store.list_carriers().await
    }

    /// How much waits in every queue.
    pub async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.store.list_queues().await
    }

    /// Messages that were due longer ago than [`STUCK_AFTER`] and still wait, the oldest first.
    pub async fn list_stuck(&self, limit: u32) -> Result<Vec<Overdue>, StoreError> {
        let limit = limit.clamp(1, MOST_ROWS);
        self.store.list_overdue(STUCK_AFTER, limit).await
    }

    /// Receipts that fit nothing, the newest first.
    pub async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError> {
        self.store.list_unmatched(limit.clamp(1, MOST_ROWS)).await
    }

    /// The hosts for which reports of an account, or of all, wait or are parked.
    pub async fn list_receivers(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<Receiver>, StoreError> {
        self.store.list_receivers(account).await
    }
}
