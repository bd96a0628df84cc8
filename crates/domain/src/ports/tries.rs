//! Tries at passwords and codes, counted over all nodes, and the browsers that people have signed in with.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::access::token::TokenHash;
use crate::access::tries::TryLimit;
use crate::ids::PersonId;

/// What a try counts against, by its fingerprint, and how many there may be.
pub type TryKey = (TokenHash, TryLimit);

/// Tries, and the browsers whose tries are counted apart.
#[async_trait]
pub trait TryStore: Send + Sync + 'static {
    /// Counts a try against each of these, unless one has had too many: then it counts against none, and the answer is
    /// the seconds to wait.
    async fn begin_try(
        &self,
        keys: &[TryKey],
        now: Timestamp,
    ) -> Result<Result<(), u32>, StoreError>;

    /// Takes a try back that was no guess.
    async fn forgive_try(&self, keys: &[TryKey]) -> Result<(), StoreError>;

    /// The people who have signed in with this browser.
    async fn list_known(
        &self,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Vec<PersonId>, StoreError>;

    /// Remembers that a person has signed in with this browser.
    async fn remember_browser(
        &self,
        browser: &TokenHash,
        person: PersonId,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// Forgets tries and browsers whose time is over, up to `limit` of each, and says how many.
    async fn prune_tries(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
