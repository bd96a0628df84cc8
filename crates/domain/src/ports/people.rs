//! People, their invitations and their sessions.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{AccountId, PersonId};
use crate::person::{Email, PasswordHash, Person, Role, SignedIn};
use crate::token::TokenHash;

/// A session to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// The secret's fingerprint.
    pub hash: TokenHash,
    /// Until when it lasts.
    pub expires: Timestamp,
}

/// A person to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPerson {
    /// What they sign in with.
    pub email: Email,
    /// What they may do.
    pub role: Role,
    /// The account that they see.
    pub account: Option<AccountId>,
    /// What is kept of their password.
    pub password: PasswordHash,
    /// Now.
    pub created_at: Timestamp,
}

/// What opening an invitation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Creates a person.
    Join {
        /// What they may do.
        role: Role,
        /// The account that they will see.
        account: Option<AccountId>,
    },
    /// Gives a person a new password, and ends their sessions.
    NewPassword(PersonId),
}

/// A link by which somebody sets a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Who is invited.
    pub email: Email,
    /// What for.
    pub purpose: Purpose,
}

/// What a person proves who they are with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Who.
    pub person: Person,
    /// What is kept of their password.
    pub password: PasswordHash,
}

/// People, their invitations and their sessions. Of every link and session only the fingerprint is kept.
#[async_trait]
pub trait PeopleStore: Send + Sync + 'static {
    /// Keeps an invitation, in the place of an older one for the same address.
    async fn create_invitation(
        &self,
        invitation: &Invitation,
        link: &TokenHash,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// The invitation of this link, unless it is used or expired.
    async fn find_invitation(
        &self,
        link: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError>;

    /// Uses up an invitation, sets the password and opens a session, in one step. `None`: the link is unknown, used or
    /// expired, or its address has come to belong to somebody in the meantime.
    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<Option<PersonId>, StoreError>;

    /// Creates a person and puts a session of theirs in the place of `replaced`; `None` when the address is taken.
    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError>;

    /// The person of this address, and what is kept of their password.
    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError>;

    /// Opens a session of a person, in the place of `replaced` where there was one.
    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Keeps a one-time sign-in link for an account.
    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// Uses up a sign-in link and opens a session in its place, in one step. `false`: unknown, used or expired.
    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Whose session this is, by what is true of them now.
    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<SignedIn>, StoreError>;

    /// Ends a session, if it exists.
    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError>;
}
