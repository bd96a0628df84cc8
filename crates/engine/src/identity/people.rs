//! People: who is invited, and how they come to have a password.

mod others;
mod own;

use std::sync::Arc;

use domain::person::{Device, Email, Password, Role};
use domain::ports::{Invitation, Joining, NewPerson, Purpose, Store, StoreError};
use domain::{AccountId, Clock, Person, Timestamp, TokenHash};
use jiff::SignedDuration;

use crate::audit::{Action, Audit, By, Noted};
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::sign_in::{Entered, HALF_LIFETIME, new_session, secret};

pub use others::{ManageError, Reach};
pub use own::{OwnAccess, OwnError, RecoveryCodes};

/// How long an invitation may wait to be accepted.
const INVITATION_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long a link for a new password works: whoever finds it is in.
const RESET_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// Why somebody was not invited.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// They belong to the account already, or would have to become an operator, which is no invitation's business.
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
    /// Somebody signs in with this address already.
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

/// Invites people, gives them passwords, and changes what they may do.
pub struct People {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
}

impl People {
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

    /// Invites somebody. An older invitation for the same address and account stops working. A person who can sign in
    /// already gets a further account; the inviter is not told that they can.
    pub async fn invite(
        &self,
        by: &By,
        email: Email,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Invited, InviteError> {
        if account.is_none() && role != Role::Operator {
            return Err(InviteError::NoAccount);
        }
        if let Some(known) = self.store.find_credentials(&email).await? {
            let person = known.person;
            let there = match account.filter(|_| role != Role::Operator) {
                Some(account) => self.find_in(&person, account).await?,
                None => Some(person),
            };
            if let Some(there) = there {
                return Err(InviteError::Known(there));
            }
        }
        let (action, detail) = (Action::PersonInvite, format!("as {role}"));
        let noted = self.audit.note(by, account, action, &email, detail).await?;
        let purpose = Purpose::Join { role, account };
        let link = self.create_link(email, purpose).await;
        Ok(noted.done(link).await?)
    }

    /// Who signs in with this address.
    pub async fn find(&self, email: &Email) -> Result<Option<Person>, StoreError> {
        let known = self.store.find_credentials(email).await?;
        Ok(known.map(|known| known.person))
    }

    /// A person with their role in one account; `None` when they do not belong to it.
    async fn find_in(
        &self,
        person: &Person,
        account: AccountId,
    ) -> Result<Option<Person>, StoreError> {
        if person.account == Some(account) {
            return Ok(Some(person.clone()));
        }
        let further = self.store.list_memberships(person.id, person.id).await?;
        let found = further.iter().find(|further| further.account == account);
        Ok(found.map(|further| person.clone().with_membership(further)))
    }

    /// Makes a link by which a person sets a new password.
    pub async fn invite_again(&self, by: &By, person: &Person) -> Result<Invited, StoreError> {
        let (account, email) = (person.account, &person.email);
        let noted = self
            .audit
            .note(by, account, Action::PersonReset, email, "")
            .await?;
        let purpose = Purpose::NewPassword(person.id);
        let link = self.create_link(email.clone(), purpose).await;
        noted.done(link).await
    }

    async fn create_link(&self, email: Email, purpose: Purpose) -> Result<Invited, StoreError> {
        let link = secret();
        let lifetime = match purpose {
            Purpose::Join { .. } => INVITATION_LIFETIME,
            Purpose::NewPassword(_) => RESET_LIFETIME,
        };
        let expires = self.clock.now() + lifetime;
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

    /// Uses a link up, sets the password and signs in, or begins to, where there is a second factor. With `ends_grants`,
    /// clients that the person allowed to act for an account can no longer do so.
    pub async fn accept(
        &self,
        device: &Device,
        link: &str,
        password: Password,
        ends_grants: bool,
    ) -> Result<Entered, PasswordError> {
        let link = TokenHash::of(link);
        // Hashing is dear, so not for links that somebody made up.
        let now = self.clock.now();
        let invitation = self.store.find_invitation(&link, now).await?;
        let invitation = invitation.ok_or(PasswordError::Link)?;
        if matches!(invitation.purpose, Purpose::Join { .. }) {
            let known = self.store.find_credentials(&invitation.email).await?;
            if known.is_some() {
                return Err(PasswordError::Taken);
            }
        }
        let password = self.hasher.hash(password).await?;
        let now = self.clock.now();
        let (secret, session) = new_session(now, device);
        let noted = self.note_accepted(device, &invitation, ends_grants).await?;
        let half_expires = now + HALF_LIFETIME;
        let redeemed =
            self.store
                .redeem_invitation(&link, &password, &session, half_expires, ends_grants);
        let entered = match redeemed.await {
            Ok(Some(redeemed)) if redeemed.is_half_open => Ok(Entered::HalfOpen(secret)),
            Ok(Some(_)) => Ok(Entered::Session(secret)),
            Ok(None) => Err(PasswordError::Link),
            Err(error) => Err(error.into()),
        };
        noted.done(entered).await
    }

    /// Accepts an invitation for somebody who is signed in: its account becomes one of theirs, and they see it next. The
    /// answer is the secret under which their session goes on.
    pub async fn join(
        &self,
        device: &Device,
        link: &str,
        person: &Person,
        session: &str,
    ) -> Result<String, PasswordError> {
        let (link, now) = (TokenHash::of(link), self.clock.now());
        let invitation = self.store.find_invitation(&link, now).await?;
        let invitation = invitation.filter(|found| found.email == person.email);
        let invitation = invitation.ok_or(PasswordError::Link)?;
        let noted = self.note_accepted(device, &invitation, false).await?;
        let renewed = secret();
        let joining = Joining {
            link,
            person: person.id,
            session: TokenHash::of(session),
            renewed: TokenHash::of(&renewed),
            now,
        };
        let joined = match self.store.join_account(&joining).await {
            Ok(true) => Ok(renewed),
            Ok(false) => Err(PasswordError::Link),
            Err(error) => Err(error.into()),
        };
        noted.done(joined).await
    }

    async fn note_accepted(
        &self,
        device: &Device,
        invitation: &Invitation,
        ends_grants: bool,
    ) -> Result<Noted<'_>, StoreError> {
        let email = &invitation.email;
        let by = By {
            who: email.to_string(),
            address: device.address,
        };
        let (account, action, detail) = match invitation.purpose {
            Purpose::Join { role, account } => (account, Action::PersonJoin, format!("as {role}")),
            Purpose::NewPassword(_) => {
                let known = self.store.find_credentials(email).await?;
                let account = known.and_then(|known| known.person.account);
                let detail = if ends_grants {
                    "by a link; the clients that they connected are disconnected"
                } else {
                    "by a link"
                };
                (account, Action::PersonPassword, detail.to_owned())
            }
        };
        self.audit.note(&by, account, action, email, detail).await
    }

    /// Gives the operator, who came by the link of the first start, an address and a password. The answer is the secret of
    /// a new session, which takes the place of the old one.
    pub async fn create_operator(
        &self,
        by: &By,
        account: AccountId,
        email: Email,
        password: Password,
        session: (&str, &Device),
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
        let (replaced, device) = session;
        let (secret, new) = new_session(now, device);
        let (action, detail) = (Action::PersonJoin, "as operator");
        let noted = self
            .audit
            .note(by, Some(account), action, &person.email, detail)
            .await?;
        let replaced = TokenHash::of(replaced);
        let created = match self.store.create_person(&person, &new, &replaced).await {
            Ok(Some(_)) => Ok(secret),
            Ok(None) => Err(PasswordError::Taken),
            Err(error) => Err(error.into()),
        };
        noted.done(created).await
    }
}
