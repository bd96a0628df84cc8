//! The second factor of people, and pending sign-ins.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{NewSession, StoreError};
use crate::access::token::TokenHash;
use crate::ids::PersonId;
use crate::person::{Person, TotpSecret};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecondFactor {
    /// The secret that sign-in requires.
    pub active: Option<TotpSecret>,
    /// A secret that was shown, but not confirmed yet.
    pub offered: Option<TotpSecret>,
    /// The last step whose code was used.
    pub last_step: i64,
    /// How many recovery codes are left.
    pub codes_left: u32,
}

/// A pending sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// The person who gave the right password.
    pub person: Person,
    pub secret: TotpSecret,
    /// The last step whose code was used.
    pub last_step: i64,
}

/// A valid second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondProof {
    /// The code of a step.
    Step(i64),
    /// The hash of a recovery code.
    Recovery(TokenHash),
}

/// The second factor of people, and pending sign-ins.
#[async_trait]
pub trait SecondFactorStore: Send + Sync + 'static {
    async fn find_second_factor(&self, person: PersonId) -> Result<SecondFactor, StoreError>;

    /// Stores a secret until it is confirmed; it replaces an earlier unconfirmed one. `false` if the person has a
    /// second factor already, or was removed.
    async fn offer_second_factor(
        &self,
        person: PersonId,
        secret: &TotpSecret,
    ) -> Result<bool, StoreError>;

    /// Makes the offered secret the second factor, with these recovery codes; the code of `step` is used up. `false` if
    /// none is offered.
    async fn enable_second_factor(
        &self,
        person: PersonId,
        step: i64,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError>;

    /// Replaces all recovery codes. `false` if the person has no second factor.
    async fn replace_recovery_codes(
        &self,
        person: PersonId,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError>;

    /// Deletes the second factor and its recovery codes. `false` if there was none.
    async fn disable_second_factor(&self, person: PersonId) -> Result<bool, StoreError>;

    /// Stores a pending sign-in under this hash, after the password was right.
    async fn create_pending_sign_in(
        &self,
        person: PersonId,
        pending: &TokenHash,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Uses one of `most` attempts at a pending sign-in. `None` if it is unknown, expired, or has no attempts left.
    async fn try_pending_sign_in(
        &self,
        pending: &TokenHash,
        most: u32,
        now: Timestamp,
    ) -> Result<Option<PendingSignIn>, StoreError>;

    /// Uses up the second factor and replaces the pending sign-in, and the session `replaced`, by a session, in one
    /// step. `false` if the second factor was used before, or the pending sign-in is gone.
    async fn complete_sign_in(
        &self,
        pending: &TokenHash,
        proof: SecondProof,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<bool, StoreError>;
}
