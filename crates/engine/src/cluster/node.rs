//! This process as a node: joining, heartbeats, taking over from dead nodes, leaving.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::kill_point::{KillPoint, pass};
use domain::ports::{HeartbeatResult, NodeInfo, StoreError, WorkStore};
use domain::{Clock, NodeId, Timestamp};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A node counts as dead after this long without a heartbeat.
const LIFETIME: SignedDuration = SignedDuration::from_secs(10);
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// Less than a third of the lifetime, so that a failed heartbeat can be retried in time.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(3_200);
const HEARTBEAT_RETRY_AFTER: Duration = Duration::from_millis(250);
/// How long a node tries to join. Longer than for a heartbeat, because no other node depends on it.
const JOIN_TIMEOUT: Duration = Duration::from_secs(20);
const TAKE_OVER_EVERY: Duration = Duration::from_secs(2);

/// A node stops sending after this long without a heartbeat, well before others may take it for dead.
const LEASE_TIME: Duration = Duration::from_secs(7);

/// Something that a node claimed. If this process had to rejoin under another ID since, the claim is void.
#[derive(Debug, Clone)]
pub(crate) struct Held<T> {
    pub(crate) by: NodeId,
    pub(crate) item: T,
}

/// When the last successful heartbeat began, on two clocks: either may stand still while the process is stopped.
#[derive(Debug, Clone, Copy)]
struct Lease {
    began: Instant,
    /// The database's time, as far as this process knows it.
    began_at: Timestamp,
}

impl Lease {
    fn begin(clock: &dyn Clock) -> Self {
        Self {
            began: Instant::now(),
            began_at: clock.now(),
        }
    }

    /// Whether no other node can have taken this one for dead.
    fn holds(&self, now: Instant, now_at: Timestamp) -> bool {
        let database = Duration::try_from(now_at.duration_since(self.began_at));
        now.saturating_duration_since(self.began) < LEASE_TIME
            // The database's clock may have been set back; then only the monotonic clock decides.
            && database.unwrap_or(Duration::ZERO) < LEASE_TIME
    }
}

pub struct Node {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    info: NodeInfo,
    id: AtomicU64,
    started: Instant,
    lease: Mutex<Lease>,
    renew_now: Arc<Notify>,
    beat_done: Notify,
    rejoined: Notify,
    broken: Notify,
    outdated: Notify,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

impl Node {
    /// Joins, takes over from dead nodes if it is a worker, and starts the heartbeats. `clock` tells the database's
    /// time.
    pub async fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        info: NodeInfo,
    ) -> Result<Arc<Self>, StoreError> {
        let (lease, id) = join_first(&*store, &*clock, &info).await?;
        pass(KillPoint::NodeJoined);
        let taken_over = if info.works {
            store.remove_dead_nodes(id).await?
        } else {
            0
        };
        tracing::info!(node = id.get(), taken_over, "joined");
        let node = Arc::new(Self {
            store,
            clock,
            info,
            id: AtomicU64::new(id.get()),
            started: Instant::now(),
            lease: Mutex::new(lease),
            renew_now: Arc::default(),
            beat_done: Notify::new(),
            rejoined: Notify::new(),
            broken: Notify::new(),
            outdated: Notify::new(),
            tasks: std::sync::OnceLock::new(),
        });
        let (weak, renew_now) = (Arc::downgrade(&node), node.renew_now.clone());
        let renew_heartbeat = move || run_heartbeats(weak.clone(), renew_now.clone());
        let heartbeats = supervise::spawn("heartbeat", renew_heartbeat);
        let weak = Arc::downgrade(&node);
        let takeovers = supervise::spawn("dead-nodes", move || run_takeovers(weak.clone()));
        node.tasks
            .get_or_init(|| [heartbeats.abort_handle(), takeovers.abort_handle()]);
        Ok(node)
    }

    /// A node that was taken for dead gets another ID, so that its old claims settle nothing.
    pub fn id(&self) -> NodeId {
        NodeId::new(self.id.load(Ordering::Acquire)).expect("set from a node's ID")
    }

    /// Whether the claim is still valid. Waits for a heartbeat if the last one is too old: a process that was stopped
    /// for a while must first find out whether others took over.
    pub(crate) async fn owns<T>(&self, held: &Held<T>) -> bool {
        while !self.has_lease() {
            let beat_done = self.beat_done.notified();
            if self.has_lease() {
                break;
            }
            self.renew_now.notify_one();
            beat_done.await;
        }
        held.by == self.id()
    }

