//! Replies to words such as STOP: the texts of accounts, and the replies that are not sent yet.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{AccountId, MessageId};
use crate::inbound::language::Language;
use crate::inbound::number::InboundNumber;
use crate::inbound::words::Request;
use crate::number::msisdn::Msisdn;

/// A reply to a message, stored with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReply {
    /// The account that replies.
    pub account: AccountId,
    pub text: String,
}

/// A reply that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReply {
    /// The message that it replies to.
    pub id: MessageId,
    pub account: AccountId,
    pub from: InboundNumber,
    pub to: Msisdn,
    pub text: String,
    /// When the message was received.
    pub received_at: Timestamp,
}

#[async_trait]
pub trait ReplyStore: Send + Sync + 'static {
    /// The account's own text: the one for this language, else the one for all languages. Empty for no reply.
    async fn find_reply(
        &self,
        account: AccountId,
        request: Request,
        language: Language,
    ) -> Result<Option<String>, StoreError>;

    /// Sets the account's own text for a language, or for all without one of their own; `None` takes it away.
    async fn set_reply(
        &self,
        account: AccountId,
        request: Request,
        language: Option<Language>,
        text: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Replies that are not sent yet, the oldest first.
    async fn list_due_replies(&self, limit: u32) -> Result<Vec<DueReply>, StoreError>;

    /// Forgets a reply, since it was sent or cannot be.
    async fn remove_due_reply(&self, id: MessageId) -> Result<(), StoreError>;
}
