//! What operators see: nodes, carriers, queues, stuck messages and unmatched receipts.

use std::sync::Arc;

use domain::ports::{
    DatabaseFacts, NodeCarrierStatus, NodeStatus, OperationsStore, Overdue, QueueDepth, Receiver,
    StoreError, Unmatched,
};
use domain::{AccountId, Timestamp};
use jiff::SignedDuration;

use crate::reading::history::MAX_PAGE_SIZE;

/// A message that was due longer ago counts as stuck.
pub const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// The state of the service.
pub struct Operations {
    store: Arc<dyn OperationsStore>,
    started_at: Timestamp,
}

impl Operations {
    /// `now` is when this process started.
    pub fn new(store: Arc<dyn OperationsStore>, now: Timestamp) -> Self {
        Self {
            store,
            started_at: now,
        }
    }

    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Facts about the database.
    pub async fn describe_database(&self) -> Result<DatabaseFacts, StoreError> {
        self.store.describe_database().await
    }

    pub async fn list_nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.store.list_nodes().await
    }

    /// The carriers, as live nodes last reported them.
    pub async fn list_carrier_statuses(&self) -> Result<Vec<NodeCarrierStatus>, StoreError> {
        self.store.list_carrier_statuses().await
    }

    /// How many messages wait in each queue.
    pub async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.store.list_queues().await
    }

    /// Messages that were due longer ago than [`STUCK_AFTER`], oldest first.
    pub async fn list_stuck(&self, limit: u32) -> Result<Vec<Overdue>, StoreError> {
        let limit = limit.clamp(1, MAX_PAGE_SIZE);
        self.store.list_overdue(STUCK_AFTER, limit).await
    }

    /// Receipts that match no message, newest first.
    pub async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError> {
        self.store
            .list_unmatched(limit.clamp(1, MAX_PAGE_SIZE))
            .await
    }

    /// The receivers with waiting or parked callbacks, of one account or of all.
    pub async fn list_receivers(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<Receiver>, StoreError> {
        self.store.list_receivers(account).await
    }
}
