//! Claims callbacks from the database: those that are due, and those in the queues of receivers with capacity.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::ReceiverId;
use domain::delivery::{Callback, CallbackAttempt, CallbackNext, CallbackSettlement};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{ClaimedCallbacks, ReplayRequest, UnreadableCallback};
use domain::{NodeId, Origin};
use tokio::time::Instant;

use super::receivers::Source;
use super::{Callbacks, lock};
use crate::cluster::node::Held;

const CLAIM_EVERY: Duration = Duration::from_millis(250);
/// How often the database is searched for receivers with a backlog and for replay requests.
const SEARCH_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of due callbacks that one claim takes, and of queued ones.
const MAX_CLAIMED: usize = 1_000;
/// Maximum number of receivers in one claim.
const MAX_QUEUES: usize = 64;
/// Maximum number of claims in a row while there is more.
const MAX_CLAIMS: usize = 8;
/// Maximum number of receivers that one search for backlogs returns.
const MAX_FOUND: u32 = 200;

/// Progress of the searches in the database.
struct Searches {
    next: Instant,
    /// The last receiver that the search for backlogs returned.
    cursor: Option<ReceiverId>,
    /// The number of the last replay request.
    request: u64,
}

impl Callbacks {
    pub(super) async fn claim_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(CLAIM_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut searches = Searches {
            next: Instant::now(),
            cursor: None,
            request: 0,
        };
        loop {
            tick.tick().await;
            self.slots.tick();
            if searches.next <= Instant::now() {
                searches.next = Instant::now() + SEARCH_EVERY;
                self.find_backlog(&mut searches).await;
                self.follow_requests(&mut searches).await;
            }
            for _ in 0..MAX_CLAIMS {
                if !self.claim().await {
                    break;
                }
            }
            // Attempts that a panic left waiting.
            self.start_attempts(None);
        }
    }

    /// Claims as many callbacks as there is capacity for. Returns whether there may be more.
    async fn claim(self: &Arc<Self>) -> bool {
        let queues = self.plan();
        let planned: usize = queues.iter().map(|(_, count)| *count as usize).sum();
        let Some(mut reservation) = self.reserve(MAX_CLAIMED + planned) else {
            return false;
        };
        let by = self.node.id();
        let limit = u32::try_from(MAX_CLAIMED).unwrap_or(u32::MAX);
        match self.store.claim_callbacks(by, limit, &queues).await {
            Ok(claimed) => {
                pass_if_any(&claimed);
                let more = self.update_backlog(&queues, &claimed);
                self.set_aside(by, claimed.unreadable);
                let due = claimed.due.into_iter();
                let mut refused = self.add_all(by, &mut reservation, Source::Due, due);
                let waiting = claimed.queued.into_iter();
                refused.extend(self.add_all(by, &mut reservation, Source::Queue, waiting));
                self.requeue(refused);
                more
            }
            Err(error) => {
                tracing::warn!(%error, "due callbacks cannot be claimed; trying again");
                self.write_failed();
                false
            }
        }
    }

    /// Which queues to claim from, and how many callbacks of each.
    fn plan(&self) -> Vec<(ReceiverId, u32)> {
        let now = self.clock.now();
        let claimable =
            lock(&self.receivers).claimable(now, MAX_QUEUES, |id| self.sender.can_reach(id));
        let open = self.slots.plan(&claimable.open, MAX_CLAIMED);
        let open = open
            .into_iter()
            .map(|(id, count)| (id, u32::try_from(count).unwrap_or(u32::MAX)));
        let probed = claimable.probed.into_iter().map(|id| (id, 1));
        open.chain(probed).collect()
    }

    /// Updates which queues are empty. Returns whether another claim may find more.
    fn update_backlog(&self, queues: &[(ReceiverId, u32)], claimed: &ClaimedCallbacks) -> bool {
        let mut counts: HashMap<ReceiverId, u32> = HashMap::new();
        for callback in &claimed.queued {
            *counts.entry(receiver_of(callback)).or_default() += 1;
        }
        let mut more = claimed.due.len() >= MAX_CLAIMED;
        let mut receivers = lock(&self.receivers);
        for (id, most) in queues {
            if counts.get(id).is_some_and(|count| count >= most) {
                more |= *most > 1;
            } else {
                receivers.remove_backlog(*id);
            }
        }
        more
    }

    /// Parks unreadable callbacks, so that they are not claimed again.
    fn set_aside(self: &Arc<Self>, by: NodeId, unreadable: Vec<UnreadableCallback>) {
        for UnreadableCallback { held, part } in unreadable {
            tracing::error!(
                callback = held.id.get(),
                part,
                "a callback cannot be read; it is parked"
            );
            metrics::counter!("switchboard_callbacks_unreadable_total").increment(1);
            let row = self.rows.register(held.id, held.claim.attempt);
            let attempt = CallbackAttempt {
                at: self.clock.now(),
                status: None,
                elapsed_ms: 0,
                body: Vec::new(),
                address: None,
                reason: format!("the callback cannot be read: {part}"),
            };
            let item = CallbackSettlement {
                id: held.id,
                message: None,
                claim: held.claim,
                attempt: Some(attempt),
                next: CallbackNext::Parked,
            };
            let callbacks = self.clone();
            tokio::spawn(async move {
                callbacks.store_result(Held { by, item }).await;
                drop(row);
            });
        }
    }

    /// Searches the database for receivers with a backlog.
    async fn find_backlog(&self, searches: &mut Searches) {
        match self
            .store
            .list_receiver_queues(searches.cursor, MAX_FOUND)
            .await
        {
            Ok(found) => {
                let is_full = found.len() >= MAX_FOUND as usize;
                searches.cursor = found.last().copied().filter(|_| is_full);
                let mut receivers = lock(&self.receivers);
                for id in found.into_iter().filter(|id| self.sender.can_reach(*id)) {
                    receivers.add_backlog(id);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "receivers with a backlog cannot be listed; trying again");
            }
        }
    }

    /// Ends the pauses of receivers whose callbacks are replayed.
    async fn follow_requests(&self, searches: &mut Searches) {
        let requests = match self.store.list_replay_requests(searches.request).await {
            Ok(requests) => requests,
            Err(error) => {
                tracing::warn!(%error, "replay requests cannot be read; trying again");
                return;
            }
        };
        for request in requests {
            searches.request = searches.request.max(request.number);
            lock(&self.receivers).end_pauses(|account, origin| {
                request.account.is_none_or(|of| of == account) && concerns(&request, origin)
            });
        }
    }
}

fn pass_if_any(claimed: &ClaimedCallbacks) {
    if !claimed.due.is_empty() || !claimed.queued.is_empty() {
        pass(KillPoint::CallbackClaimed);
    }
}

fn receiver_of(callback: &Callback) -> ReceiverId {
    ReceiverId::new(callback.account, &Origin::from_url(&callback.url))
}

/// Whether a request may concern callbacks to an origin.
fn concerns(request: &ReplayRequest, origin: &Origin) -> bool {
    let prefix = request.url_prefix.to_ascii_lowercase();
    let origin = origin.as_str().to_ascii_lowercase();
    prefix.starts_with(&origin) || origin.starts_with(&prefix)
}
