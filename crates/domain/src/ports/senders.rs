//! Sender IDs.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{AuditStore, ListRange, StoreError};
use crate::callback_url::CallbackUrl;
use crate::code_cap::CodeCapReached;
use crate::ids::{AccountId, SenderId};
use crate::number::msisdn::Msisdn;
use crate::sender::{
    Category, Judgement, Pin, PinHash, SenderName, SenderRecord, SenderState, Step, WrongState,
};

/// A sender ID to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSender {
    pub account: AccountId,
    pub name: SenderName,
    pub category: Option<Category>,
    /// For the reviewer.
    pub description: Option<String>,
    /// Where changes of its state are reported.
    pub notification_url: Option<CallbackUrl>,
    /// The PIN that will be sent to a number; without one, the sender ID is reviewed.
    pub pin: Option<PinHash>,
    pub created_at: Timestamp,
}

impl NewSender {
    /// The number that gets a PIN, if any.
    pub fn pin_goes_to(&self) -> Option<Msisdn> {
        match (&self.name, self.pin) {
            (SenderName::Msisdn(number), Some(_)) => Some(*number),
            _ => None,
        }
    }
}

/// The result of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    New(SenderId),
    /// It was waiting for a PIN already; the PIN is replaced by this one.
    PinAgain(SenderId),
    /// It is waiting for a PIN that was sent less than a minute ago; nothing changed.
    TooSoon(SenderId),
    /// The account has an active sender ID with this name; nothing changed.
    Exists(SenderId, SenderState),
    /// The number or the account has reached its limit of codes; nothing changed.
    CodeCapReached(CodeCapReached),
}

/// The result of a guess at a PIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// The right guess approved the sender ID.
    Judged(Judgement),
    /// The sender ID is not waiting for a PIN.
    NotWaiting(SenderState),
    /// The account has no such sender ID.
    Unknown,
}

/// The result of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// The changed sender ID.
    Done(SenderRecord),
    /// Its state does not allow this step.
    Refused(WrongState),
    Unknown,
}

/// All given conditions must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderFilter {
    pub account: Option<AccountId>,
    pub state: Option<SenderState>,
    /// Only those registered after this one.
    pub after: Option<SenderId>,
}

/// What entitles an account to an originator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderRight {
    /// An approved sender ID.
    SenderId,
    /// It owns the number, or a keyword of it.
    Number,
}

/// Sender IDs.
///
/// Every change of a sender ID's state raises [`AccessStore::access_version`](super::AccessStore::access_version) in
/// the same transaction, and stores the notification if the account wants one.
#[async_trait]
pub trait SenderStore: AuditStore {
    /// Registers a sender ID, or renews the PIN of one that is waiting for it. Each PIN counts as a code
    /// ([`crate::code_cap`]), in the same transaction.
    async fn register_sender(&self, sender: &NewSender) -> Result<Registered, StoreError>;

    /// Deletes a PIN that could not be sent, so that another one can be requested at once. It does not count.
    async fn withdraw_pin(&self, id: SenderId, pin: &PinHash) -> Result<(), StoreError>;

    /// Checks a guess: at most [`MAX_TRIES`](crate::sender::MAX_TRIES) for one PIN, even if they arrive at the same
    /// time.
    async fn confirm_sender(
        &self,
        account: AccountId,
        id: SenderId,
        guess: Pin,
        now: Timestamp,
    ) -> Result<Confirmed, StoreError>;

    /// One sender ID of this account, or of any.
    async fn find_sender(
        &self,
        account: Option<AccountId>,
        id: SenderId,
    ) -> Result<Option<SenderRecord>, StoreError>;

    /// Matching sender IDs, sorted by ID.
    async fn list_senders(
        &self,
        filter: SenderFilter,
        page: ListRange,
    ) -> Result<Vec<SenderRecord>, StoreError>;

    /// Applies a reviewer's decision, with a reason.
    async fn review_sender(
        &self,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Reviewed, StoreError>;

    /// Rejects numbers that are waiting for a PIN and were sent none since `before`, at most `limit`, with this reason.
    /// Returns the number.
    async fn expire_senders(
        &self,
        before: Timestamp,
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Why the account may use an originator without further conditions, if it may; a number is given as its digits.
    async fn find_sender_right(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Option<SenderRight>, StoreError>;
}
