//! This node's share of the binds: it has at most as many links to a carrier as it has binds.
//!
//! The node regularly compares its links with its fair share. It takes a free bind before it opens a link, and closes a
//! link before it gives the bind back, so there are never more links than binds, whatever is interrupted. A node
//! without a lease has no binds, because others may have taken them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::NodeId;
use domain::ports::{BindDemand, BindShare, StoreError};
use tokio::sync::Notify;

use super::Dispatch;
use crate::sending::carriers::Carriers;
use crate::sending::carriers::queue::CarrierQueue;

/// How often the shares are recomputed.
const SHARE_EVERY: Duration = Duration::from_secs(1);
/// How often the node checks whether links are closed.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of messages of a pool that are released at once.
const MAX_RELEASED: u32 = 5_000;

pub(super) struct Binds {
    /// Queues that are out of service and may still have links.
    retiring: Mutex<Vec<Arc<CarrierQueue>>>,
    is_alone: AtomicBool,
    run_soon: Notify,
}

impl Default for Binds {
    fn default() -> Self {
        Self {
            retiring: Mutex::default(),
            is_alone: AtomicBool::new(true),
            run_soon: Notify::new(),
        }
    }
}

impl Binds {
    /// Recomputes the shares now.
    pub(super) fn run_soon(&self) {
        self.run_soon.notify_one();
    }

    /// Keeps counting the links of queues that go out of service.
    pub(super) fn retiring(&self, queues: impl IntoIterator<Item = Arc<CarrierQueue>>) {
        self.lock().extend(queues);
    }

    /// Stops counting: the queue has no links any more, or stays in service.
    pub(super) fn retired(&self, queue: &Arc<CarrierQueue>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, queue));
        self.run_soon();
    }

    /// How many binds of a carrier belong to queues that are out of service.
    fn ending(&self, carrier: &str, in_service: &Carriers) -> u16 {
        let retiring = self.lock();
        let queues = retiring
            .iter()
            .filter(|queue| queue.carrier.name() == carrier && !in_service.has(queue));
        queues.map(|queue| queue.carrier.open_binds()).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<CarrierQueue>>> {
        self.retiring.lock().expect("no holder panics")
    }
}

impl Dispatch {
    pub(super) fn is_alone(&self) -> bool {
        self.binds.is_alone.load(Ordering::Relaxed)
    }

    pub(super) async fn share_all(self: Arc<Self>) {
        let mut shared_as = self.node.id();
        loop {
            let pause = match self.share(&mut shared_as).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "binds cannot be shared among nodes; trying again");
                    SHARE_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.binds.run_soon.notified() => {}
                () = self.node.rejoined() => {}
            }
        }
    }

    /// Adjusts this node's links to its share, and returns when to check again.
    async fn share(&self, shared_as: &mut NodeId) -> Result<Duration, StoreError> {
        if !self.node.has_lease() || self.node.id() != *shared_as {
            if !self.close_all() || !self.node.has_lease() {
                return Ok(CHECK_EVERY);
            }
            *shared_as = self.node.id();
        }
        let carriers = self.routing.carriers();
        let demand = |queue: &Arc<CarrierQueue>| BindDemand {
            carrier: queue.carrier.name().to_owned(),
            total: queue.carrier.binds(),
        };
        let demands: Vec<_> = carriers.queues.iter().map(demand).collect();
        let shared = self.store.share_binds(*shared_as, &demands).await?;
        let Some(shared) = shared.filter(|_| self.node.has_lease()) else {
            self.close_all();
            return Ok(CHECK_EVERY);
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
            self.store.release_binds(*shared_as, carrier, keep).await?;
            is_closing |= keep > 0;
        }
        if is_closing {
            return Ok(CHECK_EVERY);
        }
        self.refresh_pools().await?;
        if !carriers.queues.is_empty() {
            self.release_pools(*shared_as, &carriers).await?;
        }
        Ok(SHARE_EVERY)
    }

    /// Creates missing pools, and reads those that other nodes created.
    pub(super) async fn refresh_pools(&self) -> Result<(), StoreError> {
        let missing = self.pools.take_missing();
        match self.store.list_route_pools(&missing).await {
            Ok(pools) => {
                self.pools.set(pools);
                Ok(())
            }
            Err(error) => {
                self.pools.add_missing(missing);
                Err(error)
            }
        }
    }

    /// Releases messages in pools that must be routed again.
    async fn release_pools(&self, node: NodeId, carriers: &Carriers) -> Result<(), StoreError> {
        let known = carriers.all_names();
        let released = self.store.release_pools(node, &known, MAX_RELEASED).await?;
        if released > 0 {
            tracing::info!(
                released,
                "messages in pools without a carrier are released to be routed again"
            );
        }
        self.reroute_stuck().await
    }

    /// Allows a carrier the links of this node's share, and gives back surplus binds once their links are closed.
    /// Returns whether links are still to be closed.
    async fn follow(
        &self,
        node: NodeId,
        carriers: &Carriers,
        queue: &CarrierQueue,
        share: &BindShare,
    ) -> Result<bool, StoreError> {
        let carrier = &queue.carrier;
        let ending = self.binds.ending(carrier.name(), carriers);
        let own = share.held.min(share.share);
        carrier.allow_binds(own.saturating_sub(ending));
        queue.resize_window();
        let open = carrier.open_binds().saturating_add(ending);
        let (has, keep) = (share.held + share.surplus, own.max(open));
        if keep < has {
            self.store.release_binds(node, carrier.name(), keep).await?;
        }
        Ok(keep > own)
    }

    /// Closes all links, and returns whether all are closed.
    fn close_all(&self) -> bool {
        let mut queues = self.routing.carriers().queues.clone();
        queues.extend(self.binds.lock().iter().cloned());
        for queue in &queues {
            queue.carrier.allow_binds(0);
        }
        queues.iter().all(|queue| queue.carrier.open_binds() == 0)
    }
}
