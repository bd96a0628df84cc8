//! People: invitations, password resets, and the account that an invitation leads to.

mod mail;
mod manage;
mod own;

use std::sync::Arc;

use domain::person::{Device, Email, Password, Role};
use domain::ports::{IdentityStore, Invitation, Joining, NewPerson, Purpose, StoreError};
use domain::{AccountId, Clock, Person, Timestamp, TokenHash};
use jiff::SignedDuration;

use crate::audit::{Action, Actor, Audit, RecordedChange};
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::sign_in::{PENDING_SIGN_IN_LIFETIME, SignInStep, new_session, secret};

pub use mail::{LinkKind, send_link};
pub use manage::{ManageError, PeopleScope};
pub use own::{OwnAccess, OwnError, RecoveryCodes};

const INVITATION_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Short, because everyone who finds the link can sign in with it.
const RESET_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// Why a person was not invited.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// They belong to the account already, or the invitation is for an operator and they can sign in already.
    #[error("{} can sign in already, as {}", .0.email, .0.role)]
    Known(Person),
    /// Only an operator may be without an account.
    #[error("an admin or a member needs an account")]
    NoAccount,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a password was not set.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("the link does not work any more")]
    Link,
    /// Another person signs in with this address.
    #[error("somebody signs in with this address already")]
    Taken,
    /// Too many passwords wait to be hashed.
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new link. It is returned here and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Invited {
    pub link: String,
    pub expires: Timestamp,
}

/// Invites people, lets them set passwords, and manages their roles.
pub struct People {
    store: Arc<dyn IdentityStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
}

