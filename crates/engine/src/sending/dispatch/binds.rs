//! This node's share of the binds: it has as many links to a carrier as binds are its own, never more.
//!
//! Again and again it is compared what the node has with what should be: what is free is taken before links are opened,
//! and links are closed before a bind is given back. So there are never more links than binds, whatever is cut short. A
//! node that is not sure that it lives has no binds: others may take them for theirs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::NodeId;
use domain::ports::{BindShare, BindWish, StoreError};
use tokio::sync::Notify;

use super::Dispatch;
use crate::sending::carriers::Carriers;
use crate::sending::carriers::queue::CarrierQueue;

/// How often binds are shared out anew.
const SHARE_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether links that are to go are closed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The most messages of a pool that are given back at once.
const RELEASE_MOST: u32 = 5_000;

/// What is known about binds beside what each queue knows.
pub(super) struct Binds {
    /// Lines that are out of service and may still have links.
    retiring: Mutex<Vec<Arc<CarrierQueue>>>,
    is_alone: AtomicBool,
    hurry: Notify,
}

impl Default for Binds {
    fn default() -> Self {
        Self {
            retiring: Mutex::default(),
            is_alone: AtomicBool::new(true),
            hurry: Notify::new(),
        }
    }
}

impl Binds {
    /// Shares out now.
    pub(super) fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// Counts the links of queues that go out of service as long as they are there.
    pub(super) fn retiring(&self, queues: impl IntoIterator<Item = Arc<CarrierQueue>>) {
        self.lock().extend(queues);
    }

    /// A queue that went out of service has no more links, or it stays in service after all.
    pub(super) fn retired(&self, queue: &Arc<CarrierQueue>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, queue));
        self.hurry();
    }

    /// How many binds of a carrier are with queues that are in service no more.
    fn ending(&self, carrier: &str, in_service: &Carriers) -> u16 {
        let retiring = self.lock();
        let its = retiring
            .iter()
            .filter(|queue| queue.carrier.name() == carrier && !in_service.has(queue));
        its.map(|queue| queue.carrier.open_binds()).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<CarrierQueue>>> {
        self.retiring.lock().expect("no holder panics")
    }
}

impl Dispatch {
    /// Whether no other node sends.
    pub(super) fn is_alone(&self) -> bool {
        self.binds.is_alone.load(Ordering::Relaxed)
    }

    pub(super) async fn share_all(self: Arc<Self>) {
        let mut shared_as = self.node.id();
        loop {
            let pause = match self.share(&mut shared_as).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "binds cannot be shared out; trying again");
                    SHARE_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.binds.hurry.notified() => {}
                () = self.node.renewed() => {}
            }
        }
    }

    /// Brings what this node has nearer to what it should have, and says when to look again.
    async fn share(&self, shared_as: &mut NodeId) -> Result<Duration, StoreError> {
        if !self.node.is_sure() || self.node.id() != *shared_as {
            if !self.close_all() || !self.node.is_sure() {
                return Ok(LOOK_EVERY);
            }
            *shared_as = self.node.id();
        }
        let carriers = self.routing.carriers();
        let wish = |queue: &Arc<CarrierQueue>| BindWish {
            carrier: queue.carrier.name().to_owned(),
            total: queue.carrier.binds(),
        };
        let wishes: Vec<_> = carriers.queues.iter().map(wish).collect();
        let shared = self.store.share_binds(*shared_as, &wishes).await?;
        let Some(shared) = shared.filter(|_| self.node.is_sure()) else {
            self.close_all();
            return Ok(LOOK_EVERY);
        };
        self.binds
            .is_alone
            .store(shared.is_alone, Ordering::Relaxed);
        let mut is_closing = false;
        for (queue, share) in carriers.queues.iter().zip(&shared.shares) {
            queue.set_elsewhere(share.pool, share.is_up_elsewhere);
            is_closing |= self.follow(*shared_as, &carriers, queue, share).await?;
        }
        for carrier in &shared.left {
            let keep = self.binds.ending(carrier, &carriers);
            self.store.give_up_binds(*shared_as, carrier, keep).await?;
            is_closing |= keep > 0;
        }
        if is_closing {
            return Ok(LOOK_EVERY);
        }
        self.refresh_pools().await?;
        if !carriers.queues.is_empty() {
            self.release_pools(*shared_as, &carriers).await?;
        }
        Ok(SHARE_EVERY)
    }

    /// Creates the pools that are wanted, and learns of those that other nodes created.
    pub(super) async fn refresh_pools(&self) -> Result<(), StoreError> {
        let wanted = self.pools.take_wanted();
        match self.store.list_route_pools(&wanted).await {
            Ok(pools) => {
                self.pools.set(pools);
                Ok(())
            }
            Err(error) => {
                self.pools.want(wanted);
                Err(error)
            }
        }
    }

    /// Releases messages that wait in pools and have to be routed anew.
    async fn release_pools(&self, node: NodeId, carriers: &Carriers) -> Result<(), StoreError> {
        let known = carriers.all_names();
        let released = self.store.release_pools(node, &known, RELEASE_MOST).await?;
        if released > 0 {
            tracing::info!(released, "messages wait for any carrier again");
        }
        self.route_anew().await
    }

    /// Lets a carrier have the links that are this node's, and gives back what is above once it is closed. Says whether
    /// something is still to be closed.
    async fn follow(
        &self,
        node: NodeId,
        carriers: &Carriers,
        queue: &CarrierQueue,
        share: &BindShare,
    ) -> Result<bool, StoreError> {
        let carrier = &queue.carrier;
        let ending = self.binds.ending(carrier.name(), carriers);
        let mine = share.held.min(share.share);
        carrier.allow_binds(mine.saturating_sub(ending));
        queue.resize_window();
        let open = carrier.open_binds().saturating_add(ending);
        let (has, keep) = (share.held + share.surplus, mine.max(open));
        if keep < has {
            self.store.give_up_binds(node, carrier.name(), keep).await?;
        }
        Ok(keep > mine)
    }

    /// Gives up every link, and says whether all are closed.
    fn close_all(&self) -> bool {
        let mut queues = self.routing.carriers().queues.clone();
        queues.extend(self.binds.lock().iter().cloned());
        for queue in &queues {
            queue.carrier.allow_binds(0);
        }
        queues.iter().all(|queue| queue.carrier.open_binds() == 0)
    }
}
