//! Accounts and tokens.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Cursor, Page, StoreError};
use crate::access::permission::Permissions;
use crate::access::token::TokenHash;
use crate::access::{Access, AccountName, AllowList};
use crate::billing::SpendingRules;
use crate::ids::{AccountId, GrantId, TokenId};
use crate::money::Money;

/// An account, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    pub id: AccountId,
    pub name: String,
    pub balance: Money,
    pub rules: SpendingRules,
    pub suspended: bool,
    pub created_at: Timestamp,
}

/// An account to create. Its debug form leaves out the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// Unique.
    pub name: AccountName,
    pub balance: Money,
    /// The secret that signs its callbacks.
    pub callback_secret: String,
    pub created_at: Timestamp,
}

impl fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewAccount")
            .field("name", &self.name)
            .field("balance", &self.balance)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    pub account: AccountId,
    pub name: String,
    /// The hash of the secret.
    pub hash: TokenHash,
    pub permissions: Permissions,
    pub allow: AllowList,
    pub expires: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// A token, as lists show it: everything except the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    pub access: Access,
    pub created_at: Timestamp,
    /// Nodes store it with a delay of a minute or two.
    pub last_used_at: Option<Timestamp>,
    /// The grant that it was issued for; `None` if its owner created it.
    pub grant: Option<GrantId>,
}

/// Accounts and tokens.
///
/// Every change that affects [`AccessStore::find_access`] raises [`AccessStore::access_version`] in the same
/// transaction. Nodes cache what they found and query only the version, so a revocation takes effect everywhere at
/// once.
#[async_trait]
pub trait AccessStore: Send + Sync + 'static {
    /// A number that increases with each change of accounts, tokens, SMPP users or approved sender IDs.
    async fn access_version(&self) -> Result<u64, StoreError>;

    /// The access of the token with this hash. Revoked tokens are not found; expired ones are.
    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError>;

    /// Creates an account; `None` if the name is taken.
    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError>;

    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError>;

    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError>;

    /// Every account, sorted by ID.
    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError>;

    /// Accounts whose name contains a text, ignoring the case of Latin letters; all accounts without a text. The newest
    /// first.
    async fn search_accounts(
        &self,
        name: Option<&str>,
        cursor: Cursor<AccountId>,
    ) -> Result<Page<AccountRecord, AccountId>, StoreError>;

    /// The names of these accounts; unknown IDs are left out.
    async fn list_account_names(
        &self,
        ids: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError>;

    /// Suspends or resumes an account; `false` if there is none with this name.
    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError>;

    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError>;

    /// The tokens of an account, or all, sorted by ID, without revoked ones.
    async fn list_tokens(&self, account: Option<AccountId>)
    -> Result<Vec<TokenRecord>, StoreError>;

    /// Revokes a token of this account, or of any; `false` if it does not exist or is already revoked.
    async fn revoke_token(
        &self,
        account: Option<AccountId>,
        id: TokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores when tokens were last used. This does not affect [`AccessStore::find_access`], so the version stays.
    async fn record_token_use(&self, used: &[(TokenHash, Timestamp)]) -> Result<(), StoreError>;
}
