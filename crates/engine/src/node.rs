//! This process as one of those that work on the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::NodeId;
use domain::ports::{StoreError, WorkStore};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a node lives without a heartbeat.
const LIFETIME: SignedDuration = SignedDuration::from_secs(10);
/// How often it proves that it lives.
const BEAT_EVERY: Duration = Duration::from_secs(2);

/// Without a heartbeat for so long a node sends nothing more: others may soon take it for dead, or have done so.
const SURE_FOR: Duration = Duration::from_secs(7);

/// A write that got no answer may still be done for so long: by then the network has given up what was under way and the
/// database what it had begun.
pub(crate) const UNSURE_FOR: Duration = Duration::from_secs(25);

/// Something that is held by a node. When the node had to start anew under another ID, it is not its own any more.
#[derive(Debug, Clone)]
pub(crate) struct Held<T> {
    /// By which node.
    pub(crate) by: NodeId,
    /// What.
    pub(crate) it: T,
}

/// A node, alive by its heartbeat.
pub struct Node {
    store: Arc<dyn WorkStore>,
    id: AtomicU64,
    started: Instant,
    /// Milliseconds after `started` at which the last heartbeat that counted began.
    beaten_ms: AtomicU64,
    beaten: Notify,
    renewed: Notify,
    broken: Notify,
    beating: std::sync::OnceLock<AbortHandle>,
}

impl Node {
    /// Joins, takes over what the dead left, and goes on proving that it lives.
    pub async fn start(store: Arc<dyn WorkStore>) -> Result<Arc<Self>, StoreError> {
        let id = store.join(LIFETIME).await?;
        let taken_over = store.give_up_dead(id).await?;
        tracing::info!(node = id.get(), taken_over, "joined");
        let node = Arc::new(Self {
            store,
            id: AtomicU64::new(id.get()),
            started: Instant::now(),
            beaten_ms: AtomicU64::new(0),
            beaten: Notify::new(),
            renewed: Notify::new(),
            broken: Notify::new(),
            beating: std::sync::OnceLock::new(),
        });
        let beating = tokio::spawn(beat_all(Arc::downgrade(&node)));
        node.beating.get_or_init(|| beating.abort_handle());
        Ok(node)
    }

    /// Its ID. A node that was given up gets a new one, so that its old claims settle nothing.
    pub fn id(&self) -> NodeId {
        NodeId::new(self.id.load(Ordering::Acquire)).expect("set from a node's ID")
    }

    /// Whether something is still this node's to work on. Waits while the node cannot be sure that it lives: a process
    /// that was stopped for a while must first find out.
    pub(crate) async fn owns<T>(&self, held: &Held<T>) -> bool {
        while !self.is_sure() {
            let beaten = self.beaten.notified();
            if self.is_sure() {
                break;
            }
            beaten.await;
        }
        held.by == self.id()
    }

    /// Whether it surely lives: nobody can have taken over what it has.
    pub(crate) fn is_sure(&self) -> bool {
        let beaten = Duration::from_millis(self.beaten_ms.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(beaten) < SURE_FOR
    }

    fn has_beaten(&self, began: Duration) {
        let began = u64::try_from(began.as_millis()).unwrap_or(u64::MAX);
        self.beaten_ms.store(began, Ordering::Release);
        self.beaten.notify_waiters();
    }

    /// Returns when this node got a new ID since this was asked last, for one who asks.
    pub(crate) async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// Returns when a heartbeat found that the store could not make a write durable, whoever made it.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Gives back what it holds.
    pub async fn leave(&self) {
        if let Some(beating) = self.beating.get() {
            beating.abort();
        }
        if let Err(error) = self.store.leave(self.id()).await {
            tracing::warn!(%error, "could not say goodbye; others will notice in seconds");
        }
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let began = self.started.elapsed();
        if self.store.beat(self.id(), LIFETIME).await? {
            self.has_beaten(began);
        } else {
            let id = self.store.join(LIFETIME).await?;
            tracing::warn!(
                old = self.id().get(),
                new = id.get(),
                "this node was given up as dead; it starts anew"
            );
            self.id.store(id.get(), Ordering::Release);
            self.renewed.notify_one();
            self.has_beaten(began);
        }
        let taken_over = self.store.give_up_dead(self.id()).await?;
        if taken_over > 0 {
            tracing::info!(taken_over, "took over what a dead node held");
        }
        Ok(())
    }
}

async fn beat_all(node: std::sync::Weak<Node>) {
    let mut tick = tokio::time::interval(BEAT_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(node) = node.upgrade() else { return };
        if let Err(error) = node.beat().await {
            tracing::warn!(%error, "no heartbeat; trying again");
            if matches!(error, StoreError::Broken { .. }) {
                node.broken.notify_one();
            }
        }
    }
}
