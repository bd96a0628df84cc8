//! Forgetting texts, and finding and erasing what is stored about one number.

use async_trait::async_trait;
use jiff::SignedDuration;

use super::StoreError;
use crate::ids::MessageId;
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
}
