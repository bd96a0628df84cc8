//! What monitoring reads at an interval. Every answer takes a bounded time.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;
use crate::message::Priority;
use crate::money::Money;

/// Messages of a lane that are due and that no carrier has taken: in the database, or in the memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingMessages {
    pub priority: Priority,
    /// At most [`WaitingMessages::MOST`].
    pub count: u32,
    pub oldest_due_at: Option<Timestamp>,
}

impl WaitingMessages {
    /// Counting stops here, so that it never takes long.
    pub const MOST: u32 = 100_000;
}

/// Messages that wait in the database for a carrier of their route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledMessages {
    /// The carrier, or the carriers of the route, separated by commas.
    pub carrier: String,
    /// At most [`WaitingMessages::MOST`].
    pub count: u32,
    pub oldest_due_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionUse {
    pub most: u32,
    /// Connections in use.
    pub busy: u32,
    /// Callers that wait for a connection.
    pub waiting: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// The size on disk.
    pub bytes: u64,
    /// The size of the write-ahead log; `None` if the database does not tell.
    pub wal_bytes: Option<u64>,
    pub connections: ConnectionUse,
}

/// What an account has and spends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountBalance {
    pub id: AccountId,
    pub name: String,
    pub balance: Money,
    /// How far the balance may go below zero.
    pub credit_limit: Money,
    /// The UTC day on which something was last charged, see [`day_of`](crate::billing::day_of).
    pub spent_day: i32,
    /// The amount charged on that day.
    pub spent: Money,
    /// Below this balance the account and the operators are notified.
    pub low_balance: Option<Money>,
}

#[async_trait]
pub trait MonitoringStore: Send + Sync + 'static {
    async fn list_waiting(&self) -> Result<Vec<WaitingMessages>, StoreError>;

    /// The newest 200 pools.
    async fn list_pooled(&self) -> Result<Vec<PooledMessages>, StoreError>;

    async fn database_health(&self) -> Result<DatabaseHealth, StoreError>;

    /// The accounts after `after` that are not suspended, sorted by ID, at most `limit`.
    async fn list_balances(
        &self,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountBalance>, StoreError>;
}
