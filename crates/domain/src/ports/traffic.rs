//! How many messages came to their end, counted as they do: hour by hour, and day by day with their networks.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;
use crate::message::channel::Channel;
use crate::message::outcome::Outcome;
use crate::money::Money;
use crate::number::network::Network;

/// What is counted together. Times are UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Span {
    /// An hour, all networks together.
    Hour,
    /// A day, each network by itself.
    Day,
}

/// Messages that ended in the same span, by the same channel and in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficCount {
    /// The beginning of the hour or day.
    pub start: Timestamp,
    /// By which channel.
    pub channel: Channel,
    /// To which network; `None` in counts of hours, and where it was not known.
    pub network: Option<Network>,
    /// How they ended; `None`: cancelled.
    pub outcome: Option<Outcome>,
    /// How many.
    pub messages: u64,
    /// Their parts.
    pub parts: u64,
    /// What they cost, after what was given back.
    pub cost: Money,
}

/// Counts of what has ended. Counted in the transaction of the end, so nothing is missing and nothing counts twice.
#[async_trait]
pub trait TrafficStore: Send + Sync + 'static {
    /// The counts of an account, or of all together, that begin within a time (the end excluded), by their beginning.
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError>;

    /// Adds up what was counted lately, at most so many rows of it, and returns how many there were. What
    /// [`Self::list_traffic`] shows does not change by it; a store that adds up at once has nothing to do.
    async fn add_up_traffic(&self, limit: u32) -> Result<u64, StoreError>;
}
