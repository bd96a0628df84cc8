//! People and their invitations.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{NewSession, StoreError};
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Email, PasswordHash, Person, Role};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPerson {
    pub email: Email,
    pub role: Role,
    pub account: Option<AccountId>,
    pub password: PasswordHash,
    pub created_at: Timestamp,
}

/// A person, as lists show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRecord {
    /// In a list of an account's people, with the role in that account.
    pub person: Person,
    pub created_at: Timestamp,
    /// Accurate to a few minutes.
    pub seen_at: Option<Timestamp>,
    pub has_second_factor: bool,
}

/// What an invitation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Join {
        role: Role,
        account: Option<AccountId>,
    },
    /// Gives a person a new password, and ends their sessions.
    NewPassword(PersonId),
}

/// A link by which somebody sets a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub email: Email,
    pub purpose: Purpose,
}

/// An invitation, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRecord {
    pub invitation: Invitation,
    /// The account of the invitation, or of the person who gets a new password.
    pub account: Option<AccountId>,
    pub expires: Timestamp,
}

/// The result of accepting an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redeemed {
    pub person: PersonId,
    /// Whether a second factor is required: then a pending sign-in was created instead of a session.
    pub needs_second_factor: bool,
}

/// What a person signs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub person: Person,
    pub password: PasswordHash,
    pub has_second_factor: bool,
}

/// The result of a change to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonChanged {
    Done,
    Unknown,
    /// The service would have no operator left.
    LastOperator,
}

/// People and their invitations. Only the hashes of links are stored.
#[async_trait]
pub trait PeopleStore: Send + Sync + 'static {
    /// Stores an invitation. It replaces an older one for the same address and account, and a password link replaces an
    /// older one for the same person.
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

    /// The first valid invitations, sorted by address: those for an account, or all.
    async fn list_invitations(
        &self,
        account: Option<AccountId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<InvitationRecord>, StoreError>;

    /// Withdraws all invitations for an address, or those for one account; `false` if there is none.
    async fn withdraw_invitations(
        &self,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError>;

    /// Uses up an invitation, sets the password and opens a session, in one step. For a person with a second factor it
    /// creates a pending sign-in until `pending_expires` instead. With `ends_grants`, the person's grants are revoked.
    /// `None` if the link is unknown, used or expired, or its address belongs to somebody else by now.
    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        pending_expires: Timestamp,
        ends_grants: bool,
    ) -> Result<Option<Redeemed>, StoreError>;

    /// Creates a person and replaces the session `replaced` by one of theirs; `None` if the address is taken.
    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError>;

    /// The person with this address, and their password hash.
    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError>;

    async fn find_person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError>;

    /// People of an account, or all, sorted by ID: at most `limit` of those after `after`.
    async fn list_people(
        &self,
        account: Option<AccountId>,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError>;

    /// Changes a person's role and first account. Their grants for an account that is no longer theirs are revoked.
    async fn set_role(
        &self,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;

    /// Removes a person with their sessions and links. Their grants are revoked.
    async fn remove_person(
        &self,
        id: PersonId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;

    /// Sets a person's password and ends their sessions except for `kept`; with `grants_end`, their grants are revoked
    /// at that time. `false` if there is no such person.
    async fn set_password(
        &self,
        id: PersonId,
        password: &PasswordHash,
        kept: &TokenHash,
        grants_end: Option<Timestamp>,
    ) -> Result<bool, StoreError>;
}
