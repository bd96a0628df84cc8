//! People and their invitations.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{NewSession, StoreError};
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Email, PasswordHash, Person, Role};

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

/// A person, as lists show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRecord {
    /// Who. In a list of an account's people: what they may do there.
    pub person: Person,
    /// When they came to be one.
    pub created_at: Timestamp,
    /// When they were last here, to within some minutes.
    pub seen_at: Option<Timestamp>,
    /// Whether they have a second factor.
    pub has_second_factor: bool,
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

/// An invitation, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRecord {
    /// Who is invited, and what for.
    pub invitation: Invitation,
    /// The account that it is about: that of the invitation, or of whom it gives a new password.
    pub account: Option<AccountId>,
    /// Until when it may be used.
    pub expires: Timestamp,
}

/// What accepting an invitation led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redeemed {
    /// Who accepted.
    pub person: PersonId,
    /// Whether a second factor is asked for: then no session is open, but a sign-in is half open in its place.
    pub is_half_open: bool,
}

/// What a person proves who they are with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Who.
    pub person: Person,
    /// What is kept of their password.
    pub password: PasswordHash,
    /// Whether the password is only half of it.
    pub has_second_factor: bool,
}

/// What became of a change to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonChanged {
    /// It is done.
    Done,
    /// There is no such person.
    Unknown,
    /// Nobody would be left to run the service.
    LastOperator,
}

/// People and their invitations. Of every link only the fingerprint is kept.
#[async_trait]
pub trait PeopleStore: Send + Sync + 'static {
    /// Keeps an invitation, in the place of an older one for the same address and account; a link for a new password, in
    /// the place of an older one for the same person.
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

    /// The first invitations that can still be used, by address: those about an account, or all.
    async fn list_invitations(
        &self,
        account: Option<AccountId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<InvitationRecord>, StoreError>;

    /// Takes all invitations for an address back, or those about one account; `false` when there is none.
    async fn withdraw_invitations(
        &self,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError>;

    /// Uses up an invitation, sets the password and opens a session, in one step; for whoever has a second factor the
    /// sign-in is half open instead, until `half_expires`. With `ends_grants`, what the person granted to clients ends.
    /// `None`: the link is unknown, used or expired, or its address has come to belong to somebody in the meantime.
    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        half_expires: Timestamp,
        ends_grants: bool,
    ) -> Result<Option<Redeemed>, StoreError>;

    /// Creates a person and puts a session of theirs in the place of `replaced`; `None` when the address is taken.
    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError>;

    /// The person of this address, and what is kept of their password.
    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError>;

    /// The person of this ID.
    async fn find_person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError>;

    /// People of an account, or all, by ID: at most `limit` of those after `after`.
    async fn list_people(
        &self,
        account: Option<AccountId>,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError>;

    /// Changes what a person may do, and which account they see first. What they granted for an account that is no longer
    /// theirs ends.
    async fn set_role(
        &self,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;

    /// Removes a person, with their sessions and with links for them. What they granted to clients ends.
    async fn remove_person(
        &self,
        id: PersonId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;

    /// Sets a person's password and ends their sessions but for `kept`; with `grants_end`, what they granted to clients
    /// ends at that time. `false` when there is no such person.
    async fn set_password(
        &self,
        id: PersonId,
        password: &PasswordHash,
        kept: &TokenHash,
        grants_end: Option<Timestamp>,
    ) -> Result<bool, StoreError>;
}
