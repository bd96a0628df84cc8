//! Keeps the ported numbers in memory like those in the database, and stores what this node learns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Clock;
use domain::number::ported::PortedNumber;
use domain::ports::{PortedChange, PortedStore, PortedVersions, StoreError};
use jiff::SignedDuration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;

use super::{KnownNetworks, PortedNumbers};

/// How often changes of other nodes are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// How often old entries are forgotten.
const FORGET_EVERY: Duration = Duration::from_mins(10);
/// How many entries are read at a time.
const PAGE: u32 = 5_000;
/// How many learned networks may wait to be stored; further ones are dropped.
const QUEUE: usize = 10_000;
/// How many learned networks one write stores.
const BATCH: usize = 500;

/// What this node has read so far.
struct Progress {
    versions: PortedVersions,
    last: Option<PortedChange>,
    forgot_at: Instant,
}

/// Follows the changes of ported numbers, and of the accounts that go by them.
pub(crate) struct PortedFollower {
    store: Arc<dyn PortedStore>,
    clock: Arc<dyn Clock>,
    ported: Arc<PortedNumbers>,
    /// How long a network is remembered.
    keep: SignedDuration,
    progress: Mutex<Progress>,
    learned: Mutex<mpsc::Receiver<PortedNumber>>,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

impl PortedFollower {
    /// Reads what is known, and then follows its changes. Must be called inside a tokio runtime.
    pub(crate) async fn start(
        store: Arc<dyn PortedStore>,
        clock: Arc<dyn Clock>,
        ported: Arc<PortedNumbers>,
        keep: SignedDuration,
    ) -> Result<Arc<Self>, StoreError> {
        let (sender, learned) = mpsc::channel(QUEUE);
        ported.learned.get_or_init(|| sender);
        let follower = Arc::new(Self {
            store,
            clock,
            ported,
            keep,
            progress: Mutex::new(Progress {
                versions: PortedVersions::default(),
                last: None,
                forgot_at: Instant::now(),
            }),
            learned: Mutex::new(learned),
            tasks: std::sync::OnceLock::new(),
        });
        follower.refresh().await?;
        let weak = Arc::downgrade(&follower);
        let following = supervise::spawn("ported-follow", move || {
            let weak = weak.clone();
            async move {
                let mut tick = tokio::time::interval(FOLLOW_EVERY);
                tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                loop {
                    tick.tick().await;
                    let Some(follower) = weak.upgrade() else {
                        return;
                    };
                    if let Err(error) = follower.refresh().await {
                        tracing::warn!(%error, "ported numbers cannot be read; trying again");
                    }
                }
            }
        });
        let storing = supervise::spawn("ported-store", {
            let follower = follower.clone();
            move || follower.clone().store_all()
        });
        let tasks = [following, storing].map(|task| task.abort_handle());
        follower.tasks.get_or_init(|| tasks);
        Ok(follower)
    }

    pub(crate) fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
    }

    /// Stores what this node learns. What cannot be stored is known on this node until it stops.
    async fn store_all(self: Arc<Self>) {
        let mut learned = self.learned.lock().await;
        let mut batch = Vec::with_capacity(BATCH);
        while learned.recv_many(&mut batch, BATCH).await > 0 {
            if let Err(error) = self.store.remember_ported(&batch).await {
                let numbers = batch.len();
                tracing::warn!(%error, numbers, "networks of ported numbers cannot be stored");
            }
            batch.clear();
        }
    }

    /// Reads what has changed since the last time.
    async fn refresh(&self) -> Result<(), StoreError> {
        let mut progress = self.progress.lock().await;
        let versions = self.store.get_ported_versions().await?;
        let before = progress.versions;
        // A smaller number means that the database was restored.
        let is_lost = versions.changes < before.changes || versions.removals != before.removals;
        if is_lost {
            let fresh = KnownNetworks::default();
            progress.last = self.read_changes(&fresh, None).await?;
            self.ported.known.store(fresh.into());
        } else if versions.changes != before.changes {
            let known = self.ported.known.load_full();
            progress.last = self.read_changes(&known, progress.last.take()).await?;
        }
        if versions.access != before.access {
            let accounts = self.store.list_ported_accounts().await?;
            let accounts = accounts.into_iter().collect();
            self.ported.accounts.store(Arc::new(accounts));
        }
        progress.versions = versions;
        if progress.forgot_at.elapsed() >= FORGET_EVERY {
            let before = self.clock.now() - self.keep;
            self.ported.known.load().forget_before(before);
            progress.forgot_at = Instant::now();
        }
        Ok(())
    }

    /// Applies all changes after `last` and returns the last one.
    async fn read_changes(
        &self,
        known: &KnownNetworks,
        mut last: Option<PortedChange>,
    ) -> Result<Option<PortedChange>, StoreError> {
        loop {
            let changes = self.store.list_ported_changes(last.as_ref(), PAGE).await?;
            for change in &changes {
                known.apply(&change.ported);
            }
            let is_full = changes.len() >= PAGE as usize;
            last = changes.into_iter().next_back().or(last);
            if !is_full {
                return Ok(last);
            }
        }
    }
}
