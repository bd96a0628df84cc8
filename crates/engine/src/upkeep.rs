//! What has to be done from time to time: ending what waited too long, forgetting what is old.

use std::sync::Arc;
use std::time::Duration;

use domain::Clock;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{Store, StoreError, WorkStore};
use jiff::SignedDuration;
use tokio::task::{AbortHandle, JoinHandle};

use crate::callbacks::Callbacks;
use crate::node::Node;

/// How often messages without a receipt are looked at.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// How often what was counted lately is added up.
const ADD_UP_EVERY: Duration = Duration::from_secs(5);
/// The most counts that one step adds up: of batches, so of many messages each.
const ADD_UP_STEP: u32 = 5_000;
/// How often old rows are looked for.
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// How long receipts that matched nothing are kept.
const KEEP_RECEIPTS: SignedDuration = SignedDuration::from_hours(72);
/// The most rows that one step touches, so that no other write waits long behind it.
const STEP: u32 = 500;

/// The background work of a node.
pub(crate) struct Upkeep {
    tasks: [AbortHandle; 3],
}

impl Upkeep {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        callbacks: Arc<Callbacks>,
        keep_messages: Option<SignedDuration>,
    ) -> Self {
        let expiring = spawn_expiry(store.clone(), node, callbacks);
        let adding_up = supervise::spawn("traffic", {
            let store = store.clone();
            move || add_up_all(store.clone())
        });
        let prune = move || prune_all(store.clone(), clock.clone(), keep_messages);
        let pruning = supervise::spawn("retention", prune);
        Self {
            tasks: [
                expiring.abort_handle(),
                adding_up.abort_handle(),
                pruning.abort_handle(),
            ],
        }
    }

    pub(crate) fn stop(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Ends messages whose time is over.
pub(crate) fn spawn_expiry(
    store: Arc<dyn WorkStore>,
    node: Arc<Node>,
    callbacks: Arc<Callbacks>,
) -> JoinHandle<()> {
    supervise::spawn("expiry", move || {
        expire_all(store.clone(), node.clone(), callbacks.clone())
    })
}

async fn expire_all(store: Arc<dyn WorkStore>, node: Arc<Node>, callbacks: Arc<Callbacks>) {
    let mut tick = tokio::time::interval(EXPIRE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            let hold = callbacks.reserve(STEP as usize);
            let holder = node.id();
            match store.expire_sent(holder, STEP, hold.is_some()).await {
                Ok(ended) => {
                    callbacks.take(holder, hold, ended.iter());
                    if ended.len() < STEP as usize {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "messages whose time is over wait a little longer");
                    callbacks.lost_track();
                    break;
                }
            }
        }
    }
}

async fn add_up_all(store: Arc<dyn Store>) {
    let mut tick = tokio::time::interval(ADD_UP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            match store.add_up_traffic(ADD_UP_STEP).await {
                Ok(added) if added >= u64::from(ADD_UP_STEP) => tokio::task::yield_now().await,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "counts are added up later");
                    break;
                }
            }
        }
    }
}

async fn prune_all(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    keep_messages: Option<SignedDuration>,
) {
    let mut tick = tokio::time::interval(PRUNE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = prune(&*store, &*clock, keep_messages).await {
            tracing::warn!(%error, "old rows stay for now");
        }
    }
}

async fn prune(
    store: &dyn Store,
    clock: &dyn Clock,
    keep_messages: Option<SignedDuration>,
) -> Result<(), StoreError> {
    while store.prune_recipients(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_receipts(KEEP_RECEIPTS, STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_grants(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    pass(KillPoint::PruneStep);
    let Some(age) = keep_messages else {
        return Ok(());
    };
    while store.prune_messages(age, STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    Ok(())
}
