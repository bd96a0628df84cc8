//! Compares the messages that the database says this node holds with those in its memory, and puts the difference back in
//! the queue.
//!
//! A write whose caller gave up may still commit, seconds or minutes later, and a panic can come between a commit and the
//! hand-over. The rows then belong to a node that does not know them, and no other node would send them while it lives.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{ClaimedRow, StoreError};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Dispatch;

/// How often rows are compared.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// How soon after a write that failed.
const COMPARE_SOON: Duration = Duration::from_secs(1);
/// Comparisons that take long are at most this far apart.
const COMPARE_AT_LEAST_EVERY: Duration = Duration::from_secs(15);
/// A comparison takes at most this part of the time.
const SHARE: u32 = 10;
/// Rows that were due for less are most likely on their way and are not read.
const DUE_FOR: SignedDuration = SignedDuration::from_secs(3);
/// How many rows are read at once.
const PAGE: u32 = 2_000;

/// When the next comparison is due.
#[derive(Default)]
pub(super) struct Reconcile {
    hurry: Notify,
}

impl Reconcile {
    /// Asks for a comparison soon.
    pub(super) fn hurry(&self) {
        self.hurry.notify_one();
    }

    async fn wait(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.hurry.notified() => tokio::time::sleep(COMPARE_SOON).await,
        }
    }
}

/// The pause after a comparison that took so long.
fn pause_after(took: Duration) -> Duration {
    (took * SHARE).clamp(COMPARE_EVERY, COMPARE_AT_LEAST_EVERY)
}

impl Dispatch {
    pub(super) async fn reconcile_all(self: Arc<Self>) {
        let mut pause = COMPARE_EVERY;
        loop {
            self.reconcile.wait(pause).await;
            let began = Instant::now();
            match self.release_unknown().await {
                Ok(0) => {}
                Ok(released) => {
                    let known = self.rows.len();
                    tracing::warn!(
                        released,
                        known,
                        "messages that this node held without knowing are back in the queue"
                    );
                    metrics::counter!("switchboard_rows_released_total", "queue" => "messages")
                        .increment(released);
                }
                Err(error) => {
                    tracing::warn!(%error, "held messages cannot be compared with the database; trying again");
                }
            }
            pause = pause_after(began.elapsed());
        }
    }

    /// Releases the rows that the database lists as this node's and that are not in memory. Returns how many.
    async fn release_unknown(&self) -> Result<u64, StoreError> {
        let node = self.node.id();
        let mut after = None;
        let mut released = 0;
        loop {
            let page = self.store.list_held(node, DUE_FOR, after, PAGE).await?;
            after = page.last().copied();
            let is_last = page.len() < PAGE as usize;
            let claim = |row: &ClaimedRow| (row.id, row.claim.attempt);
            let unknown = self.rows.missing(page, claim).await;
            if !unknown.is_empty() {
                released += self.store.release_held(node, &unknown).await?;
            }
            if is_last {
                return Ok(released);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_comparisons_are_further_apart() {
        for (took_ms, pause_ms) in [(0, 5_000), (500, 5_000), (700, 7_000), (9_000, 15_000)] {
            let pause = pause_after(Duration::from_millis(took_ms));
            assert_eq!(pause, Duration::from_millis(pause_ms), "{took_ms}");
        }
    }
}
