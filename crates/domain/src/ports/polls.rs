//! Messages whose reports a carrier asks for, because the provider does not send them.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{ReceiptError, StoreError};
use crate::ids::MessageId;

/// A message that a carrier took and whose report it must ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedReport {
    pub carrier: String,
    pub id: MessageId,
    /// The provider's ID of the message; empty if the carrier asks by our own.
    pub provider_id: String,
    /// When to ask first.
    pub first_after: Duration,
    /// No report counts after this time.
    pub expires_at: Timestamp,
}

/// A message whose report is to be asked for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePoll {
    pub id: MessageId,
    pub provider_id: String,
}

#[async_trait]
pub trait PollStore: Send + Sync + 'static {
    /// Stores messages whose reports must be asked for. The newest entry for a message and a carrier counts.
    async fn add_polls(&self, awaited: &[AwaitedReport]) -> Result<(), StoreError>;

    /// Takes at most `limit` messages of a carrier that are due and have not expired, the most overdue first. No node
    /// gets them again before `interval`, or a quarter of the time since the carrier took the message if that is longer
    /// (at most an hour).
    async fn claim_polls(
        &self,
        carrier: &str,
        interval: Duration,
        limit: u32,
    ) -> Result<Vec<DuePoll>, StoreError>;

    /// Stops asking about messages.
    async fn remove_polls(&self, carrier: &str, ids: &[MessageId]) -> Result<(), StoreError>;

    /// Deletes what has expired: at most `limit`. Returns the number.
    async fn prune_polls(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

/// What a carrier needs to ask for reports.
#[async_trait]
pub trait ReportPolls: Send + Sync + 'static {
    /// Stores that the report of a message must be asked for.
    async fn add(&self, awaited: AwaitedReport) -> Result<(), ReceiptError>;

    /// See [`PollStore::claim_polls`].
    async fn claim(
        &self,
        carrier: &str,
        interval: Duration,
        limit: u32,
    ) -> Result<Vec<DuePoll>, StoreError>;

    /// See [`PollStore::remove_polls`].
    async fn remove(&self, carrier: &str, ids: &[MessageId]) -> Result<(), StoreError>;
}
