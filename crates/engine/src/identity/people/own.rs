//! What people decide about their own ways in: password, second factor, sessions.

use std::sync::Arc;

use domain::person::{Password, Person, RECOVERY_CODES, RecoveryCode, SessionRecord, TotpSecret};
use domain::ports::{SecondFactor, Store, StoreError, TryKey};
use domain::{Clock, TokenHash};

use crate::audit::{Action, Audit, By, Noted};
use crate::entropy;
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::sign_in::{BY_PERSON, counted_by};

/// Sessions that are shown at once.
const MAX_SESSIONS: u32 = 100;

/// Recovery codes, to be shown once.
pub type RecoveryCodes = Vec<RecoveryCode>;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The password is not theirs.
    #[error("the password is wrong")]
    WrongPassword,
    /// Not the code of this moment.
    #[error("the code is wrong")]
    WrongCode,
    /// The second factor is not as whoever asks believes: on, off, or not offered any more.
    #[error("the second factor was changed in the meantime")]
    Changed,
    /// There is no such session of theirs.
    #[error("the session is over")]
    NoSession,
    /// Too many tries.
    #[error("too many wrong tries")]
    TooMany {
        /// When to try again.
        retry_after_s: u32,
    },
    /// Too many passwords wait to be looked at.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What people decide about their own ways in.
pub struct OwnAccess {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
}

impl OwnAccess {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
        }
    }

    /// Changes the password of whoever knows the old one. Every other session of theirs ends; with `ends_grants` also
    /// what they granted to clients.
    pub async fn change_password(
        &self,
        by: &By,
        person: &Person,
        old: Password,
        new: Password,
        session: &str,
        ends_grants: bool,
    ) -> Result<(), OwnError> {
        self.begin_try(person).await?;
        let noted = self.note(by, person, Action::PersonPassword).await?;
        let changed = async {
            self.prove(person, old).await?;
            let new = self.hasher.hash(new).await?;
            let kept = TokenHash::of(session);
            let grants_end = ends_grants.then(|| self.clock.now());
            let is_set = self
                .store
                .set_password(person.id, &new, &kept, grants_end)
                .await?;
            is_set.then_some(()).ok_or(OwnError::WrongPassword)
        };
        noted.done(changed.await).await
    }

    /// Where a person stands with their second factor.
    pub async fn second_factor(&self, person: &Person) -> Result<SecondFactor, StoreError> {
        self.store.find_second_factor(person.id).await
    }

    /// Makes a secret for a device. It counts once a code proves that the device has it.
    pub async fn offer(&self, person: &Person) -> Result<TotpSecret, OwnError> {
        let secret = TotpSecret::new(entropy::bytes());
        let offered = self.store.offer_second_factor(person.id, &secret).await?;
        offered.then_some(secret).ok_or(OwnError::Changed)
    }

    /// Turns the second factor on, for whoever knows the password and types a code of the secret that was offered.
    pub async fn enable(
        &self,
        by: &By,
        person: &Person,
        password: Password,
        typed: &str,
    ) -> Result<RecoveryCodes, OwnError> {
        self.begin_try(person).await?;
        let noted = self.note(by, person, Action::SecondFactorEnable).await?;
        let enabled = async {
            self.prove(person, password).await?;
            let factor = self.store.find_second_factor(person.id).await?;
            let offered = factor.offered.ok_or(OwnError::Changed)?;
            let now = self.clock.now();
            let step = offered.find_step(typed, now, 0);
            let step = step.ok_or(OwnError::WrongCode)?;
            let codes = new_codes();
            let kept = hashes(&codes);
            let enabled = self.store.enable_second_factor(person.id, step, &kept);
            enabled.await?.then_some(codes).ok_or(OwnError::Changed)
        };
        noted.done(enabled.await).await
    }

    /// Turns the second factor off, for whoever knows the password.
    pub async fn disable(
        &self,
        by: &By,
        person: &Person,
        password: Password,
    ) -> Result<(), OwnError> {
        self.begin_try(person).await?;
        let noted = self.note(by, person, Action::SecondFactorDisable).await?;
        let disabled = async {
            self.prove(person, password).await?;
            let disabled = self.store.disable_second_factor(person.id).await?;
            disabled.then_some(()).ok_or(OwnError::Changed)
        };
        noted.done(disabled.await).await
    }

    /// Makes new recovery codes in the place of all that are left, for whoever knows the password.
    pub async fn renew_codes(
        &self,
        by: &By,
        person: &Person,
        password: Password,
    ) -> Result<RecoveryCodes, OwnError> {
        self.begin_try(person).await?;
        let noted = self.note(by, person, Action::SecondFactorCodes).await?;
        let renewed = async {
            self.prove(person, password).await?;
            let codes = new_codes();
            let kept = hashes(&codes);
            let replaced = self.store.replace_recovery_codes(person.id, &kept).await?;
            replaced.then_some(codes).ok_or(OwnError::Changed)
        };
        noted.done(renewed.await).await
    }

    /// Where a person is signed in, the place that was used last first.
    pub async fn sessions(&self, person: &Person) -> Result<Vec<SessionRecord>, StoreError> {
        let now = self.clock.now();
        self.store.list_sessions(person.id, MAX_SESSIONS, now).await
    }

    /// Ends one session of a person, by its name.
    pub async fn end_session(&self, by: &By, person: &Person, name: &str) -> Result<(), OwnError> {
        let sessions = self.sessions(person).await?;
        let session = sessions.into_iter().find(|session| session.name() == name);
        let session = session.ok_or(OwnError::NoSession)?;
        let noted = self.note(by, person, Action::SessionEnd).await?;
        let ended = self.store.end_session(&session.hash).await;
        Ok(noted.done(ended).await?)
    }

    /// Ends every session of a person, this one too, and says how many there were.
    pub async fn end_sessions(&self, by: &By, person: &Person) -> Result<u64, StoreError> {
        let noted = self.note(by, person, Action::SessionEndAll).await?;
        let ended = self.store.end_sessions(person.id).await;
        noted.done(ended).await
    }

    /// A session that somebody left open must not serve to find out its person's password.
    async fn begin_try(&self, person: &Person) -> Result<(), OwnError> {
        let keys = [own_tries(person)];
        let begun = self.store.begin_try(&keys, self.clock.now()).await?;
        begun.map_err(|retry_after_s| OwnError::TooMany { retry_after_s })
    }

    async fn prove(&self, person: &Person, password: Password) -> Result<(), OwnError> {
        let kept = self.store.find_credentials(&person.email).await?;
        let kept = kept.map(|known| known.password);
        if !self.hasher.verify(password, kept).await? {
            return Err(OwnError::WrongPassword);
        }
        self.store.forgive_try(&[own_tries(person)]).await?;
        Ok(())
    }

    async fn note(
        &self,
        by: &By,
        person: &Person,
        action: Action,
    ) -> Result<Noted<'_>, StoreError> {
        self.audit
            .note(by, person.account, action, &person.email, "their own")
            .await
    }
}

/// What tries of somebody who is signed in count against.
fn own_tries(person: &Person) -> TryKey {
    let id = person.id.to_string();
    (counted_by("password of", &id), BY_PERSON)
}

fn new_codes() -> RecoveryCodes {
    let code = |_| RecoveryCode::new(&entropy::bytes());
    (0..RECOVERY_CODES).map(code).collect()
}

fn hashes(codes: &RecoveryCodes) -> Vec<TokenHash> {
    codes.iter().map(RecoveryCode::hash).collect()
}
