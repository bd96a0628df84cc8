//! One-time codes as a service.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::code_cap::CodeCapReached;
use crate::ids::{AccountId, VerificationId};
use crate::number::msisdn::Msisdn;
use crate::sender::PinHash;
use crate::verify::{CodeLength, Judgement, OneTimeCode, PrefixConversion, Verification};

/// A code that is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewVerification {
    pub account: AccountId,
    pub to: Msisdn,
    /// The calling code of the number and the first three digits after it.
    pub prefix: u32,
    pub length: CodeLength,
    pub hash: PinHash,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The result of starting a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It replaces a pending one for the same number, if there was one.
    New(VerificationId),
    /// A code was sent to this number a moment ago; nothing changed.
    TooSoon(VerificationId),
    /// The number or the account has reached its limit of codes; nothing changed.
    CodeCapReached(CodeCapReached),
    /// Nearly no code to this prefix is entered, so there is a pause between them; nothing changed.
    Slowed(CodeCapReached),
}

#[async_trait]
pub trait VerifyStore: Send + Sync + 'static {
    /// Stores a code that is about to be sent. It counts as a code ([`crate::code_cap`]), in the same transaction.
    async fn start_verification(&self, new: &NewVerification) -> Result<Started, StoreError>;

    /// Deletes a pending verification whose code could not be sent, so that another one can be started at once. The
    /// code does not count.
    async fn withdraw_verification(&self, id: VerificationId) -> Result<(), StoreError>;

    /// Checks a guess: at most [`MAX_TRIES`](crate::verify::MAX_TRIES) for one code, even if they arrive at the same
    /// time. `None` if the account has no such verification.
    async fn check_verification(
        &self,
        account: AccountId,
        id: VerificationId,
        guess: &OneTimeCode,
        now: Timestamp,
    ) -> Result<Option<Judgement>, StoreError>;

    /// One verification of this account.
    async fn find_verification(
        &self,
        account: AccountId,
        id: VerificationId,
    ) -> Result<Option<Verification>, StoreError>;

    /// How many codes were sent and entered since a time, by prefix and account. The largest first, at most `limit`.
    async fn list_conversions(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError>;

    /// Deletes verifications that began before this time, at most `limit`. Returns the number.
    async fn prune_verifications(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
