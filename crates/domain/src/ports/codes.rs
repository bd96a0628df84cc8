//! Confirmation codes, and the keys of the service.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::encryption::KEY_BYTES;

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

/// The service's keys, as the database knows them.
pub trait KeyStore: Send + Sync + 'static {
    /// Keys for a purpose of their own: the first one proves, all of them verify.
    fn derived_keys(&self, purpose: &str) -> Vec<[u8; KEY_BYTES]>;
}
