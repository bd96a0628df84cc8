//! SMPP users.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{AccountId, NodeId, SmppUserId};
use crate::person::PasswordHash;
use crate::smpp_user::{SmppSession, SmppUser, SmppUserOptions, SystemId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSmppUser {
    pub account: AccountId,
    pub system_id: SystemId,
    pub password: PasswordHash,
    pub options: SmppUserOptions,
    pub created_at: Timestamp,
}

/// What an SMPP user binds with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmppCredentials {
    pub user: SmppUser,
    pub password: PasswordHash,
}

/// Sessions of an SMPP user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmppBinds {
    pub all: u32,
    /// Those that submit messages.
    pub senders: u32,
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
        binds: SmppBinds,
        most: Option<u32>,
    ) -> Result<bool, StoreError>;

    /// How many sessions each user has on all living nodes together, sorted by ID, without users that have none.
    async fn count_smpp_binds(&self) -> Result<Vec<(SmppUserId, u32)>, StoreError>;

    /// How many sessions that submit each user has on the other living nodes, without users that have none.
    async fn count_smpp_senders_elsewhere(
        &self,
        node: NodeId,
    ) -> Result<Vec<(SmppUserId, u32)>, StoreError>;

    /// Stores what a node reports about its sessions, and deletes those that ended, by their numbers.
    async fn report_smpp_sessions(
        &self,
        node: NodeId,
        changed: &[SmppSession],
        ended: &[u64],
    ) -> Result<(), StoreError>;

    /// The sessions of a user on all living nodes, sorted by node and number.
    async fn list_smpp_sessions(
        &self,
        user: SmppUserId,
    ) -> Result<Vec<(NodeId, SmppSession)>, StoreError>;

    /// Replaces the options of a user; `false` if there is none with this system ID that is not revoked.
    async fn change_smpp_user(
        &self,
        system_id: &SystemId,
        options: &SmppUserOptions,
    ) -> Result<bool, StoreError>;

    /// Revokes a user; `false` if there is none with this system ID that is not revoked.
    async fn revoke_smpp_user(
        &self,
        system_id: &SystemId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}
