//! Opt-outs, and the operators' block list.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::block::{BlockRecord, BlockRule};
use crate::ids::AccountId;
use crate::number::msisdn::Msisdn;
use crate::opt_out::{OptOut, OptOutKey, Via};

/// How many changes both lists have seen. The numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListVersions {
    pub opt_outs: i64,
    pub blocks: i64,
}

/// An entry of an opt-out list that was added or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOutChange {
    /// Changes become visible in the order of their numbers. Entries of one import share a number.
    pub number: i64,
    pub account: AccountId,
    pub key: OptOutKey,
    /// Whether it is on the list now.
    pub is_listed: bool,
}

#[async_trait]
pub trait OptOutStore: Send + Sync + 'static {
    /// Puts recipients on an account's list. Those that are there keep their time and origin. Returns how many are new.
    async fn add_opt_outs(
        &self,
        account: AccountId,
        keys: &[OptOutKey],
        via: Via,
        now: Timestamp,
    ) -> Result<u64, StoreError>;

    /// Returns whether the entry was there.
    async fn remove_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    async fn find_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
    ) -> Result<Option<OptOut>, StoreError>;

    /// An account's list, sorted by recipient and sender, after `after`.
    async fn list_opt_outs(
        &self,
        account: AccountId,
        after: Option<&OptOutKey>,
        limit: u32,
    ) -> Result<Vec<OptOut>, StoreError>;

    /// The entries of all accounts that name this recipient, at most `limit`.
    async fn list_opt_outs_of(
        &self,
        recipient: &Msisdn,
        limit: u32,
    ) -> Result<Vec<(AccountId, OptOut)>, StoreError>;

    async fn get_list_versions(&self) -> Result<ListVersions, StoreError>;

    /// The last change of each entry, sorted by number, after `after`. Without it, this is the whole list.
    async fn list_opt_out_changes(
        &self,
        after: Option<&OptOutChange>,
        limit: u32,
    ) -> Result<Vec<OptOutChange>, StoreError>;

    /// Deletes what is left of entries that were removed before `before`: at most `limit`. Returns the number.
    async fn prune_opt_outs(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Returns `false` if the rule was there.
    async fn add_block_rule(&self, rule: &BlockRule, now: Timestamp) -> Result<bool, StoreError>;

    /// Returns whether the rule was there.
    async fn remove_block_rule(&self, rule: &BlockRule) -> Result<bool, StoreError>;

    /// The whole block list, sorted by kind and value.
    async fn list_block_rules(&self) -> Result<Vec<BlockRecord>, StoreError>;
}
