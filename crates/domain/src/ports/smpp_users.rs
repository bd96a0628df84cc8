//! SMPP users.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::access::{AccessLimits, AllowList};
use crate::ids::{AccountId, NodeId, SmppUserId};
use crate::person::PasswordHash;
use crate::smpp_user::{ReceiptFormat, SmppLimits, SmppUser, SystemId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSmppUser {
    pub account: AccountId,
    pub system_id: SystemId,
    pub password: PasswordHash,
    /// The addresses that may bind.
    pub allow: AllowList,
    pub access_limits: AccessLimits,
    pub limits: SmppLimits,
    pub receipts: ReceiptFormat,
    pub created_at: Timestamp,
}

/// What an SMPP user binds with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmppCredentials {
    pub user: SmppUser,
    pub password: PasswordHash,
}

/// SMPP users. Every change raises [`super::AccessStore::access_version`] in the same transaction.
#[async_trait]
pub trait SmppUserStore: Send + Sync + 'static {
    /// Creates a user; `None` if its system ID is taken by a user that is not revoked.
    async fn create_smpp_user(&self, user: &NewSmppUser) -> Result<Option<SmppUserId>, StoreError>;

    /// The user with this system ID and its password, unless it is revoked.
    async fn find_smpp_credentials(
        &self,
        system_id: &SystemId,
    ) -> Result<Option<SmppCredentials>, StoreError>;

    /// Those of these users that are not revoked, in any order.
    async fn find_smpp_users(&self, ids: &[SmppUserId]) -> Result<Vec<SmppUser>, StoreError>;

    /// The users of an account, or all, sorted by ID, without revoked ones.
    async fn list_smpp_users(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<SmppUser>, StoreError>;

    /// Stores how many sessions of a user a node has. `false`, and nothing is stored, if all living nodes together
    /// would have more than `most`.
    async fn set_smpp_binds(
        &self,
        user: SmppUserId,
        node: NodeId,
        binds: u32,
        most: Option<u32>,
    ) -> Result<bool, StoreError>;

    /// How many sessions each user has on all living nodes together, sorted by ID, without users that have none.
    async fn count_smpp_binds(&self) -> Result<Vec<(SmppUserId, u32)>, StoreError>;

    /// Revokes a user; `false` if there is none with this system ID that is not revoked.
    async fn revoke_smpp_user(
        &self,
        system_id: &SystemId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}
