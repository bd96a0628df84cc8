//! This process as one of those that work on the database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::kill_point::{KillPoint, pass};
use domain::ports::{Beat, NodeCard, StoreError, WorkStore};
use domain::{Clock, NodeId, Timestamp};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a node lives without a heartbeat.
const LIFETIME: SignedDuration = SignedDuration::from_secs(10);
/// How often it proves that it lives.
const BEAT_EVERY: Duration = Duration::from_secs(2);

/// How long one try at a heartbeat may take: less than a third of the lifetime, so that there is time for others.
const BEAT_WITHIN: Duration = Duration::from_millis(3_200);
/// How soon after a heartbeat that failed the next one is tried.
const BEAT_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How long a node tries to join at the start. Heartbeats time out quickly, because others depend on them; nobody depends
/// on this first one.
const JOIN_WITHIN: Duration = Duration::from_secs(20);
/// How often the rows of dead nodes are looked for.
const GIVE_UP_EVERY: Duration = Duration::from_secs(2);

/// Without a heartbeat for so long a node sends nothing more: others may soon take it for dead, or have done so.
const SURE_FOR: Duration = Duration::from_secs(7);

/// Something that is held by a node. When the node had to start anew under another ID, it is not its own any more.
#[derive(Debug, Clone)]
pub(crate) struct Held<T> {
    /// By which node.
    pub(crate) by: NodeId,
    /// What.
    pub(crate) it: T,
}

/// When the last heartbeat that counted began, on two clocks: either of them can stand still while the node does.
#[derive(Debug, Clone, Copy)]
struct Lease {
    /// The process's monotonic clock.
    began: Instant,
    /// The database's clock, as far as this process knows it.
    began_at: Timestamp,
}

impl Lease {
    fn begin(clock: &dyn Clock) -> Self {
        Self {
            began: Instant::now(),
            began_at: clock.now(),
        }
    }

    /// Whether nobody can have given the node up by now.
    fn holds(&self, now: Instant, now_at: Timestamp) -> bool {
        let database = Duration::try_from(now_at.duration_since(self.began_at));
        now.saturating_duration_since(self.began) < SURE_FOR
            // The database's clock may have been set back: then the other clock decides.
            && database.unwrap_or(Duration::ZERO) < SURE_FOR
    }
}

