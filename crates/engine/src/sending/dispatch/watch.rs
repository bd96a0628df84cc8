//! What dispatch does by the clock: it asks the database for work, and notes how the carriers do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::kill_point::{KillPoint, pass};
use domain::ports::{CarrierNote, Claimed, Health, PoolClaim};
use domain::{AccountId, PoolId, Priority};
use tokio::time::Instant;

use super::Dispatch;
use crate::cluster::node::Held;
use crate::sending::carriers::lanes::{LANES, lane};
use crate::sending::carriers::parcels::HeldParcel;

/// How often the database is asked for work.
const SCAN_EVERY: Duration = Duration::from_millis(250);
/// The most that one scan takes of a lane.
const SCAN_MOST: u32 = 1000;
/// How often it is noted how the carriers do.
const NOTE_EVERY: Duration = Duration::from_secs(2);

impl Dispatch {
    pub(super) async fn scan_all(self: Arc<Self>) {
        let waiting = metrics::gauge!("switchboard_messages_held");
        let mut tick = tokio::time::interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.expire_waiting();
            // As long as a scan brings as much as it may, more is likely to wait.
            while self.scan().await {}
            let held = self.routing.carriers().waiting();
            waiting.set(f64::from(u32::try_from(held).unwrap_or(u32::MAX)));
        }
    }

    /// Claims due messages, and messages of pools as far as there is room; says whether there may be more.
    ///
    /// What is nobody's is claimed whatever the carriers do: it gets a slot, or is moved once into the pool of its route.
    async fn scan(self: &Arc<Self>) -> bool {
        let carriers = self.routing.carriers();
        if carriers.queues.is_empty() {
            return false;
        }
        let room = carriers.pool_room(SCAN_MOST as usize, !self.is_alone(), &self.pools);
        let pools = self.pools.claims(room);
        let (by, began) = (self.node.id(), Instant::now());
        let open = self.rows.open();
        let claimed = match self.store.claim_due(by, [SCAN_MOST; LANES], &pools).await {
            Ok(claimed) => claimed,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "due messages cannot be taken; trying again");
                self.reconcile.hurry();
                return false;
            }
        };
        if !claimed.parcels.is_empty() {
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
        self.note_claimed(&pools, &claimed, began);
        let mut nobodys = [0; LANES];
        let mut unplaced = Vec::new();
        for parcel in claimed.parcels {
            if parcel.pool.is_none() {
                nobodys[lane(parcel.priority)] += 1;
            }
            let held = HeldParcel::register(&self.rows, Held { by, it: parcel });
            unplaced.extend(self.place(held));
        }
        // Every claimed row is registered.
        drop(open);
        // Where what was claimed has no room, more would not have any, either.
        let has_room = unplaced.is_empty();
        self.store_unplaced(unplaced).await;
        nobodys.contains(&SCAN_MOST) || (has_room && !claimed.more.is_empty())
    }

    /// Notes which accounts have more in the pools than was claimed.
    fn note_claimed(&self, pools: &[PoolClaim], claimed: &Claimed, began: Instant) {
        let mut accounts: HashMap<(PoolId, usize), Vec<AccountId>> = HashMap::new();
        for parcel in &claimed.parcels {
            if let Some(pool) = parcel.pool {
                let of_lane = accounts.entry((pool, lane(parcel.priority))).or_default();
                if !of_lane.contains(&parcel.account) {
                    of_lane.push(parcel.account);
                }
            }
        }
        for claim in pools {
            for priority in Priority::ALL {
                let lane = lane(priority);
                if claim.limits[lane] > 0 {
                    let found = accounts.remove(&(claim.pool, lane)).unwrap_or_default();
                    let more = claimed.more.contains(&(claim.pool, priority));
                    self.pools.claimed(claim, priority, &found, more, began);
                }
            }
        }
    }

    /// Notes how the carriers do, for those who ask from another process, and in the metrics.
    pub(super) async fn note_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(NOTE_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let carriers = self.routing.carriers();
            let notes: Vec<_> = carriers.queues.iter().map(|queue| queue.note()).collect();
            measure(&notes);
            if let Err(error) = self.store.note_carriers(self.node.id(), &notes).await {
                tracing::warn!(%error, "how the carriers do cannot be noted; trying again");
            }
        }
    }
}

/// Shows how carriers do in the metrics.
fn measure(notes: &[CarrierNote]) {
    for note in notes {
        let gauge = |name: &'static str, value: u32| {
            metrics::gauge!(name, "carrier" => note.name.clone()).set(f64::from(value));
        };
        let health = match note.state.health {
            Health::Down => 0,
            Health::Strained => 1,
            Health::Up => 2,
        };
        gauge("switchboard_carrier_health", health);
        gauge("switchboard_carrier_links_up", note.state.links_up.into());
        gauge("switchboard_carrier_waiting", note.waiting);
        gauge("switchboard_carrier_under_way", note.under_way);
    }
}