    /// Whether no other node can have taken over what this one holds.
    pub(crate) fn has_lease(&self) -> bool {
        let lease = *self.lease();
        lease.holds(Instant::now(), self.clock.now())
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew_lease(&self, lease: Lease) {
        *self.lease() = lease;
        self.beat_done.notify_waiters();
    }

    /// Returns when this node got another ID since the last call. For a single caller.
    pub(crate) async fn rejoined(&self) {
        self.rejoined.notified().await;
    }

    /// Returns when a heartbeat found that the store could not make some write durable.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Returns when a newer program has changed the database so that this one must stop.
    pub(crate) async fn outdated(&self) {
        self.outdated.notified().await;
    }

    /// Whether it is a worker.
    pub(crate) fn works(&self) -> bool {
        self.info.works
    }

    /// Leaves the cluster and releases everything that this node holds.
    pub async fn leave(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        pass(KillPoint::NodeLeaves);
        if let Err(error) = self.store.leave(self.id()).await {
            tracing::warn!(%error, "could not leave the cluster; other nodes will notice in seconds");
        }
        pass(KillPoint::NodeLeft);
    }

    async fn renew_heartbeat(&self) -> Result<(), StoreError> {
        let lease = Lease::begin(&*self.clock);
        match with_timeout(self.store.renew_heartbeat(self.id(), LIFETIME)).await? {
            HeartbeatResult::Alive => {}
            HeartbeatResult::GivenUp => self.rejoin().await?,
            HeartbeatResult::Outdated { known, oldest } => {
                tracing::error!(
                    known,
                    oldest,
                    "a newer version has changed the database; this one cannot work with it any more"
                );
                self.outdated.notify_one();
                return Ok(());
            }
        }
        self.renew_lease(lease);
        pass(KillPoint::NodeBeaten);
        Ok(())
    }

    /// Releases everything that dead nodes hold.
    async fn take_over_from_dead(&self) -> Result<(), StoreError> {
        let taken_over = self.store.remove_dead_nodes(self.id()).await?;
        if taken_over > 0 {
            pass(KillPoint::DeadGivenUp);
            tracing::info!(taken_over, "took over what a dead node held");
        }
        Ok(())
    }

    async fn rejoin(&self) -> Result<(), StoreError> {
        let up_for = SignedDuration::try_from(self.started.elapsed());
        let up_for = up_for.unwrap_or(SignedDuration::MAX);
        let id = with_timeout(self.store.join(&self.info, up_for, LIFETIME)).await?;
        tracing::warn!(
            old = self.id().get(),
            new = id.get(),
            "this node was given up as dead; it rejoins under another ID"
        );
        self.id.store(id.get(), Ordering::Release);
        self.rejoined.notify_one();
        Ok(())
    }
}

/// Joins for the first time, also on a database that is slow to respond.
async fn join_first(
    store: &dyn WorkStore,
    clock: &dyn Clock,
    info: &NodeInfo,
) -> Result<(Lease, NodeId), StoreError> {
    let deadline = Instant::now() + JOIN_TIMEOUT;
    loop {
        let lease = Lease::begin(clock);
        match store.join(info, SignedDuration::ZERO, LIFETIME).await {
            Ok(id) => return Ok((lease, id)),
            Err(error @ StoreError::Unavailable { .. }) if Instant::now() < deadline => {
                tracing::warn!(%error, "the node cannot join yet; trying again");
                tokio::time::sleep(HEARTBEAT_RETRY_AFTER).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn run_heartbeats(node: Weak<Node>, renew_now: Arc<Notify>) {
    let mut pause = HEARTBEAT_EVERY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = renew_now.notified() => tokio::time::sleep(HEARTBEAT_RETRY_AFTER).await,
        }
        let Some(node) = node.upgrade() else { return };
        pause = HEARTBEAT_EVERY;
        if let Err(error) = node.renew_heartbeat().await {
            tracing::warn!(%error, "no heartbeat; trying again");
            if matches!(error, StoreError::Broken { .. }) {
                node.broken.notify_one();
            }
            pause = HEARTBEAT_RETRY_AFTER;
        }
    }
}

async fn with_timeout<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(HEARTBEAT_TIMEOUT, call).await;
    answer.unwrap_or_else(|elapsed| {
        Err(StoreError::Unavailable {
            source: Box::new(elapsed),
        })
    })
}

/// Runs apart from the heartbeats, because it may have to wait for a connection.
async fn run_takeovers(node: Weak<Node>) {
    let mut tick = tokio::time::interval(TAKE_OVER_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(node) = node.upgrade() else { return };
        if !node.works() || !node.has_lease() {
            continue;
        }
        if let Err(error) = node.take_over_from_dead().await {
            tracing::warn!(%error, "cannot look for rows of dead nodes; trying again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since the last heartbeat by the process's clock and by the database's, and whether the node may send.
    #[test]
    fn a_node_sends_only_while_its_lease_holds_on_both_clocks() {
        for (case, own, database, holds) in [
            ("little time on both", 2, 2, true),
            ("much time on both", 8, 8, false),
            (
                "the process was stopped, and its clock with it",
                2,
                60,
                false,
            ),
            ("the database does not answer", 8, 2, false),
            ("the database's clock was set back", 2, -3_600, true),
            (
                "the database's clock was set back, and the process was stopped",
                8,
                -3_600,
                false,
            ),
        ] {
            let lease = Lease {
                began: Instant::now(),
                began_at: Timestamp::from_second(1_800_000_000).expect("in range"),
            };
            let now = lease.began + Duration::from_secs(own);
            let now_at = lease.began_at + SignedDuration::from_secs(database);
            assert_eq!(lease.holds(now, now_at), holds, "{case}");
        }
    }
}
