//! Balances and the ledger.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::billing::{AccountFunds, GrantCap, LedgerEntry, NotPaid, SpendingRules};
use crate::ids::{AccountId, GrantId};
use crate::money::Money;
use crate::number::msisdn::Msisdn;

/// An account whose ledger does not match its balance. There must never be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imbalance {
    pub account: String,
    pub balance: Money,
    /// The sum of its entries.
    pub entries: Money,
    /// How many entries do not continue the balance of the entry before.
    pub broken_steps: u64,
}

/// Balances and the ledger. Charges and refunds of messages are part of the calls that store or end messages; this is
/// everything else.
#[async_trait]
pub trait BillingStore: Send + Sync + 'static {
    /// Adds money to an account, or takes some off, and returns the new balance. `None` if there is no such account.
    async fn credit(
        &self,
        account: AccountId,
        amount: Money,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Money>, StoreError>;

    /// Uses up a key until `expires`; `false` if it was used before. So a form takes effect once, however often it is
    /// sent.
    async fn use_once(
        &self,
        account: AccountId,
        key: &[u8; 32],
        expires: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Replaces the spending rules of an account. `false` if there is no such account, or if its current rules are not
    /// `from`. Raises the access version.
    async fn set_rules(
        &self,
        account: AccountId,
        from: Option<&SpendingRules>,
        rules: &SpendingRules,
    ) -> Result<bool, StoreError>;

    /// The balance of an account, its limits, and what it has spent.
    async fn find_funds(&self, account: AccountId) -> Result<Option<AccountFunds>, StoreError>;

    /// The first of these recipients that would get more than `limit` messages of the account within an hour.
    async fn find_flooded(
        &self,
        account: AccountId,
        recipients: &[Msisdn],
        limit: u32,
        now: Timestamp,
    ) -> Result<Option<Msisdn>, StoreError>;

    /// Counts what a client is about to spend on a day, unless that exceeds its cap.
    async fn spend_of_grant(
        &self,
        cap: GrantCap,
        cost: Money,
        day: i32,
    ) -> Result<Result<(), NotPaid>, StoreError>;

    /// Takes back what was counted for a request on that day, because it was refused.
    async fn unspend_of_grant(
        &self,
        grant: GrantId,
        cost: Money,
        day: i32,
    ) -> Result<(), StoreError>;

    /// What a client has spent on a day; counted only for grants with a cap.
    async fn find_grant_spending(&self, grant: GrantId, day: i32) -> Result<Money, StoreError>;

    /// The entries of an account before the entry `before`, the newest first.
    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError>;

    /// Every account whose ledger does not match its balance.
    async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError>;

    /// Folds the charges and refunds of each account and day into one entry of each kind, for days that ended `age`
    /// ago. Credits, entries with a note and the newest entry of an account stay. Balances do not change. One step
    /// reads at most `limit` entries of one account; `false` when all accounts are done, and the next call starts
    /// again.
    async fn fold_ledger(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError>;

    /// Deletes the recipients that are stored for limits per recipient and no longer count: at most `limit` rows.
    /// Returns the number of deleted rows.
    async fn prune_recipients(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
