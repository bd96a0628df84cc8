//! Messages from handsets that a carrier gave an ID, by which each is stored once.

use async_trait::async_trait;

use super::{NewInbound, StoreError};

#[async_trait]
pub trait InboundSourceStore: Send + Sync + 'static {
    /// Whether a message from this source is stored: a hash of the carrier and its ID of the message.
    async fn has_source(&self, source: [u8; 16]) -> Result<bool, StoreError>;

    /// Stores a message with its callback; `false` if one from the same source is stored, as long as that is kept.
    async fn store_once(&self, source: [u8; 16], new: &NewInbound) -> Result<bool, StoreError>;
}
