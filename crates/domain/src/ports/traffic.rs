//! Counts of ended messages: by hour, and by day and network.

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

    /// Adds up recent counts, at most `limit` rows, and returns the number of rows. This does not change the result of
    /// [`Self::list_traffic`]; a store that adds up at once has nothing to do.
    async fn add_up_traffic(&self, limit: u32) -> Result<u64, StoreError>;
}
