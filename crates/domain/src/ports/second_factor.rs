//! The second factor of people, and sign-ins that wait for it.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{NewSession, StoreError};
use crate::access::token::TokenHash;
use crate::ids::PersonId;
use crate::person::{Person, TotpSecret};

/// Where a person stands with their second factor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecondFactor {
    /// The secret that is asked for at sign-in.
    pub active: Option<TotpSecret>,
    /// A secret that was shown and not confirmed yet.
    pub offered: Option<TotpSecret>,
    /// The last step whose code was used.
    pub last_step: i64,
    /// How many recovery codes are left.
    pub codes_left: u32,
}

/// A sign-in that lacks its second half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalfOpen {
    /// Who gave the right password.
    pub person: Person,
    /// Their secret.
    pub secret: TotpSecret,
    /// The last step whose code was used.
    pub last_step: i64,
}

/// What the second half of a sign-in is proved by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondProof {
    /// The code of a step.
    Step(i64),
    /// The fingerprint of a recovery code.
    Recovery(TokenHash),
}

/// The second factor of people, and sign-ins that wait for it.
#[async_trait]
pub trait SecondFactorStore: Send + Sync + 'static {
    /// Where a person stands.
    async fn find_second_factor(&self, person: PersonId) -> Result<SecondFactor, StoreError>;

    /// Keeps a secret until it is confirmed, in the place of an earlier one that was not. `false`: the person has a
    /// second factor already, or is gone.
    async fn offer_second_factor(
        &self,
        person: PersonId,
        secret: &TotpSecret,
    ) -> Result<bool, StoreError>;

    /// Makes what was offered the second factor, with these recovery codes; the code of `step` is used. `false`: nothing
    /// is offered.
    async fn enable_second_factor(
        &self,
        person: PersonId,
        step: i64,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError>;

    /// Puts new recovery codes in the place of all that are left. `false`: the person has no second factor.
    async fn replace_recovery_codes(
        &self,
        person: PersonId,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError>;

    /// Forgets the second factor and its recovery codes. `false`: there was none.
    async fn disable_second_factor(&self, person: PersonId) -> Result<bool, StoreError>;

    /// Keeps a sign-in half open under this fingerprint, after the password was right.
    async fn open_half(
        &self,
        person: PersonId,
        half: &TokenHash,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Takes one of `most` tries at the second half. `None`: unknown, expired, or its tries are used up.
    async fn try_half(
        &self,
        half: &TokenHash,
        most: u32,
        now: Timestamp,
    ) -> Result<Option<HalfOpen>, StoreError>;

    /// Uses the proof up and puts a session in the place of what was half open, and of `replaced`, in one step.
    /// `false`: the proof was used before, or what was half open is gone.
    async fn close_half(
        &self,
        half: &TokenHash,
        proof: SecondProof,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<bool, StoreError>;
}
