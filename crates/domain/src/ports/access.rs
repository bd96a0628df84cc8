//! Accounts and tokens.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Found, Look, StoreError};
use crate::access::permission::Permissions;
use crate::access::token::TokenHash;
use crate::access::{Access, AccountName, AllowList};
use crate::billing::SpendingRules;
use crate::ids::{AccountId, GrantId, TokenId};
use crate::money::Money;

/// An account, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its ID.
    pub id: AccountId,
    /// Its name.
    pub name: String,
    /// What it may still spend.
    pub balance: Money,
    /// What it may spend.
    pub rules: SpendingRules,
    /// Whether it is suspended.
    pub suspended: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// An account to create. Its debug form leaves the secret out.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// Its name, unique.
    pub name: AccountName,
    /// What it starts with.
    pub balance: Money,
    /// The secret that will sign its callbacks.
    pub callback_secret: String,
    /// Now.
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

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Whose.
    pub account: AccountId,
    /// What people call it.
    pub name: String,
    /// The secret's fingerprint.
    pub hash: TokenHash,
    /// What it may do.
    pub permissions: Permissions,
    /// From where.
    pub allow: AllowList,
    /// Until when.
    pub expires: Option<Timestamp>,
    /// Now.
    pub created_at: Timestamp,
}

/// A token, as lists show it: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its ID.
    pub id: TokenId,
    /// What it stands for.
    pub access: Access,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last opened something, as far as nodes have noted it: within a minute or two.
    pub last_used_at: Option<Timestamp>,
    /// What gave it to a client; `None`: its owner made it.
    pub grant: Option<GrantId>,
}

/// Accounts and tokens.
///
/// Whatever changes the answer of [`AccessStore::find_access`] raises [`AccessStore::access_version`] in the same
/// transaction. Nodes keep what they found and ask only for the version, so a revocation is seen everywhere at once.
#[async_trait]
pub trait AccessStore: Send + Sync + 'static {
    /// A number that grows with each change of accounts, tokens or what accounts may send under.
    async fn access_version(&self) -> Result<u64, StoreError>;

    /// What the token of this fingerprint stands for. Revoked ones are not found; expired ones are.
    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError>;

    /// Creates an account; `None` when the name is taken.
    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError>;

    /// The account of this name.
    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError>;

    /// The account of this ID.
    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError>;

    /// Every account, by ID.
    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError>;

    /// Accounts whose name holds a text, whatever the case of its Latin letters; all of them where none is given. The
    /// newest first.
    async fn look_for_accounts(
        &self,
        name: Option<&str>,
        look: Look<AccountId>,
    ) -> Result<Found<AccountRecord, AccountId>, StoreError>;

    /// The names of these accounts, as far as there are such.
    async fn list_account_names(
        &self,
        ids: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError>;

    /// Suspends or resumes an account; `false` when there is none of this name.
    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError>;

    /// Creates a token.
    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError>;

    /// The tokens of an account, or all of them, by ID; revoked ones are left out.
    async fn list_tokens(&self, account: Option<AccountId>)
    -> Result<Vec<TokenRecord>, StoreError>;

    /// Revokes a token of this account, or of any; `false` when there is none of this ID, or it is revoked already.
    async fn revoke_token(
        &self,
        account: Option<AccountId>,
        id: TokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Notes when tokens were last used. Changes nothing that [`AccessStore::find_access`] answers, so the version stays.
    async fn note_tokens_used(&self, used: &[(TokenHash, Timestamp)]) -> Result<(), StoreError>;
}
