//! What people change about their own sign-in: password, second factor, sessions.

use std::sync::Arc;

use domain::person::{Password, Person, RECOVERY_CODES, RecoveryCode, SessionRecord, TotpSecret};
use domain::ports::{AttemptKey, IdentityStore, SecondFactor, StoreError};
use domain::{Clock, TokenHash};
use jiff::SignedDuration;

use crate::audit::{Action, Actor, Audit, RecordedChange};
use crate::entropy;
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::sign_in::{BY_PERSON, attempt_key};

/// Maximum number of sessions in a list.
const MAX_SESSIONS: u32 = 100;
/// How long after signing in, or after entering the password again, people may weaken an account.
const PROOF_LIFETIME: SignedDuration = SignedDuration::from_mins(5);

/// Recovery codes, to be shown once.
pub type RecoveryCodes = Vec<RecoveryCode>;

/// Why a change was refused.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    #[error("the password is wrong")]
    WrongPassword,
    /// The code is not the current one.
    #[error("the code is wrong")]
    WrongCode,
    /// The second factor was turned on or off, or is no longer offered.
    #[error("the second factor was changed in the meantime")]
    Changed,
    /// The person has no such session.
    #[error("the session is over")]
    NoSession,
    #[error("too many wrong tries")]
    TooMany {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    /// Too many password checks are waiting.
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What people change about their own sign-in.
pub struct OwnAccess {
    store: Arc<dyn IdentityStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
}

impl OwnAccess {
    pub fn new(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
        }
    }

    /// Changes a password; needs the old one. All other sessions of the person end, and with `ends_grants` their grants
    /// to clients are revoked.
    pub async fn change_password(
        &self,
        by: &Actor,
        person: &Person,
        old: Password,
        new: Password,
        session: &str,
        ends_grants: bool,
    ) -> Result<(), OwnError> {
        self.begin_attempt(person).await?;
        let recorded = self.record(by, person, Action::PersonPassword).await?;
        let changed = async {
            self.check_password(person, old).await?;
            let new = self.hasher.hash(new).await?;
            let current = TokenHash::from_secret(session);
            let grants_end = ends_grants.then(|| self.clock.now());
            let is_set = self
                .store
                .set_password(person.id, &new, &current, grants_end)
                .await?;
            is_set.then_some(()).ok_or(OwnError::WrongPassword)
        };
        recorded.done(changed.await).await
    }

    /// Whether the person signed in or entered the password again in this session within the last minutes.
    pub async fn is_proved(&self, session: &str) -> Result<bool, StoreError> {
        let (session, now) = (TokenHash::from_secret(session), self.clock.now());
        let proved = self.store.find_proof(&session, now).await?;
        Ok(proved.is_some_and(|at| now.duration_since(at) < PROOF_LIFETIME))
    }

    /// Checks the password again, before a change that weakens an account.
    pub async fn prove(
        &self,
        person: &Person,
        password: Password,
        session: &str,
    ) -> Result<(), OwnError> {
        self.begin_attempt(person).await?;
        self.check_password(person, password).await?;
        let session = TokenHash::from_secret(session);
        Ok(self.store.set_proof(&session, self.clock.now()).await?)
    }

    /// The state of a person's second factor.
    pub async fn second_factor(&self, person: &Person) -> Result<SecondFactor, StoreError> {
        self.store.find_second_factor(person.id).await
    }

    /// Creates a secret for a device. It takes effect once a code proves that the device has it.
    pub async fn offer(&self, person: &Person) -> Result<TotpSecret, OwnError> {
        let secret = TotpSecret::new(entropy::bytes());
        let offered = self.store.offer_second_factor(person.id, &secret).await?;
        offered.then_some(secret).ok_or(OwnError::Changed)
    }

    /// Turns the second factor on; needs the password and a code of the offered secret.
    pub async fn enable(
        &self,
        by: &Actor,
        person: &Person,
        password: Password,
        typed: &str,
    ) -> Result<RecoveryCodes, OwnError> {
        self.begin_attempt(person).await?;
        let recorded = self.record(by, person, Action::SecondFactorEnable).await?;
        let enabled = async {
            self.check_password(person, password).await?;
            let factor = self.store.find_second_factor(person.id).await?;
            let offered = factor.offered.ok_or(OwnError::Changed)?;
            let now = self.clock.now();
            let step = offered.find_step(typed, now, 0);
            let step = step.ok_or(OwnError::WrongCode)?;
            let codes = new_codes();
            let stored = hashes(&codes);
            let enabled = self.store.enable_second_factor(person.id, step, &stored);
            enabled.await?.then_some(codes).ok_or(OwnError::Changed)
        };
        recorded.done(enabled.await).await
    }

    /// Turns the second factor off; needs the password.
    pub async fn disable(
        &self,
        by: &Actor,
        person: &Person,
        password: Password,
    ) -> Result<(), OwnError> {
        self.begin_attempt(person).await?;
        let recorded = self.record(by, person, Action::SecondFactorDisable).await?;
        let disabled = async {
            self.check_password(person, password).await?;
            let disabled = self.store.disable_second_factor(person.id).await?;
            disabled.then_some(()).ok_or(OwnError::Changed)
        };
        recorded.done(disabled.await).await
    }

    /// Replaces all recovery codes; needs the password.
    pub async fn renew_codes(
        &self,
        by: &Actor,
        person: &Person,
        password: Password,
    ) -> Result<RecoveryCodes, OwnError> {
        self.begin_attempt(person).await?;
        let recorded = self.record(by, person, Action::SecondFactorCodes).await?;
        let renewed = async {
            self.check_password(person, password).await?;
            let codes = new_codes();
            let stored = hashes(&codes);
            let replaced = self
                .store
                .replace_recovery_codes(person.id, &stored)
                .await?;
            replaced.then_some(codes).ok_or(OwnError::Changed)
        };
        recorded.done(renewed.await).await
    }

    /// The sessions of a person, last used first.
    pub async fn sessions(&self, person: &Person) -> Result<Vec<SessionRecord>, StoreError> {
        let now = self.clock.now();
        self.store.list_sessions(person.id, MAX_SESSIONS, now).await
    }

    pub async fn end_session(
        &self,
        by: &Actor,
        person: &Person,
        name: &str,
    ) -> Result<(), OwnError> {
        let sessions = self.sessions(person).await?;
        let session = sessions.into_iter().find(|session| session.name() == name);
        let session = session.ok_or(OwnError::NoSession)?;
        let recorded = self.record(by, person, Action::SessionEnd).await?;
        let ended = self.store.end_session(&session.hash).await;
        Ok(recorded.done(ended).await?)
    }

    /// Ends all sessions of a person, including this one, and returns how many there were.
    pub async fn end_sessions(&self, by: &Actor, person: &Person) -> Result<u64, StoreError> {
        let recorded = self.record(by, person, Action::SessionEndAll).await?;
        let ended = self.store.end_sessions(person.id).await;
        recorded.done(ended).await
    }

    /// Limits attempts, so that an open session cannot be used to guess the password.
    async fn begin_attempt(&self, person: &Person) -> Result<(), OwnError> {
        let keys = [own_attempts(person)];
        let begun = self.store.count_attempt(&keys, self.clock.now()).await?;
        begun.map_err(|retry_after_s| OwnError::TooMany { retry_after_s })
    }

    async fn check_password(&self, person: &Person, password: Password) -> Result<(), OwnError> {
        let stored = self.store.find_credentials(&person.email).await?;
        let stored = stored.map(|known| known.password);
        if !self.hasher.verify(password, stored).await? {
            return Err(OwnError::WrongPassword);
        }
        self.store.uncount_attempt(&[own_attempts(person)]).await?;
        Ok(())
    }

    async fn record(
        &self,
        by: &Actor,
        person: &Person,
        action: Action,
    ) -> Result<RecordedChange<'_>, StoreError> {
        self.audit
            .record(by, person.account, action, &person.email, "their own")
            .await
    }
}

/// The key that attempts of a signed-in person count against.
fn own_attempts(person: &Person) -> AttemptKey {
    let id = person.id.to_string();
    (attempt_key("password of", &id), BY_PERSON)
}

fn new_codes() -> RecoveryCodes {
    let code = |_| RecoveryCode::new(&entropy::bytes());
    (0..RECOVERY_CODES).map(code).collect()
}

fn hashes(codes: &RecoveryCodes) -> Vec<TokenHash> {
    codes.iter().map(RecoveryCode::hash).collect()
}
