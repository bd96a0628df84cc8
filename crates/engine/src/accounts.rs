//! Accounts and their tokens.

use std::sync::Arc;

use base64::Engine as _;
use domain::access::NotAnAccountName;
use domain::billing::{LedgerEntry, SpendingRules};
use domain::ports::{
    AccountRecord, Imbalance, NewAccount, NewToken, Store, StoreError, TokenRecord,
};
use domain::{
    Access, AccountId, AccountName, AllowList, Clock, Money, Permissions, Timestamp, TokenId,
    TokenSecret,
};

use crate::entropy;

/// Why an account or a token was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name cannot be one.
    #[error(transparent)]
    Name(#[from] NotAnAccountName),
    /// The name belongs to another account.
    #[error("an account named '{0}' exists already")]
    Taken(String),
    /// There is no account of this name.
    #[error("there is no account named '{0}'; `switchboard account list` shows those there are")]
    UnknownAccount(String),
    /// The balance would leave the range that is kept.
    #[error("{0} would take the balance beyond 1,000,000,000.00 on either side of zero")]
    Amount(Money),
    /// There is no live token of this ID.
    #[error("there is no token {0}; `switchboard token list` shows those there are")]
    UnknownToken(TokenId),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Balances end here, so that no sum of them leaves what both databases hold.
const MAX_BALANCE: Money = Money::from_micros(1_000_000_000 * 1_000_000);
const MIN_BALANCE: Money = Money::from_micros(-MAX_BALANCE.micros());

/// A token to make.
#[derive(Debug, Clone)]
pub struct TokenOrder {
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub permissions: Permissions,
    /// From where.
    pub allow: AllowList,
    /// Until when.
    pub expires: Option<Timestamp>,
}

/// Creates and changes accounts and tokens.
pub struct Accounts {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Accounts {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Creates an account with a secret of its own for callbacks.
    pub async fn create(&self, name: &str, balance: Money) -> Result<AccountRecord, AccountError> {
        let account = NewAccount {
            name: name.parse::<AccountName>()?,
            balance,
            callback_secret: callback_secret(),
            created_at: self.clock.now(),
        };
        let id = self
            .store
            .create_account(&account)
            .await?
            .ok_or_else(|| AccountError::Taken(name.to_owned()))?;
        Ok(AccountRecord {
            id,
            name: name.to_owned(),
            balance,
            rules: SpendingRules::default(),
            suspended: false,
            callback_secret: account.callback_secret,
            created_at: account.created_at,
        })
    }

    /// The account of this name.
    pub async fn get(&self, name: &str) -> Result<AccountRecord, AccountError> {
        self.store
            .find_account(name)
            .await?
            .ok_or_else(|| AccountError::UnknownAccount(name.to_owned()))
    }

    /// The account of this ID, read anew.
    pub async fn find_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        self.store.find_account_by_id(id).await
    }

    /// What a person may do who acts for an account in the dashboard: everything, within the account's own bounds.
    pub fn access_of(account: &AccountRecord, person: &str) -> Access {
        Access {
            name: person.to_owned(),
            account: account.id,
            account_name: account.name.clone(),
            suspended: account.suspended,
            countries: account.rules.countries.clone(),
            approved_senders_only: account.rules.approved_senders_only,
            permissions: Permissions::all(),
            allow: AllowList::default(),
            expires: None,
        }
    }

    /// Every account.
    pub async fn list(&self) -> Result<Vec<AccountRecord>, StoreError> {
        self.store.list_accounts().await
    }

    /// Adds money to an account, or takes some off, and returns the new balance.
    pub async fn credit(
        &self,
        name: &str,
        amount: Money,
        note: Option<&str>,
    ) -> Result<Money, AccountError> {
        let account = self.get(name).await?;
        if !(MIN_BALANCE..=MAX_BALANCE).contains(&account.balance.plus(amount)) {
            return Err(AccountError::Amount(amount));
        }
        let now = self.clock.now();
        let balance = self.store.credit(account.id, amount, note, now).await?;
        balance.ok_or_else(|| AccountError::UnknownAccount(name.to_owned()))
    }

    /// Changes what an account may spend, and returns what it may now.
    pub async fn set_rules(
        &self,
        name: &str,
        change: impl FnOnce(&mut SpendingRules),
    ) -> Result<SpendingRules, AccountError> {
        let account = self.get(name).await?;
        let mut rules = account.rules;
        change(&mut rules);
        if self.store.set_rules(account.id, &rules).await? {
            Ok(rules)
        } else {
            Err(AccountError::UnknownAccount(name.to_owned()))
        }
    }

    /// The newest entries of an account's ledger, the newest first.
    pub async fn ledger(&self, name: &str, limit: u32) -> Result<Vec<LedgerEntry>, AccountError> {
        let account = self.get(name).await?;
        Ok(self.store.list_ledger(account.id, limit).await?)
    }

    /// The accounts whose ledger does not give their balance. There must never be one.
    pub async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError> {
        self.store.check_ledger().await
    }

    /// Suspends an account, or lets it go on.
    pub async fn set_suspended(&self, name: &str, suspended: bool) -> Result<(), AccountError> {
        if self.store.set_suspended(name, suspended).await? {
            Ok(())
        } else {
            Err(AccountError::UnknownAccount(name.to_owned()))
        }
    }

    /// Creates a token. The secret is in the answer and nowhere else.
    pub async fn create_token(
        &self,
        account: AccountId,
        order: TokenOrder,
    ) -> Result<(TokenId, TokenSecret), StoreError> {
        let secret = TokenSecret::from_seed(&entropy::bytes());
        let token = NewToken {
            account,
            name: order.name,
            hash: secret.hash(),
            permissions: order.permissions,
            allow: order.allow,
            expires: order.expires,
            created_at: self.clock.now(),
        };
        let id = self.store.create_token(&token).await?;
        Ok((id, secret))
    }

    /// The live tokens of an account, or of all.
    pub async fn list_tokens(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        self.store.list_tokens(account).await
    }

    /// Revokes a token. Every node refuses it within a second.
    pub async fn revoke_token(&self, id: TokenId) -> Result<(), AccountError> {
        self.revoke(None, id).await
    }

    /// Revokes a token of this account; another's is not found.
    pub async fn revoke_token_of(
        &self,
        account: AccountId,
        id: TokenId,
    ) -> Result<(), AccountError> {
        self.revoke(Some(account), id).await
    }

    async fn revoke(&self, account: Option<AccountId>, id: TokenId) -> Result<(), AccountError> {
        let now = self.clock.now();
        if self.store.revoke_token(account, id, now).await? {
            Ok(())
        } else {
            Err(AccountError::UnknownToken(id))
        }
    }
}

/// In the form that the Standard Webhooks specification gives secrets.
fn callback_secret() -> String {
    let key = base64::engine::general_purpose::STANDARD.encode(entropy::bytes::<24>());
    format!("whsec_{key}")
}
