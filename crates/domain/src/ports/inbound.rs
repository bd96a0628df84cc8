//! Messages from handsets, and the numbers that they are sent to.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{Cursor, NewReply, Page, StoreError};
use crate::callback_url::CallbackUrl;
use crate::ids::{AccountId, MessageId, NodeId};
use crate::inbound::assembly::PartText;
use crate::inbound::header::Concatenation;
use crate::inbound::message::InboundMessage;
use crate::inbound::number::InboundNumber;
use crate::message::text::Udh;

/// A number, or a keyword of a shared number, that belongs to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberEntry {
    pub number: InboundNumber,
    /// As it was configured; `None` takes what no keyword takes.
    pub keyword: Option<String>,
    pub account: AccountId,
    /// Where its messages are sent, if not to the URL of the account.
    pub url: Option<CallbackUrl>,
}

/// An entry, and what is needed to know about its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedNumber {
    pub entry: NumberEntry,
    pub account_name: String,
    /// Where messages to numbers of the account are sent, unless the entry says otherwise.
    pub account_url: Option<CallbackUrl>,
}

/// One delivery of a PDU, by which a repetition is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredCopy {
    /// The session that delivered it: a random number.
    pub session: i64,
    /// Counted within the session.
    pub number: i64,
    /// Of the carrier and the content.
    pub hash: [u8; 16],
}

/// What the parts of a text have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartKey {
    pub carrier: String,
    pub from: String,
    pub to: InboundNumber,
    pub reference: u16,
    pub total: u8,
}

/// A part of a long text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundPart {
    pub carrier: String,
    pub from: String,
    pub to: InboundNumber,
    pub concatenation: Concatenation,
    pub text: PartText,
    pub udh: Option<Udh>,
    pub received_at: Timestamp,
}

impl InboundPart {
    pub fn key(&self) -> PartKey {
        PartKey {
            carrier: self.carrier.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            reference: self.concatenation.reference,
            total: self.concatenation.total,
        }
    }
}

/// The parts of one text that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSet {
    pub key: PartKey,
    /// References are used again: a part that is there already begins another set of the same key.
    pub set: i32,
    pub parts: Vec<PartText>,
    /// Of the first part.
    pub udh: Option<Udh>,
    /// When its first part was stored.
    pub received_at: Timestamp,
}

impl PartSet {
    pub fn is_complete(&self) -> bool {
        self.parts.len() == usize::from(self.key.total)
    }
}

/// A message to store, and where to send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInbound {
    pub message: InboundMessage,
    /// `None` if it is only in the inbox.
    pub url: Option<CallbackUrl>,
    /// The reply to a word such as STOP, stored with the message and sent afterwards.
    pub reply: Option<NewReply>,
}

/// What a carrier delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    Message(Box<NewInbound>),
    Part(Box<InboundPart>),
}

/// The result of storing what a carrier delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveredResult {
    Stored,
    /// It was stored before; the carrier had no answer.
    Repeated,
    /// Not stored: another node stored the same a moment ago, and it is not known yet whether the carrier got the answer.
    Unclear,
}

/// How a node answers the question whether the same content on another node is a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUnclear {
    /// With [`DeliveredResult::Unclear`].
    Wait,
    /// It is stored as another message.
    Store,
}

/// All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboundFilter {
    pub owner: InboundOwner,
    /// The sender as it is shown.
    pub from: Option<String>,
    pub to: Option<InboundNumber>,
    /// Received at this time or later.
    pub since: Option<Timestamp>,
    /// Received before this time.
    pub until: Option<Timestamp>,
}

/// Whose messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InboundOwner {
    /// Only operators see all of them.
    #[default]
    Anyone,
    /// Sent to a number that nobody owns.
    Nobody,
    Account(AccountId),
}

#[async_trait]
pub trait InboundStore: Send + Sync + 'static {
    /// Stores what carriers delivered to a node, with the callbacks of messages. One result for each, in order.
    async fn store_delivered(
        &self,
        node: NodeId,
        batch: Arc<Vec<(DeliveredCopy, Delivered)>>,
        if_unclear: IfUnclear,
    ) -> Result<Vec<DeliveredResult>, StoreError>;

    /// The complete set of these parts, if there is one.
    async fn find_part_set(&self, key: &PartKey) -> Result<Option<PartSet>, StoreError>;

    /// Sets of parts that are complete, or whose first part was stored before this time.
    async fn list_part_sets(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError>;

    /// Replaces parts by their message. `false` if they are not the parts that are stored: another node has replaced
    /// them, or another part came.
    async fn replace_parts(&self, set: &PartSet, message: &NewInbound) -> Result<bool, StoreError>;

    /// Forgets copies whose answers the carrier has got.
    async fn confirm_copies(&self, copies: &[(i64, i64)]) -> Result<(), StoreError>;

    /// Notes that a session has ended, so that its copies may be delivered again.
    async fn end_delivering(&self, session: i64) -> Result<(), StoreError>;

    /// Deletes up to `limit` copies that are too old to be delivered again.
    async fn prune_copies(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Deletes up to `limit` messages that are older than this.
    async fn prune_inbound(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError>;

    async fn list_inbound(
        &self,
        filter: &InboundFilter,
        page: Cursor<MessageId>,
    ) -> Result<Page<InboundMessage, MessageId>, StoreError>;

    /// `None` for the account finds messages of anyone.
    async fn find_inbound(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<InboundMessage>, StoreError>;

    /// Adds an entry. `false` if the number and keyword are taken.
    async fn add_number(&self, entry: &NumberEntry) -> Result<bool, StoreError>;

    /// Every entry, by number and keyword.
    async fn list_numbers(&self) -> Result<Vec<OwnedNumber>, StoreError>;

    /// Sets where messages to numbers of an account are sent.
    async fn set_inbound_url(
        &self,
        account: AccountId,
        url: Option<&CallbackUrl>,
    ) -> Result<(), StoreError>;

    /// Removes an entry, and raises [`AccessStore::access_version`](super::AccessStore::access_version): the account may
    /// not send under the number any more. `false` if there is none.
    async fn remove_number(
        &self,
        number: &InboundNumber,
        keyword: Option<&str>,
    ) -> Result<bool, StoreError>;
}
