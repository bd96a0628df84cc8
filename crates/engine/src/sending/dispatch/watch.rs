//! Periodic work of dispatch: claims messages from the database and reports the state of the carriers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::kill_point::{KillPoint, pass};
use domain::ports::{CarrierStatus, Claimed, Health, PoolClaim};
use domain::{AccountId, PoolId, Priority};
use tokio::time::Instant;

use super::Dispatch;
use crate::cluster::node::Held;
use crate::sending::carriers::held_messages::HeldMessage;
use crate::sending::carriers::lanes::{LANES, lane};

const SCAN_EVERY: Duration = Duration::from_millis(250);
/// Maximum number of messages that one scan claims of a lane.
const MAX_SCANNED: u32 = 1000;
/// How often the state of the carriers is reported.
const REPORT_EVERY: Duration = Duration::from_secs(2);

impl Dispatch {
    pub(super) async fn scan_all(self: Arc<Self>) {
        let waiting = metrics::gauge!("switchboard_messages_held");
        let mut tick = tokio::time::interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.expire_waiting();
            // A full scan means that there is probably more.
            while self.scan().await {}
            let held = self.routing.carriers().waiting();
            waiting.set(f64::from(u32::try_from(held).unwrap_or(u32::MAX)));
        }
    }

    /// Claims due messages, and messages of pools as far as there is capacity. Returns whether there may be more.
    ///
    /// Unowned messages are claimed whatever state the carriers are in: they get a slot, or move once to their route's
    /// pool.
    async fn scan(self: &Arc<Self>) -> bool {
        let carriers = self.routing.carriers();
        if carriers.queues.is_empty() {
            return false;
        }
        let capacity = carriers.pool_capacity(MAX_SCANNED as usize, !self.is_alone(), &self.pools);
        let pools = self.pools.claims(capacity);
        let (by, began) = (self.node.id(), Instant::now());
        let open = self.rows.open();
        let claimed = match self.store.claim_due(by, [MAX_SCANNED; LANES], &pools).await {
            Ok(claimed) => claimed,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "due messages cannot be claimed; trying again");
                self.reconcile.run_soon();
                return false;
            }
        };
        if !claimed.messages.is_empty() {
            pass(KillPoint::ClaimCommitted);
        }
        for set_aside in &claimed.set_aside {
            metrics::counter!("switchboard_messages_set_aside_total").increment(1);
            let (message, what) = (set_aside.id, &set_aside.what);
            tracing::error!(
                message,
                what,
                "a queued message cannot be read; it is set aside"
            );
        }
        self.record_claims(&pools, &claimed, began);
        let mut unowned = [0; LANES];
        let mut unqueued = Vec::new();
        for queued in claimed.messages {
            if queued.pool.is_none() {
                unowned[lane(queued.priority)] += 1;
            }
            let held = HeldMessage::register(&self.rows, Held { by, item: queued });
            unqueued.extend(self.enqueue(held));
        }
        // Every claimed row is registered.
        drop(open);
        // If claimed messages got no slot, further ones would not get one either.
        let has_capacity = unqueued.is_empty();
        self.store_unqueued(unqueued).await;
        unowned.contains(&MAX_SCANNED) || (has_capacity && !claimed.more.is_empty())
    }

    /// Records which accounts have more messages in the pools than were claimed.
    fn record_claims(&self, pools: &[PoolClaim], claimed: &Claimed, began: Instant) {
        let mut accounts: HashMap<(PoolId, usize), Vec<AccountId>> = HashMap::new();
        for queued in &claimed.messages {
            if let Some(pool) = queued.pool {
                let of_lane = accounts.entry((pool, lane(queued.priority))).or_default();
                if !of_lane.contains(&queued.account) {
                    of_lane.push(queued.account);
                }
            }
        }
        for claim in pools {
            for priority in Priority::ALL {
                let lane = lane(priority);
                if claim.limits[lane] > 0 {
                    let found = accounts.remove(&(claim.pool, lane)).unwrap_or_default();
                    let more = claimed.more.contains(&(claim.pool, priority));
                    self.pools
                        .record_claim(claim, priority, &found, more, began);
                }
            }
        }
    }

    /// Stores the state of the carriers, for operators who ask other processes, and sets the metrics.
    pub(super) async fn report_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(REPORT_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let carriers = self.routing.carriers();
            let statuses: Vec<_> = carriers.queues.iter().map(|queue| queue.status()).collect();
            set_gauges(&statuses);
            if let Err(error) = self
                .store
                .replace_carrier_statuses(self.node.id(), &statuses)
                .await
            {
                tracing::warn!(%error, "the state of the carriers cannot be stored; trying again");
            }
        }
    }
}

fn set_gauges(statuses: &[CarrierStatus]) {
    for status in statuses {
        let gauge = |name: &'static str, value: u32| {
            metrics::gauge!(name, "carrier" => status.name.clone()).set(f64::from(value));
        };
        let health = match status.state.health {
            Health::Down => 0,
            Health::Strained => 1,
            Health::Up => 2,
        };
        gauge("switchboard_carrier_health", health);
        gauge("switchboard_carrier_links_up", status.state.links_up.into());
        gauge("switchboard_carrier_waiting", status.waiting);
        gauge("switchboard_carrier_under_way", status.under_way);
    }
}
