//! People who belong to several accounts.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PersonChanged, StoreError};
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Membership, Role};

/// An invitation that a signed-in person accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// The hash of the link.
    pub link: TokenHash,
    pub person: PersonId,
    /// The hash of their session.
    pub session: TokenHash,
    /// The hash under which the session continues.
    pub renewed: TokenHash,
    pub now: Timestamp,
}

/// Further accounts of people.
#[async_trait]
pub trait MembershipStore: Send + Sync + 'static {
    /// The further accounts of people from `first` to `last`, sorted by ID.
    async fn list_memberships(
        &self,
        first: PersonId,
        last: PersonId,
    ) -> Result<Vec<Membership>, StoreError>;

    /// Uses up an invitation: the person joins its account, and their session continues there. Their open
    /// password-reset links stop working, because an admin of another account may have made them. `false` if the link
    /// is unknown, used, expired, or for somebody else.
    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError>;

    /// Switches a session to another account of its person, or to any account if they are an operator; `None` for the
    /// first account of the person. The session gets the hash `renewed`, so that forms on pages of the former account
    /// are refused. `false` if the person does not belong to the account, or the session has ended.
    async fn switch_account(
        &self,
        session: &TokenHash,
        renewed: &TokenHash,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError>;

    /// Changes a person's role in one of their accounts. An operator stays one.
    async fn set_account_role(
        &self,
        person: PersonId,
        account: AccountId,
        role: Role,
    ) -> Result<PersonChanged, StoreError>;

    /// Removes a person from an account, and ends their sessions there and their grants for it. A person with no other
    /// account is deleted, unless they are an operator.
    async fn remove_member(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError>;
}
