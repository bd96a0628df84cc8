//! People who belong to several accounts.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PersonChanged, StoreError};
use crate::ids::{AccountId, PersonId};
use crate::person::Role;
use crate::token::TokenHash;

/// A further account of a person, besides the one that they see first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Who.
    pub person: PersonId,
    /// Which account.
    pub account: AccountId,
    /// What they may do there. An operator may do everything anywhere.
    pub role: Role,
    /// When they last worked with it, to within some minutes.
    pub seen_at: Option<Timestamp>,
}

/// An invitation that is accepted by somebody who is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// The fingerprint of the link.
    pub link: TokenHash,
    /// Who accepts it.
    pub person: PersonId,
    /// The fingerprint of their session.
    pub session: TokenHash,
    /// The fingerprint under which the session goes on.
    pub renewed: TokenHash,
    /// Now.
    pub now: Timestamp,
}

/// Further accounts of people.
#[async_trait]
pub trait MembershipStore: Send + Sync + 'static {
    /// The further accounts of people from `first` to `last`, by ID.
    async fn list_memberships(
        &self,
        first: PersonId,
        last: PersonId,
    ) -> Result<Vec<Membership>, StoreError>;

    /// Uses up an invitation: its account becomes one of the person's, and their session goes on there. Links that would
    /// give them a new password work no longer: whoever made one may have nothing to do with this account. `false`: the
    /// link is unknown, used or expired, or for somebody else.
    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError>;

    /// Has a session go on with another account of its person, under the fingerprint `renewed`, so that forms of pages
    /// that show the former account do nothing. `false`: the account is none of theirs, or the session is over.
    async fn switch_account(
        &self,
        session: &TokenHash,
        renewed: &TokenHash,
        account: AccountId,
    ) -> Result<bool, StoreError>;

    /// Changes what a person may do in one of their accounts. An operator stays one.
    async fn set_role_in(
        &self,
        person: PersonId,
        account: AccountId,
        role: Role,
    ) -> Result<PersonChanged, StoreError>;

    /// Takes an account away from a person, with their sessions there and what they granted to clients for it. Whoever has
    /// no other account, and is no operator, is removed.
    async fn leave_account(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;
}
