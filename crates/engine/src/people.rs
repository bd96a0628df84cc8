//! People: who is invited, and how they come to have a password.

mod hasher;
mod tries;

use std::sync::Arc;

use domain::person::{Email, Password, Role};
use domain::ports::{Invitation, NewPerson, Purpose, Store, StoreError};
use domain::{AccountId, Clock, Person, Timestamp, TokenHash};
use jiff::SignedDuration;

use crate::sign_in::{new_session, secret};

pub use hasher::{Busy, Hasher};
pub(crate) use tries::Tries;

/// How long an invitation may wait to be accepted.
const INVITATION_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Why somebody was not invited.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// They can sign in already.
    #[error("{} can sign in already, as {}", .0.email, .0.role)]
    Known(Person),
    /// Only an operator may be without an account.
    #[error("an admin or a member needs an account")]
    NoAccount,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a password was not set.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The link is unknown, used or expired.
    #[error("the link does not work any more")]
    Link,
    /// Somebody else signs in with this address.
    #[error("somebody signs in with this address already")]
    Taken,
    /// Too many passwords wait to be hashed.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A link that was made. It is in here and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Invited {
    /// The link's secret.
    pub link: String,
    /// Until when it may be used.
    pub expires: Timestamp,
}

/// Invites people and gives them passwords.
pub struct People {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    hasher: Arc<Hasher>,
}

impl People {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        Self {
            store,
            clock,
            hasher,
        }
    }

    /// Invites somebody. An older invitation for the same address no longer works.
    pub async fn invite(
        &self,
        email: Email,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Invited, InviteError> {
        if let Some(known) = self.store.find_credentials(&email).await? {
            return Err(InviteError::Known(known.person));
        }
        if account.is_none() && role != Role::Operator {
            return Err(InviteError::NoAccount);
        }
        let purpose = Purpose::Join { role, account };
        Ok(self.create_link(email, purpose).await?)
    }

    /// Makes a link by which a person sets a new password.
    pub async fn invite_again(&self, person: &Person) -> Result<Invited, StoreError> {
        let purpose = Purpose::NewPassword(person.id);
        self.create_link(person.email.clone(), purpose).await
    }

    async fn create_link(&self, email: Email, purpose: Purpose) -> Result<Invited, StoreError> {
        let link = secret();
        let expires = self.clock.now() + INVITATION_LIFETIME;
        let invitation = Invitation { email, purpose };
        self.store
            .create_invitation(&invitation, &TokenHash::of(&link), expires)
            .await?;
        Ok(Invited { link, expires })
    }

    /// What a link is for; `None` when it does not work.
    pub async fn find_invitation(&self, link: &str) -> Result<Option<Invitation>, StoreError> {
        self.store
            .find_invitation(&TokenHash::of(link), self.clock.now())
            .await
    }

    /// Uses a link up, sets the password and signs in. The answer is the session's secret.
    pub async fn accept(&self, link: &str, password: Password) -> Result<String, PasswordError> {
        let link = TokenHash::of(link);
        // Hashing is dear, so not for links that somebody made up.
        let now = self.clock.now();
        if self.store.find_invitation(&link, now).await?.is_none() {
            return Err(PasswordError::Link);
        }
        let password = self.hasher.hash(password).await?;
        let now = self.clock.now();
        let (secret, session) = new_session(now);
        let accepted = self
            .store
            .redeem_invitation(&link, &password, &session, now)
            .await?;
        accepted.map(|_| secret).ok_or(PasswordError::Link)
    }

    /// Gives the operator, who came by the link of the first start, an address and a password. The answer is the secret of
    /// a new session, which takes the place of the old one.
    pub async fn create_operator(
        &self,
        account: AccountId,
        email: Email,
        password: Password,
        session: &str,
    ) -> Result<String, PasswordError> {
        let password = self.hasher.hash(password).await?;
        let now = self.clock.now();
        let person = NewPerson {
            email,
            role: Role::Operator,
            account: Some(account),
            password,
            created_at: now,
        };
        let (secret, new) = new_session(now);
        let created = self
            .store
            .create_person(&person, &new, &TokenHash::of(session))
            .await?;
        created.map(|_| secret).ok_or(PasswordError::Taken)
    }
}
