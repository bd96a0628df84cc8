//! Compares the callbacks that the database says this node holds with those in memory.
//!
//! A commit that lands after its caller gave up, or a panic between commit and hand-over, leaves callbacks that this
//! node holds without knowing. They are found and released here, however late they appear.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::StoreError;
use jiff::SignedDuration;
use tokio::time::Instant;

use super::Callbacks;

const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// The pause after a failed write.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// While the database is slow, pauses are this many times as long as a comparison.
const PAUSE_FACTOR: u32 = 10;
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// More recent callbacks are not compared: nearly all of them are being sent.
const MIN_AGE: SignedDuration = SignedDuration::from_secs(3);
const PAGE: u32 = 2_000;

impl Callbacks {
    pub(super) async fn compare_all(self: Arc<Self>) {
        let mut pause = COMPARE_EVERY;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.write_failed.notified() => tokio::time::sleep(PAUSE_AFTER_FAILURE).await,
            }
            metrics::gauge!("switchboard_callbacks_held").set(held_gauge(self.rows.len()));
            let began = Instant::now();
            match self.compare().await {
                Ok(0) => {}
                Ok(count) => {
                    metrics::counter!("switchboard_rows_released_total", "queue" => "callbacks")
                        .increment(count);
                    tracing::info!(
                        count,
                        "callbacks that this node held without knowing are back in the queue"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "callbacks cannot be compared with the database; trying again");
                    self.write_failed();
                }
            }
            pause = (began.elapsed() * PAUSE_FACTOR).clamp(COMPARE_EVERY, MAX_PAUSE);
        }
    }

    /// Releases callbacks that this node holds without knowing, and returns how many.
    async fn compare(&self) -> Result<u64, StoreError> {
        let node = self.node.id();
        let (mut after, mut released) = (None, 0);
        loop {
            let listed = self
                .store
                .list_held_callbacks(node, MIN_AGE, after, PAGE)
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

fn held_gauge(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
