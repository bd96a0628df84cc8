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

/// What people choose about a token. It can be changed without a new secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInput {
    /// A name for people.
    pub name: String,
    pub permissions: Permissions,
    /// The addresses that may use it.
    pub allow: AllowList,
    pub expires: Option<Timestamp>,
}

impl TokenInput {
    /// Whether it allows something that `before` does not: a permission, an address or a later use.
    pub fn exceeds(&self, before: &Self) -> bool {
        let is_new = |permission| !before.permissions.contains(permission);
        let is_later = match (self.expires, before.expires) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(after), Some(before)) => after > before,
        };
        self.permissions.iter().any(is_new) || !before.allow.covers(&self.allow) || is_later
    }
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

impl TokenRecord {
    /// What people chose about it.
    pub fn input(&self) -> TokenInput {
        TokenInput {
            name: self.access.name.clone(),
            permissions: self.access.permissions,
            allow: self.access.allow.clone(),
            expires: self.access.expires,
        }
    }
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

    /// Changes a token that a person of this account created; `false` if there is none, or it is revoked.
    async fn change_token(
        &self,
        account: AccountId,
        id: TokenId,
        input: &TokenInput,
    ) -> Result<bool, StoreError>;

    /// Creates a token that replaces another one, created by a person of its account. The other one expires at `until`
    /// if it has no earlier expiry; without `until` it is revoked. Returns `None`, and creates nothing, if there is no
    /// such token, or it is revoked.
    async fn replace_token(
        &self,
        replaced: TokenId,
        until: Option<Timestamp>,
        token: &NewToken,
    ) -> Result<Option<TokenId>, StoreError>;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_an_address_or_a_later_expiry_exceeds_a_token() {
        let input = |permissions: &str, allow: &str, expires: Option<i64>| TokenInput {
            name: "backend".to_owned(),
            permissions: Permissions::from_names(permissions).expect("permissions"),
            allow: allow.parse().expect("networks"),
            expires: expires.map(|s| Timestamp::from_second(s).expect("a time")),
        };
        let before = input("sms:send sms:read", "192.0.2.0/24", Some(10));
        for (name, after, expected) in [
            ("the same", before.clone(), false),
            ("less", input("sms:read", "192.0.2.7", Some(9)), false),
            (
                "a permission",
                input("sms:rates", "192.0.2.0/24", Some(10)),
                true,
            ),
            (
                "another network",
                input("sms:send", "192.0.2.7 198.51.100.1", Some(10)),
                true,
            ),
            (
                "a larger network",
                input("sms:send", "192.0.0.0/16", Some(10)),
                true,
            ),
            ("any address", input("sms:send", "", Some(10)), true),
            ("later", input("sms:send", "192.0.2.7", Some(11)), true),
            ("for ever", input("sms:send", "192.0.2.7", None), true),
        ] {
            assert_eq!(after.exceeds(&before), expected, "{name}");
        }
        let unlimited = input("sms:send", "", None);
        assert!(!before.exceeds(&input("sms:send sms:read", "", None)));
        assert!(!unlimited.exceeds(&unlimited));
    }
}
