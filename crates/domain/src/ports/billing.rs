//! Balances and the ledger behind them.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::billing::{LedgerEntry, SpendingRules};
use crate::ids::AccountId;
use crate::money::Money;

/// An account whose ledger does not give its balance. There must never be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imbalance {
    /// The account's name.
    pub account: String,
    /// Its balance.
    pub balance: Money,
    /// What its entries add up to.
    pub entries: Money,
    /// How many entries do not follow from the balance that the one before them left.
    pub broken_steps: u64,
}

/// Balances and the ledger. What is charged and given back for messages moves in the calls that store their beginnings
/// and ends; this is the rest.
#[async_trait]
pub trait BillingStore: Send + Sync + 'static {
    /// Adds money to an account, or takes some off, and returns the new balance. `None`: there is no such account.
    async fn credit(
        &self,
        account: AccountId,
        amount: Money,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Money>, StoreError>;

    /// Uses a key up, until `expires`: `false` when it was used before. What a person asks for by a form is then done once,
    /// however often the form is sent.
    async fn use_once(
        &self,
        account: AccountId,
        key: &[u8; 32],
        expires: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Replaces what an account may spend; `false` when there is none of this ID, or when `from` is given and is not
    /// what it may spend at that moment. Raises the access version.
    async fn set_rules(
        &self,
        account: AccountId,
        from: Option<&SpendingRules>,
        rules: &SpendingRules,
    ) -> Result<bool, StoreError>;

    /// The newest entries of an account that are older than `before`, the newest first.
    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError>;

    /// Every account whose ledger does not give its balance.
    async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError>;

    /// Folds the charges and refunds of days that ended `age` ago into one entry of each kind for each account and day.
    /// Credits, entries with a note and the newest entry of an account stay. Balances do not change. One step reads at
    /// most `limit` entries of one account; `false` when all accounts are done, and the next call begins again.
    async fn fold_ledger(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError>;

    /// Forgets to whom accounts with a limit per recipient sent, once that is longer ago than the limit counts: at most
    /// `limit` rows. Says how many.
    async fn prune_recipients(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