impl People {
    pub fn new(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
        }
    }

    /// Invites a person. An older invitation of the same address to the same account becomes invalid. A person who can
    /// already sign in gets a further account; the inviter does not learn that.
    pub async fn invite(
        &self,
        by: &Actor,
        email: Email,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Invited, InviteError> {
        if account.is_none() && role != Role::Operator {
            return Err(InviteError::NoAccount);
        }
        if let Some(credentials) = self.store.find_credentials(&email).await? {
            let person = credentials.person;
            let member = match account.filter(|_| role != Role::Operator) {
                Some(account) => self.find_in(&person, account).await?,
                None => Some(person),
            };
            if let Some(member) = member {
                return Err(InviteError::Known(member));
            }
        }
        let (action, detail) = (Action::PersonInvite, format!("as {role}"));
        let recorded = self
            .audit
            .record(by, account, action, &email, detail)
            .await?;
        let purpose = Purpose::Join { role, account };
        let link = self.create_link(email, purpose).await;
        Ok(recorded.done(link).await?)
    }

    /// The person who signs in with this address.
    pub async fn find(&self, email: &Email) -> Result<Option<Person>, StoreError> {
        let credentials = self.store.find_credentials(email).await?;
        Ok(credentials.map(|credentials| credentials.person))
    }

    /// A person with their role in one account; `None` if they do not belong to it.
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

    /// Creates a password reset link.
    pub async fn invite_again(&self, by: &Actor, person: &Person) -> Result<Invited, StoreError> {
        let (account, email) = (person.account, &person.email);
        let recorded = self
            .audit
            .record(by, account, Action::PersonReset, email, "")
            .await?;
        let purpose = Purpose::NewPassword(person.id);
        let link = self.create_link(email.clone(), purpose).await;
        recorded.done(link).await
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
            .create_invitation(&invitation, &TokenHash::from_secret(&link), expires)
            .await?;
        Ok(Invited { link, expires })
    }

    /// The invitation of a link; `None` if the link is not valid.
    pub async fn find_invitation(&self, link: &str) -> Result<Option<Invitation>, StoreError> {
        self.store
            .find_invitation(&TokenHash::from_secret(link), self.clock.now())
            .await
    }

    /// Redeems a link: sets the password and signs the person in, or begins to if there is a second factor. With
    /// `ends_grants`, the person's grants to clients are revoked.
    pub async fn accept(
        &self,
        device: &Device,
        link: &str,
        password: Password,
        ends_grants: bool,
    ) -> Result<SignInStep, PasswordError> {
        let link = TokenHash::from_secret(link);
        // Hashing is expensive, so the link is checked first.
        let now = self.clock.now();
        let invitation = self.store.find_invitation(&link, now).await?;
        let invitation = invitation.ok_or(PasswordError::Link)?;
        if matches!(invitation.purpose, Purpose::Join { .. }) {
            let credentials = self.store.find_credentials(&invitation.email).await?;
            if credentials.is_some() {
                return Err(PasswordError::Taken);
            }
        }
        let password = self.hasher.hash(password).await?;
        let now = self.clock.now();
        let (secret, session) = new_session(now, device);
        let recorded = self
            .record_accepted(device, &invitation, ends_grants)
            .await?;
        let pending_expires = now + PENDING_SIGN_IN_LIFETIME;
        let redeemed =
            self.store
                .redeem_invitation(&link, &password, &session, pending_expires, ends_grants);
        let entered = match redeemed.await {
            Ok(Some(redeemed)) if redeemed.needs_second_factor => {
                Ok(SignInStep::PendingSignIn(secret))
            }
            Ok(Some(_)) => Ok(SignInStep::Session(secret)),
            Ok(None) => Err(PasswordError::Link),
            Err(error) => Err(error.into()),
        };
        recorded.done(entered).await
    }

    /// Accepts an invitation for a signed-in person: the account becomes one of theirs, and they see it next. Returns
    /// the new secret of their session.
    pub async fn join(
        &self,
        device: &Device,
        link: &str,
        person: &Person,
        session: &str,
    ) -> Result<String, PasswordError> {
        let (link, now) = (TokenHash::from_secret(link), self.clock.now());
        let invitation = self.store.find_invitation(&link, now).await?;
        let invitation = invitation.filter(|found| found.email == person.email);
        let invitation = invitation.ok_or(PasswordError::Link)?;
        let recorded = self.record_accepted(device, &invitation, false).await?;
        let renewed = secret();
        let joining = Joining {
            link,
            person: person.id,
            session: TokenHash::from_secret(session),
            renewed: TokenHash::from_secret(&renewed),
            now,
        };
        let joined = match self.store.join_account(&joining).await {
            Ok(true) => Ok(renewed),
            Ok(false) => Err(PasswordError::Link),
            Err(error) => Err(error.into()),
        };
        recorded.done(joined).await
    }

    async fn record_accepted(
        &self,
        device: &Device,
        invitation: &Invitation,
        ends_grants: bool,
    ) -> Result<RecordedChange<'_>, StoreError> {
        let email = &invitation.email;
        let by = Actor {
            who: email.to_string(),
            address: device.address,
        };
        let (account, action, detail) = match invitation.purpose {
            Purpose::Join { role, account } => (account, Action::PersonJoin, format!("as {role}")),
            Purpose::NewPassword(_) => {
                let credentials = self.store.find_credentials(email).await?;
                let account = credentials.and_then(|credentials| credentials.person.account);
                let detail = if ends_grants {
                    "by a link; the clients that they connected are disconnected"
                } else {
                    "by a link"
                };
                (account, Action::PersonPassword, detail.to_owned())
            }
        };
        self.audit.record(&by, account, action, email, detail).await
    }

    /// Gives the operator, who came by the link of the first start, an email address and a password. Returns the secret
    /// of a new session, which replaces the old one.
    pub async fn create_operator(
        &self,
        by: &Actor,
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
        let recorded = self
            .audit
            .record(by, Some(account), action, &person.email, detail)
            .await?;
        let replaced = TokenHash::from_secret(replaced);
        let created = match self.store.create_person(&person, &new, &replaced).await {
            Ok(Some(_)) => Ok(secret),
            Ok(None) => Err(PasswordError::Taken),
            Err(error) => Err(error.into()),
        };
        recorded.done(created).await
    }
}
