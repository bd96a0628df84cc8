//! Ported numbers: the networks that lookups and receipts named.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;
use crate::number::msisdn::Msisdn;
use crate::number::ported::PortedNumber;

/// What tells a node that it must read again. The numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortedVersions {
    /// Grows when networks are learned.
    pub changes: i64,
    /// Grows when numbers are removed before they are old.
    pub removals: i64,
    /// Grows with changes of accounts, among others.
    pub access: i64,
}

/// A number whose network was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortedChange {
    /// Changes become visible in the order of their numbers. Those of one write share a number.
    pub change: i64,
    pub ported: PortedNumber,
}

#[async_trait]
pub trait PortedStore: Send + Sync + 'static {
    /// Stores the networks of numbers. What was learned later stays.
    async fn remember_ported(&self, learned: &[PortedNumber]) -> Result<(), StoreError>;

    async fn find_ported(&self, number: &Msisdn) -> Result<Option<PortedNumber>, StoreError>;

    /// Removes what is known about a number, so that all nodes forget it. Returns whether something was.
    async fn erase_ported(&self, number: &Msisdn) -> Result<bool, StoreError>;

    async fn get_ported_versions(&self) -> Result<PortedVersions, StoreError>;

    /// The numbers in the order of their changes, after `after`. Without it, these are all numbers.
    async fn list_ported_changes(
        &self,
        after: Option<&PortedChange>,
        limit: u32,
    ) -> Result<Vec<PortedChange>, StoreError>;

    /// The accounts whose prices and routes go by the networks of ported numbers.
    async fn list_ported_accounts(&self) -> Result<Vec<AccountId>, StoreError>;

    /// Deletes what was learned before `before`: at most `limit`. Nodes forget it by its age. Returns the number.
    async fn prune_ported(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Deletes the `limit` numbers that were learned first, so that all nodes forget them. Returns the number.
    async fn remove_oldest_ported(&self, limit: u32) -> Result<u64, StoreError>;
}
