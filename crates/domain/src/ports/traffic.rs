//! Counts of ended messages: by hour, by day and network, and by day and latency.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;
use crate::message::channel::Channel;
use crate::message::outcome::Outcome;
use crate::money::Money;
use crate::number::country::Country;
use crate::number::network::Network;

/// The period of a count, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Span {
    /// One hour, all networks together.
    Hour,
    /// One day, each network separately.
    Day,
}

/// Messages that ended in the same period, by the same channel and with the same outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficCount {
    pub start: Timestamp,
    pub channel: Channel,
    /// `None` in counts by hour, and if it is unknown.
    pub network: Option<Network>,
    /// The country of the numbers, if it is known and the network is not; the network tells it otherwise.
    pub country: Option<Country>,
    /// `None` for cancelled messages.
    pub outcome: Option<Outcome>,
    pub messages: u64,
    pub parts: u64,
    /// Charges minus refunds.
    pub cost: Money,
}

/// Where the buckets of latencies begin, in microseconds. The first bucket is below the first bound, the last one has no
/// end. Stored counts have the number of their bucket, so a new bound needs a migration.
pub const LATENCY_BOUNDS_US: [i64; 16] = [
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
    8_000_000,
    13_000_000,
    20_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    900_000_000,
    3_600_000_000,
    21_600_000_000,
    86_400_000_000,
];

/// SMS and Viber messages that were delivered on the same day (UTC), with a latency in the same bucket.
///
/// The latency is the time from acceptance, or from the time that the message was scheduled for, until its delivery
/// report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyCount {
    pub day: Timestamp,
    /// The number of bounds in [`LATENCY_BOUNDS_US`] that the latency reached.
    pub bucket: usize,
    pub messages: u64,
}

/// Messages of an account that ended on a day (UTC), without the cancelled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryCount {
    pub account: AccountId,
    pub day: Timestamp,
    pub sent: u64,
    pub delivered: u64,
}

/// Counts of ended messages. A message is counted in the transaction that ends it, so that it counts exactly once.
#[async_trait]
pub trait TrafficStore: Send + Sync + 'static {
    /// The counts of an account, or of all together, from `from` to before `until`, sorted by start.
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError>;

    /// The deliveries of every account that sent something, from `from` to before `until`, sorted by account and day.
    async fn list_deliveries(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryCount>, StoreError>;

    /// The latencies of an account, or of all together, from `from` to before `until`, sorted by day and bucket.
    async fn list_latencies(
        &self,
        account: Option<AccountId>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LatencyCount>, StoreError>;

    /// Adds up recent counts, at most `limit` rows, and returns the number of rows. This does not change the result of
    /// [`Self::list_traffic`] and [`Self::list_latencies`]; a store that adds up at once has nothing to do.
    async fn add_up_traffic(&self, limit: u32) -> Result<u64, StoreError>;
}
