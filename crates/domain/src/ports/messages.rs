//! Messages: accepting, reading, cancelling, replacing.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::billing::NotPaid;
use crate::ids::{AccountId, MessageId};
use crate::message::lookup::LookupRecord;
use crate::message::{
    AcceptedMessages, MessageRecord, MessageState, ScheduledRecord, Submission, WaitingMessage,
};

/// How long a node may use the IDs that it reserved. So IDs ascend with the time of acceptance, except for this period
/// and differences between clocks; searching by time relies on it.
pub const ID_BLOCK_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// The result of one submission of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is durably stored.
    Stored,
    /// Its idempotency key was used before with the same body. This was the answer, and nothing was stored.
    Replayed(AcceptedMessages),
    /// Its idempotency key was used before with another body. Nothing was stored.
    KeyConflict,
    /// Its account cannot or may not pay for it. Nothing was stored.
    NotPaid(NotPaid),
}

/// The result of one submission, or the error of its transaction, which all submissions of the transaction share.
pub type AcceptResult = Result<Accepted, Arc<StoreError>>;

/// The results of a batch that was one transaction.
pub fn accept_results(
    outcome: Result<Vec<Accepted>, StoreError>,
    batch: usize,
) -> Vec<AcceptResult> {
    match outcome {
        Ok(accepted) => accepted.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(Arc::new(error)); batch],
    }
}

/// The stored answer of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAnswer {
    /// SHA-256 of the request body.
    pub body: [u8; 32],
    pub receipt: AcceptedMessages,
}

/// The result of cancelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    Done,
    /// It is not waiting for its send time any more.
    NotWaiting(MessageState),
    /// The account has no such message.
    Unknown,
}

/// The result of replacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Done,
    /// It is not waiting for its send time any more.
    NotWaiting(MessageState),
    /// The account has no such message.
    Unknown,
}

/// A range of rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListRange {
    pub limit: u32,
    pub offset: u64,
}

/// Messages.
#[async_trait]
pub trait MessageStore: Send + Sync + 'static {
    /// Reserves `count` consecutive message IDs, never used before by any node, and returns the first.
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError>;

    /// Stores submissions: messages, queue rows, idempotency keys and charges. Each submission is stored whole or not
    /// at all, and charged in the order of the batch. Everything [`Accepted::Stored`] survives a power cut.
    ///
    /// Returns one result for each submission, in the order of the batch. A store may use more than one transaction:
    /// an error applies only to the submissions of the failed transaction.
    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult>;

    /// How many calls of [`Self::accept`] at once give the highest rate.
    fn concurrent_accepts(&self) -> usize {
        1
    }

    /// The stored answer of this idempotency key, within its lifetime.
    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<StoredAnswer>, StoreError>;

    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError>;

    async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError>;

    /// The account's scheduled SMS, sorted by time and ID.
    async fn list_scheduled(
        &self,
        account: AccountId,
        page: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError>;

    /// The account's scheduled SMS, sorted by time and ID, after `after`.
    async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError>;

    /// Cancels a scheduled message and refunds its price.
    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError>;

    /// A scheduled SMS of the account. `None` if there is none, or if it does not wait for its send time any more.
    async fn find_waiting(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<WaitingMessage>, StoreError>;

    /// Replaces a scheduled SMS that no node has claimed. `by` has one recipient, with the ID of that message and the
    /// new price. Text, coding, parts, callback, network, send time and expiry become those of `by`, and the message
    /// stays scheduled, also if the time is past. The difference between the prices is charged or refunded in the same
    /// transaction. If the account cannot pay it, nothing changes.
    async fn replace(&self, by: Submission) -> Result<Result<Replace, NotPaid>, StoreError>;

    /// Deletes expired idempotency keys, at most `limit`. Returns the number.
    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
