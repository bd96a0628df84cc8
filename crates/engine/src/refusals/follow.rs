//! Follows the changes of the lists in the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::block::BlockList;
use domain::ports::{ListVersions, OptOutChange, OptOutStore, StoreError};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::{OptOutHashes, Refusals};

/// How often changes of other nodes are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// How many entries are read at a time.
const PAGE: u32 = 5_000;
/// After a longer time without the database everything is read again, because removed entries are deleted some day.
const MAX_GAP: Duration = Duration::from_hours(1);

/// What this node has read so far.
struct Progress {
    versions: ListVersions,
    last: Option<OptOutChange>,
    at: Instant,
}

/// Keeps the lists in memory like those in the database.
pub struct ListFollower {
    store: Arc<dyn OptOutStore>,
    refusals: Arc<Refusals>,
    progress: Mutex<Progress>,
    following: std::sync::OnceLock<AbortHandle>,
}

impl ListFollower {
    /// Reads the lists, and then follows their changes. Must be called inside a tokio runtime.
    pub(crate) async fn start(
        store: Arc<dyn OptOutStore>,
        refusals: Arc<Refusals>,
    ) -> Result<Arc<Self>, StoreError> {
        let follower = Arc::new(Self {
            store,
            refusals,
            progress: Mutex::new(Progress {
                versions: ListVersions::default(),
                last: None,
                at: Instant::now(),
            }),
            following: std::sync::OnceLock::new(),
        });
        follower.refresh().await?;
        let weak = Arc::downgrade(&follower);
        let following = supervise::spawn("list-follow", move || {
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
                        tracing::warn!(%error, "opt-outs and the block list cannot be read; trying again");
                    }
                }
            }
        });
        follower.following.get_or_init(|| following.abort_handle());
        Ok(follower)
    }

    pub(crate) fn stop(&self) {
        if let Some(following) = self.following.get() {
            following.abort();
        }
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Reads what has changed since the last time.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let mut progress = self.progress.lock().await;
        let versions = self.store.get_list_versions().await?;
        // A smaller number means that the database was restored.
        let is_lost = versions.opt_outs < progress.versions.opt_outs
            || versions.blocks < progress.versions.blocks
            || progress.at.elapsed() > MAX_GAP;
        if is_lost {
            let fresh = OptOutHashes::default();
            progress.last = self.read_changes(&fresh, None).await?;
            self.refusals.opt_outs.store(fresh.into());
        } else if versions.opt_outs != progress.versions.opt_outs {
            let current = self.refusals.opt_outs.load_full();
            progress.last = self.read_changes(&current, progress.last.take()).await?;
        }
        if is_lost || versions.blocks != progress.versions.blocks {
            let rules = self.store.list_block_rules().await?;
            let rules = rules.into_iter().map(|record| record.rule);
            self.refusals.blocks.store(BlockList::new(rules).into());
        }
        (progress.versions, progress.at) = (versions, Instant::now());
        Ok(())
    }

    /// Applies all changes after `last` and returns the last one.
    async fn read_changes(
        &self,
        hashes: &OptOutHashes,
        mut last: Option<OptOutChange>,
    ) -> Result<Option<OptOutChange>, StoreError> {
        loop {
            let changes = self.store.list_opt_out_changes(last.as_ref(), PAGE).await?;
            hashes.apply(&changes);
            let is_full = changes.len() >= PAGE as usize;
            last = changes.into_iter().next_back().or(last);
            if !is_full {
                return Ok(last);
            }
        }
    }
}
