//! Confirmation codes.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;

/// Confirmation codes, except for the PINs of sender IDs.
#[async_trait]
pub trait CodeStore: Send + Sync + 'static {
    /// Deletes codes that no longer count ([`crate::code_cap`]), at most `limit`. Returns the number.
    async fn prune_codes(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Deletes the texts of messages that have ended, at most `limit`. Texts sent by the carrier `inbox` are kept for
    /// `age`, because its simulated handsets show them. Returns the number.
    async fn prune_code_texts(
        &self,
        inbox: &str,
        age: SignedDuration,
        limit: u32,
    ) -> Result<u64, StoreError>;
}
