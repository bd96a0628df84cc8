//! Attempts at passwords and codes, counted over all nodes, and the browsers that people have signed in with.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::access::attempts::AttemptLimit;
use crate::access::token::TokenHash;
use crate::ids::PersonId;

/// The hash of what an attempt counts against, and the limit.
pub type AttemptKey = (TokenHash, AttemptLimit);

/// Attempts, and the browsers whose attempts are counted separately.
#[async_trait]
pub trait AttemptStore: Send + Sync + 'static {
    /// Counts an attempt against each key. If one of them has had too many, it counts against none, and the result is
    /// the number of seconds to wait.
    async fn count_attempt(
        &self,
        keys: &[AttemptKey],
        now: Timestamp,
    ) -> Result<Result<(), u32>, StoreError>;

    /// Removes an attempt that was not a guess.
    async fn uncount_attempt(&self, keys: &[AttemptKey]) -> Result<(), StoreError>;

    async fn list_people_of_browser(
        &self,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Vec<PersonId>, StoreError>;

    /// Stores that a person has signed in with this browser.
    async fn remember_browser(
        &self,
        browser: &TokenHash,
        person: PersonId,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// Deletes expired attempts and browsers, up to `limit` of each. Returns the number.
    async fn prune_attempts(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
