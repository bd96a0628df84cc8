//! The comparison of what the database says this node holds with what is in memory.
//!
//! A commit that lands after its caller gave up, or a panic between a commit and the hand-over, leaves callbacks that the
//! database says this node holds and that it does not know. They are found here and given back, however late they come.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::StoreError;
use jiff::SignedDuration;
use tokio::time::Instant;

use super::Callbacks;

/// How often both are compared.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// How long after a write that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Comparisons take at most this part of the time, while the database is slow to answer.
const SHARE: u32 = 10;
/// But they are at most this far apart.
const LONGEST: Duration = Duration::from_secs(20);
/// What became due more recently is not compared: nearly all of it is just being delivered.
const AGE: SignedDuration = SignedDuration::from_secs(3);
/// Rows that are listed at once.
const PAGE: u32 = 2_000;

impl Callbacks {
    pub(super) async fn compare_all(self: Arc<Self>) {
        let mut pause = COMPARE_EVERY;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.write_failed.notified() => tokio::time::sleep(AFTER_FAILURE).await,
            }
            metrics::gauge!("switchboard_callbacks_held").set(held_gauge(self.rows.len()));
            let began = Instant::now();
            match self.compare().await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(count, "callbacks of unknown writes wait for delivery again");
                }
                Err(error) => {
                    tracing::warn!(%error, "callbacks cannot be compared with the database; trying again");
                    self.write_failed();
                }
            }
            pause = (began.elapsed() * SHARE).clamp(COMPARE_EVERY, LONGEST);
        }
    }

    /// Gives back what the database says this node holds and it does not. Says how many.
    async fn compare(&self) -> Result<u64, StoreError> {
        let node = self.node.id();
        let (mut after, mut released) = (None, 0);
        loop {
            let listed = self
                .store
                .list_held_callbacks(node, AGE, after, PAGE)
                .await?;
            let is_last = listed.len() < PAGE as usize;
            after = listed.last().copied();
            let missing = self
                .rows
                .missing(listed, |held| (held.id, held.claim.attempt))
                .await;
            if !missing.is_empty() {
                released += self.store.release_callbacks(node, missing).await?;
            }
            if is_last {
                return Ok(released);
            }
        }
    }
}

/// Far fewer are held than a gauge can show.
fn held_gauge(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
