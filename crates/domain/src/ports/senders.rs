//! Sender IDs.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Page, StoreError};
use crate::callback_url::CallbackUrl;
use crate::code_cap::Capped;
use crate::ids::{AccountId, SenderId};
use crate::number::msisdn::Msisdn;
use crate::sender::{
    Category, Judgement, Pin, PinHash, SenderName, SenderRecord, SenderState, Step, WrongState,
};

/// A sender to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSender {
    /// Whose.
    pub account: AccountId,
    /// The name or number.
    pub name: SenderName,
    /// What a name stands for.
    pub category: Option<Category>,
    /// What the reviewer is told about it.
    pub description: Option<String>,
    /// Where changes of its state are told.
    pub notification_url: Option<CallbackUrl>,
    /// The PIN that is about to be sent to a number; without one the sender is reviewed.
    pub pin: Option<PinHash>,
    /// Now.
    pub created_at: Timestamp,
}

impl NewSender {
    /// The number that gets a PIN, if one does.
    pub fn pin_goes_to(&self) -> Option<Msisdn> {
        match (&self.name, self.pin) {
            (SenderName::Msisdn(number), Some(_)) => Some(*number),
            _ => None,
        }
    }
}

/// What came of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// It is registered.
    New(SenderId),
    /// It waited for a PIN already, and does so for this one now: a former one no longer counts.
    PinAgain(SenderId),
    /// It waits for a PIN that was sent less than a minute ago; nothing changed.
    TooSoon(SenderId),
    /// The account has a live sender of this name; nothing changed.
    Exists(SenderId, SenderState),
    /// The number got, or the account had sent, as many codes as they may; nothing changed.
    Capped(Capped),
}

/// What came of a guess at a PIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// The guess was judged, or not; the right one approved the sender.
    Judged(Judgement),
    /// The sender waits for no PIN.
    NotWaiting(SenderState),
    /// The account has no such sender.
    Unknown,
}

/// What came of a reviewer's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// The sender as it is now.
    Done(SenderRecord),
    /// Its state does not allow that.
    Refused(WrongState),
    /// There is no such sender.
    Unknown,
}

/// Which senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderFilter {
    /// Only those of this account.
    pub account: Option<AccountId>,
    /// Only those in this state.
    pub state: Option<SenderState>,
    /// Only those that were registered after this one.
    pub after: Option<SenderId>,
}

/// Sender IDs.
///
/// Whoever changes a sender's state raises [`AccessStore::access_version`](super::AccessStore::access_version) in the
/// same transaction, and with it stores the notification for its account, if that asked for one.
#[async_trait]
pub trait SenderStore: Send + Sync + 'static {
    /// Registers a sender, or renews the PIN of one that waits for it. Each PIN counts as a code ([`crate::code_cap`]), in
    /// the same transaction.
    async fn register_sender(&self, sender: &NewSender) -> Result<Registered, StoreError>;

    /// Forgets a PIN that could not be sent, so that another one may be asked for at once. It does not count.
    async fn withdraw_pin(&self, id: SenderId, pin: &PinHash) -> Result<(), StoreError>;

    /// Judges a guess, however many come at once at most [`MAX_TRIES`](crate::sender::MAX_TRIES) for one PIN.
    async fn confirm_sender(
        &self,
        account: AccountId,
        id: SenderId,
        guess: Pin,
        now: Timestamp,
    ) -> Result<Confirmed, StoreError>;

    /// One sender of this account, or of any.
    async fn find_sender(
        &self,
        account: Option<AccountId>,
        id: SenderId,
    ) -> Result<Option<SenderRecord>, StoreError>;

    /// Senders that fit a filter, by ID.
    async fn list_senders(
        &self,
        filter: SenderFilter,
        page: Page,
    ) -> Result<Vec<SenderRecord>, StoreError>;

    /// Takes a step with a sender, as whoever runs the service decided, for this reason.
    async fn review_sender(
        &self,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Reviewed, StoreError>;

    /// Rejects numbers that wait for a PIN and were sent none since `before`, at most `limit`, for this reason. Says how
    /// many.
    async fn expire_senders(
        &self,
        before: Timestamp,
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Whether the account has an approved sender that compares as this name.
    async fn is_sender_approved(&self, account: AccountId, name: &str) -> Result<bool, StoreError>;
}
