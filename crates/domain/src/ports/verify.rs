//! One-time codes as a service.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::code_cap::CodeCapReached;
use crate::ids::{AccountId, VerificationId};
use crate::number::country::Country;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::sender::PinHash;
use crate::verify::{
    CodeLength, Judgement, NetworkConversion, OneTimeCode, PrefixConversion, Verification,
};

/// How many codes are counted at most to find the conversion.
pub const MAX_CONVERSION_ROWS: u32 = 100_000;

/// A code that is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewVerification {
    pub account: AccountId,
    pub to: Msisdn,
    /// The calling code of the number and the first three digits after it.
    pub prefix: u32,
    pub network: Option<Network>,
    pub country: Option<Country>,
    pub length: CodeLength,
    pub hash: PinHash,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// SHA-256 of the caller's `Idempotency-Key`.
    pub key: Option<[u8; 32]>,
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
    /// Stores a code that is about to be sent. It counts as a code ([`crate::code_cap`]), in the same transaction. Its
    /// approval costs what the account's `verify_price` is now.
    async fn start_verification(&self, new: &NewVerification) -> Result<Started, StoreError>;

    /// Deletes a pending verification whose code could not be sent, so that another one can be started at once. The
    /// code does not count, and one that it had replaced is pending again.
    async fn withdraw_verification(&self, id: VerificationId) -> Result<(), StoreError>;

    /// Checks a guess: at most [`MAX_TRIES`](crate::verify::MAX_TRIES) for one code, even if they arrive at the same
    /// time. The right code is charged in the same transaction, even if that leaves no money. `None` if the account has
    /// no such verification.
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

    /// The newest verification of this account that was started under a key.
    async fn find_keyed_verification(
        &self,
        account: AccountId,
        key: &[u8; 32],
    ) -> Result<Option<Verification>, StoreError>;

    /// Verifications of this account, the newest first: at most `limit`, before an ID.
    async fn list_verifications(
        &self,
        account: AccountId,
        before: Option<VerificationId>,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError>;

    /// How many codes were sent and entered since a time, by prefix and account, of one account or of all. The largest
    /// first, at most `limit`. At most the newest [`MAX_CONVERSION_ROWS`] codes are counted.
    async fn list_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError>;

    /// The same by network.
    async fn list_network_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<NetworkConversion>, StoreError>;

    /// Deletes verifications that began before this time, at most `limit`. Returns the number.
    async fn prune_verifications(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
