//! Confirmation codes.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;

/// Confirmation codes, besides what senders keep of their PINs.
#[async_trait]
pub trait CodeStore: Send + Sync + 'static {
    /// Forgets codes that no longer count ([`crate::code_cap`]), at most `limit`. Says how many.
    async fn prune_codes(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Forgets the texts of messages that have ended, at most `limit`. Those that went by the carrier `inbox`, whose
    /// handsets show them, are kept for `age`. Says how many.
    async fn prune_code_texts(
        &self,
        inbox: &str,
        age: SignedDuration,
        limit: u32,
    ) -> Result<u64, StoreError>;
}
