//! Compares the messages that the database says this node holds with those in memory, and releases the difference.
//!
//! A write whose caller gave up may still commit, seconds or minutes later, and a panic may come between commit and
//! hand-over. This node then holds messages without knowing, and no other node would send them while it lives.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{ClaimedRow, StoreError};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Dispatch;

const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// The pause after a failed write.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Maximum pause after a slow comparison.
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// A pause is this many times as long as the comparison before it.
const PAUSE_FACTOR: u32 = 10;
/// Messages that became due more recently are not compared: most are just being sent.
const MIN_AGE: SignedDuration = SignedDuration::from_secs(3);
const PAGE: u32 = 2_000;

#[derive(Default)]
pub(super) struct Reconcile {
    run_soon: Notify,
}

impl Reconcile {
    /// Requests a comparison soon.
    pub(super) fn run_soon(&self) {
        self.run_soon.notify_one();
    }

    async fn wait(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.run_soon.notified() => tokio::time::sleep(PAUSE_AFTER_FAILURE).await,
        }
    }
}

fn pause_after(took: Duration) -> Duration {
    (took * PAUSE_FACTOR).clamp(COMPARE_EVERY, MAX_PAUSE)
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

    /// Releases the messages that this node holds without knowing, and returns how many.
    async fn release_unknown(&self) -> Result<u64, StoreError> {
        let node = self.node.id();
        let mut after = None;
        let mut released = 0;
        loop {
            let page = self.store.list_held(node, MIN_AGE, after, PAGE).await?;
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