/// A node, alive by its heartbeat.
pub struct Node {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    card: NodeCard,
    id: AtomicU64,
    started: Instant,
    lease: Mutex<Lease>,
    hurry: Arc<Notify>,
    beaten: Notify,
    renewed: Notify,
    broken: Notify,
    outdated: Notify,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

impl Node {
    /// Joins, takes over what the dead left where it works, and goes on proving that it lives.
    /// `clock` tells the database's time.
    pub async fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        card: NodeCard,
    ) -> Result<Arc<Self>, StoreError> {
        let (lease, id) = join_first(&*store, &*clock, &card).await?;
        pass(KillPoint::NodeJoined);
        let taken_over = if card.works {
            store.give_up_dead(id).await?
        } else {
            0
        };
        tracing::info!(node = id.get(), taken_over, "joined");
        let node = Arc::new(Self {
            store,
            clock,
            card,
            id: AtomicU64::new(id.get()),
            started: Instant::now(),
            lease: Mutex::new(lease),
            hurry: Arc::default(),
            beaten: Notify::new(),
            renewed: Notify::new(),
            broken: Notify::new(),
            outdated: Notify::new(),
            tasks: std::sync::OnceLock::new(),
        });
        let (weak, hurry) = (Arc::downgrade(&node), node.hurry.clone());
        let beat = move || beat_all(weak.clone(), hurry.clone());
        let beating = supervise::spawn("heartbeat", beat);
        let weak = Arc::downgrade(&node);
        let giving_up = supervise::spawn("dead-nodes", move || give_up_all(weak.clone()));
        node.tasks
            .get_or_init(|| [beating.abort_handle(), giving_up.abort_handle()]);
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
            self.hurry.notify_one();
            beaten.await;
        }
        held.by == self.id()
    }

    /// Whether it surely lives: nobody can have taken over what it has.
    pub(crate) fn is_sure(&self) -> bool {
        let lease = *self.lease();
        lease.holds(Instant::now(), self.clock.now())
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_beaten(&self, lease: Lease) {
        *self.lease() = lease;
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

    /// Returns when a newer program has changed the database so that this one must not go on.
    pub(crate) async fn outdated(&self) {
        self.outdated.notified().await;
    }

    /// Whether it works through what was accepted.
    pub(crate) fn works(&self) -> bool {
        self.card.works
    }

    /// Gives back what it holds.
    pub async fn leave(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        pass(KillPoint::NodeLeaves);
        if let Err(error) = self.store.leave(self.id()).await {
            tracing::warn!(%error, "could not say goodbye; others will notice in seconds");
        }
        pass(KillPoint::NodeLeft);
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let lease = Lease::begin(&*self.clock);
        match within(self.store.beat(self.id(), LIFETIME)).await? {
            Beat::Alive => {}
            Beat::GivenUp => self.join_anew().await?,
            Beat::Outdated { known, oldest } => {
                tracing::error!(
                    known,
                    oldest,
                    "a newer version has changed the database; this one cannot work with it any more"
                );
                self.outdated.notify_one();
                return Ok(());
            }
        }
        self.has_beaten(lease);
        pass(KillPoint::NodeBeaten);
        Ok(())
    }

    /// Puts back in the queue what dead nodes hold.
    async fn give_up_dead(&self) -> Result<(), StoreError> {
        let taken_over = self.store.give_up_dead(self.id()).await?;
        if taken_over > 0 {
            pass(KillPoint::DeadGivenUp);
            tracing::info!(taken_over, "took over what a dead node held");
        }
        Ok(())
    }

    async fn join_anew(&self) -> Result<(), StoreError> {
        let up_for = SignedDuration::try_from(self.started.elapsed());
        let up_for = up_for.unwrap_or(SignedDuration::MAX);
        let id = within(self.store.join(&self.card, up_for, LIFETIME)).await?;
        tracing::warn!(
            old = self.id().get(),
            new = id.get(),
            "this node was given up as dead; it starts anew"
        );
        self.id.store(id.get(), Ordering::Release);
        self.renewed.notify_one();
        Ok(())
    }
}

/// Makes this process known for the first time, also on a database that takes its time.
async fn join_first(
    store: &dyn WorkStore,
    clock: &dyn Clock,
    card: &NodeCard,
) -> Result<(Lease, NodeId), StoreError> {
    let give_up = Instant::now() + JOIN_WITHIN;
    loop {
        let lease = Lease::begin(clock);
        match store.join(card, SignedDuration::ZERO, LIFETIME).await {
            Ok(id) => return Ok((lease, id)),
            Err(error @ StoreError::Unavailable { .. }) if Instant::now() < give_up => {
                tracing::warn!(%error, "the node cannot join yet; trying on");
                tokio::time::sleep(BEAT_AGAIN_AFTER).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn beat_all(node: Weak<Node>, hurry: Arc<Notify>) {
    let mut pause = BEAT_EVERY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = hurry.notified() => tokio::time::sleep(BEAT_AGAIN_AFTER).await,
        }
        let Some(node) = node.upgrade() else { return };
        pause = BEAT_EVERY;
        if let Err(error) = node.beat().await {
            tracing::warn!(%error, "no heartbeat; trying again");
            if matches!(error, StoreError::Broken { .. }) {
                node.broken.notify_one();
            }
            pause = BEAT_AGAIN_AFTER;
        }
    }
}

/// A call without an answer in time counts as failed.
async fn within<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(BEAT_WITHIN, call).await;
    answer.unwrap_or_else(|elapsed| {
        Err(StoreError::Unavailable {
            source: Box::new(elapsed),
        })
    })
}

/// Apart from the heartbeats: this waits for a connection like everything else, and they must not wait for it.
async fn give_up_all(node: Weak<Node>) {
    let mut tick = tokio::time::interval(GIVE_UP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(node) = node.upgrade() else { return };
        if !node.works() || !node.is_sure() {
            continue;
        }
        if let Err(error) = node.give_up_dead().await {
            tracing::warn!(%error, "the rows of dead nodes cannot be looked for; trying again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since the last heartbeat, by the process's clock and by the database's, and whether the node may send.
    #[test]
    fn a_node_sends_only_while_both_clocks_say_that_it_lives() {
        for (case, own, database, holds) in [
            ("both tell of little time", 2, 2, true),
            ("both tell of much", 8, 8, false),
            (
                "the process stood still, and its clock with it",
                2,
                60,
                false,
            ),
            ("the database does not answer", 8, 2, false),
            ("the database's clock was set back", 2, -3_600, true),
            (
                "it was set back, and the process stood still",
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
