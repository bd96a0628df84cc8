//! People who belong to several accounts.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PersonChanged, StoreError};
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Membership, Role};

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

    /// Uses up an invitation: the person joins its account, and their session continues there. Password-reset links that
    /// still wait for them stop working: an admin of another account may have made one. `false`: the link is unknown, used
    /// or expired, or for somebody else.
    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError>;

    /// Switches a session to another account of its person. The session gets the fingerprint `renewed`, so that forms on
    /// pages that still show the former account are refused. `false`: the person does not belong to the account, or the
    /// session has ended.
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

    /// Removes a person from an account, and ends their sessions there and what they granted to clients for it. A person
    /// with no other account is deleted, unless they are an operator.
    async fn leave_account(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;
}
