//! Messages: accepting, reading back, cancelling.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::billing::NotPaid;
use crate::ids::{AccountId, MessageId};
use crate::message::lookup::LookupRecord;
use crate::message::{MessageRecord, MessageState, ScheduledRecord, Submission, SubmitReceipt};

/// How long a node gives out the IDs that it reserved, at most. So IDs ascend with the time of acceptance, but for so
/// much and what clocks differ by: looking for messages of a time relies on it.
pub const ID_BLOCK_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// What became of one submission of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, durably.
    Stored,
    /// Its idempotency key was used before with the same body: this was the answer, and nothing new was stored.
    Replayed(SubmitReceipt),
    /// Its idempotency key was used before with another body: nothing was stored.
    KeyConflict,
    /// Its account cannot or may not pay for it: nothing was stored.
    NotPaid(NotPaid),
}

/// What became of one submission, or why that is not known. The submissions of one transaction share its error.
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

/// What an idempotency key was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptAnswer {
    /// SHA-256 of the body that it came with.
    pub body: [u8; 32],
    /// What was answered.
    pub receipt: SubmitReceipt,
}

/// What came of an attempt to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// It is cancelled now.
    Done,
    /// It is known, but no longer waits for its time.
    NotWaiting(MessageState),
    /// This account has no such message.
    Unknown,
}

/// Which rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: u32,
    /// After so many.
    pub offset: u64,
}

/// Messages.
#[async_trait]
pub trait MessageStore: Send + Sync + 'static {
    /// Reserves `count` consecutive message IDs, never given out before to any node, and returns the first.
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError>;

    /// Stores submissions: messages, queue rows, idempotency keys and what they cost, each submission whole or not at
    /// all, and charged in the order of the batch. Everything [`Accepted::Stored`] survives a power cut.
    ///
    /// Returns one result for each submission, in the order of the batch. A store may use more than one transaction:
    /// an error applies only to the submissions of the transaction that failed.
    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult>;

    /// What this idempotency key was used for, if it was, within its lifetime.
    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<KeptAnswer>, StoreError>;

    /// One message of this account.
    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError>;

    /// One lookup of this account.
    async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError>;

    /// The account's SMS that still wait for their time, by time, then ID.
    async fn list_scheduled(
        &self,
        account: AccountId,
        page: Page,
    ) -> Result<Vec<ScheduledRecord>, StoreError>;

    /// The account's SMS that still wait for their time, by time, then ID: those after one of this time and ID.
    async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError>;

    /// Cancels a message that still waits for its time, and gives back its price.
    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError>;

    /// Forgets idempotency keys whose lifetime is over, at most `limit` of them, and says how many those were.
    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
