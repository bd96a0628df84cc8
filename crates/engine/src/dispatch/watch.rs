//! What dispatch does by the clock: it asks the database for work, and notes how the carriers do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::PoolId;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{CarrierNote, Health};

use super::Dispatch;
use super::fleet::Room;
use super::lanes::LANES;
use super::parcels::HeldParcel;
use crate::node::Held;

/// How often the database is asked for work.
const SCAN_EVERY: Duration = Duration::from_millis(250);
/// The most that one scan takes of a lane.
const SCAN_MOST: usize = 1000;
/// How often it is noted how the carriers do.
const NOTE_EVERY: Duration = Duration::from_secs(2);

impl Dispatch {
    pub(super) async fn scan_all(self: Arc<Self>) {
        let waiting = metrics::gauge!("switchboard_messages_held");
        let mut tick = tokio::time::interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            // As long as a scan brings as much as it may, more is likely to wait.
            while self.scan().await {}
            let held = self.routing.fleet().waiting();
            waiting.set(f64::from(u32::try_from(held).unwrap_or(u32::MAX)));
        }
    }

    /// Takes due work as far as there is room, and says whether there may be more.
    async fn scan(self: &Arc<Self>) -> bool {
        let Room { limits, pools } = self.routing.fleet().room(SCAN_MOST, !self.is_alone());
        if limits == [0; LANES] && pools.is_empty() {
            return false;
        }
        let by = self.node.id();
        let _open = self.rows.open();
        let claimed = match self.store.claim_due(by, limits, &pools).await {
            Ok(claimed) => claimed,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "due messages cannot be taken; trying again");
                self.reconcile.hurry();
                return false;
            }
        };
        if !claimed.is_empty() {
            pass(KillPoint::ClaimCommitted);
        }
        let mut taken: HashMap<Option<PoolId>, [u32; LANES]> = HashMap::new();
        for parcel in claimed {
            let lane = usize::try_from(parcel.priority.lane()).unwrap_or(0);
            taken.entry(parcel.pool).or_default()[lane] += 1;
            let held = Held { by, it: parcel };
            self.place(HeldParcel::register(&self.rows, held));
        }
        let limits = pools
            .into_iter()
            .map(|(pool, limits)| (Some(pool), limits))
            .chain([(None, limits)]);
        let is_full = |(from, limits): (Option<PoolId>, [u32; LANES])| {
            let taken = taken.get(&from).copied().unwrap_or_default();
            taken
                .into_iter()
                .zip(limits)
                .any(|(taken, limit)| limit > 0 && taken >= limit)
        };
        limits.into_iter().any(is_full)
    }

    /// Notes how the carriers do, for those who ask from another process, and in the metrics.
    pub(super) async fn note_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(NOTE_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let fleet = self.routing.fleet();
            let notes: Vec<_> = fleet.lines.iter().map(|line| line.note()).collect();
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
