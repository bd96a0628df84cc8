//! Forgetting texts, and finding and erasing what is stored about one number.

use async_trait::async_trait;
use jiff::SignedDuration;

use super::{CallbackRecord, PartSet, StoreError};
use crate::delivery::CallbackAttempt;
use crate::ids::MessageId;
use crate::inbound::message::InboundMessage;
use crate::number::msisdn::Msisdn;
use crate::verify::Verification;

/// A message to or from a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectMessage {
    pub id: MessageId,
    /// Whether it has ended and has no waiting callback.
    pub is_over: bool,
}

/// Some messages to or from a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPage {
    /// By ascending ID.
    pub messages: Vec<SubjectMessage>,
    /// The next page follows this ID. `None` if this was the last page.
    pub next: Option<MessageId>,
}

/// A message from a handset, and its callbacks with their attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundDetail {
    pub message: InboundMessage,
    pub callbacks: Vec<(CallbackRecord, Vec<CallbackAttempt>)>,
}

#[async_trait]
pub trait PrivacyStore: Send + Sync + 'static {
    /// Messages and lookups whose recipient or originator is this number, with IDs after `after`. Reads a bounded number
    /// of rows: a page may be empty and still have a next one.
    async fn list_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError>;

    /// Erases a number from messages that are over: the number itself, their texts, the results of lookups, the answers
    /// of receivers, and URLs that contain the number. States, prices and counts stay. Returns how many messages were
    /// erased.
    async fn erase_subject(&self, number: &Msisdn, ids: &[MessageId]) -> Result<u64, StoreError>;

    /// The verifications of a number, at most `limit`.
    async fn list_verifications_of(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError>;

    /// Deletes the verifications of a number.
    async fn erase_verifications(&self, number: &Msisdn) -> Result<(), StoreError>;

    /// Deletes the texts of messages that ended `age` ago, at most `limit`. Returns whether there may be more.
    async fn forget_texts(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError>;

    /// Messages from handsets whose sender or recipient is this number, like [`Self::list_subject`]. They are over if
    /// no callback about them waits.
    async fn list_inbound_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError>;

    /// A message from a handset with everything that is stored about it.
    async fn find_inbound_detail(&self, id: MessageId)
    -> Result<Option<InboundDetail>, StoreError>;

    /// Erases a number from messages from handsets that are over: the number itself, their texts, also in callbacks that
    /// may be replayed, the answers of receivers, and URLs that contain the number. Returns how many were erased.
    async fn erase_inbound_subject(
        &self,
        number: &Msisdn,
        ids: &[MessageId],
    ) -> Result<u64, StoreError>;

    /// Texts from or to a number that wait for missing parts, at most `limit`.
    async fn list_subject_parts(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError>;

    /// Deletes all parts from and to a number that wait for the rest of their text.
    async fn erase_subject_parts(&self, number: &Msisdn) -> Result<(), StoreError>;

    /// Deletes the texts of messages that were received from handsets `age` ago, at most `limit`, also in their
    /// callbacks. Messages whose callbacks wait keep them. Returns whether there may be more.
    async fn forget_inbound_texts(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<bool, StoreError>;
}
