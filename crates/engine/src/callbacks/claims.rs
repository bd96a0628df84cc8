//! Claims from the database: what has become due, and the queues of receivers that have room.

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

/// How often the database is asked for due callbacks, and for those of receivers that have room.
const CLAIM_EVERY: Duration = Duration::from_millis(250);
/// How often receivers with a backlog are looked for, and requests of people to send again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most that one claim takes of what is due, and the most of all queues together.
const MOST: usize = 1_000;
/// Receivers that one claim asks for.
const MOST_QUEUES: usize = 64;
/// Claims one after the other while there is more.
const MOST_CLAIMS: usize = 8;
/// Receivers with a backlog that one look finds.
const MOST_FOUND: u32 = 200;

/// Where the looks into the database are.
struct Looks {
    next: Instant,
    /// The last receiver that was found.
    cursor: Option<ReceiverId>,
    /// The last request that was seen.
    request: u64,
}

impl Callbacks {
    pub(super) async fn claim_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(CLAIM_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut looks = Looks {
            next: Instant::now(),
            cursor: None,
            request: 0,
        };
        loop {
            tick.tick().await;
            self.slots.tick();
            if looks.next <= Instant::now() {
                looks.next = Instant::now() + LOOK_EVERY;
                self.find_backlog(&mut looks).await;
                self.follow_requests(&mut looks).await;
            }
            for _ in 0..MOST_CLAIMS {
                if !self.claim().await {
                    break;
                }
            }
            // What a panic has left waiting.
            self.start_tries(None);
        }
    }

    /// Claims as much as there is room for, and says whether there may be more.
    async fn claim(self: &Arc<Self>) -> bool {
        let queues = self.plan();
        let wanted: usize = queues.iter().map(|(_, count)| *count as usize).sum();
        let Some(mut room) = self.reserve(MOST + wanted) else {
            return false;
        };
        let by = self.node.id();
        let limit = u32::try_from(MOST).unwrap_or(u32::MAX);
        match self.store.claim_callbacks(by, limit, &queues).await {
            Ok(claimed) => {
                pass_if_any(&claimed);
                let more = self.note_claimed(&queues, &claimed);
                self.set_aside(by, claimed.unreadable);
                let due = claimed.due.into_iter();
                let mut refused = self.add_all(by, &mut room, Source::Due, due);
                let waiting = claimed.queued.into_iter();
                refused.extend(self.add_all(by, &mut room, Source::Queue, waiting));
                self.requeue(refused);
                more
            }
            Err(error) => {
                tracing::warn!(%error, "due callbacks cannot be taken; trying again");
                self.write_failed();
                false
            }
        }
    }

    /// Which queues to claim from, and how much of each.
    fn plan(&self) -> Vec<(ReceiverId, u32)> {
        let now = self.clock.now();
        let claimable = lock(&self.receivers).claimable(now, MOST_QUEUES);
        let open = self.slots.plan(&claimable.open, MOST);
        let open = open
            .into_iter()
            .map(|(id, count)| (id, u32::try_from(count).unwrap_or(u32::MAX)));
        let probed = claimable.probed.into_iter().map(|id| (id, 1));
        open.chain(probed).collect()
    }

    /// Notes which queues are empty now, and says whether another claim may find more.
    fn note_claimed(&self, queues: &[(ReceiverId, u32)], claimed: &ClaimedCallbacks) -> bool {
        let mut counts: HashMap<ReceiverId, u32> = HashMap::new();
        for callback in &claimed.queued {
            *counts.entry(receiver_of(callback)).or_default() += 1;
        }
        let mut more = claimed.due.len() >= MOST;
        let mut receivers = lock(&self.receivers);
        for (id, most) in queues {
            if counts.get(id).is_some_and(|count| count >= most) {
                more |= *most > 1;
            } else {
                receivers.note_drained(*id);
            }
        }
        more
    }

    /// Parks callbacks that cannot be read, so that they are not claimed again.
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
            let it = CallbackSettlement {
                id: held.id,
                claim: held.claim,
                attempt: Some(attempt),
                next: CallbackNext::Parked,
            };
            let callbacks = self.clone();
            tokio::spawn(async move {
                callbacks.store_result(Held { by, it }).await;
                drop(row);
            });
        }
    }

    /// Looks for receivers with a backlog that this node does not know of.
    async fn find_backlog(&self, looks: &mut Looks) {
        match self
            .store
            .list_receiver_queues(looks.cursor, MOST_FOUND)
            .await
        {
            Ok(found) => {
                let is_full = found.len() >= MOST_FOUND as usize;
                looks.cursor = found.last().copied().filter(|_| is_full);
                let mut receivers = lock(&self.receivers);
                for id in found {
                    receivers.note_backlog(id);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "queues of receivers cannot be listed; trying again");
            }
        }
    }

    /// Ends the pauses of receivers for which people ask to send again.
    async fn follow_requests(&self, looks: &mut Looks) {
        let requests = match self.store.list_replay_requests(looks.request).await {
            Ok(requests) => requests,
            Err(error) => {
                tracing::warn!(%error, "requests to send again cannot be read; trying again");
                return;
            }
        };
        for request in requests {
            looks.request = looks.request.max(request.number);
            lock(&self.receivers).end_pauses(|account, origin| {
                request.account.is_none_or(|of| of == account) && names(&request, origin)
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
    ReceiverId::new(callback.account, &Origin::of(&callback.url))
}

/// Whether a request may be about callbacks to an origin.
fn names(request: &ReplayRequest, origin: &Origin) -> bool {
    let prefix = request.url_prefix.to_ascii_lowercase();
    prefix.starts_with(origin.as_str()) || origin.as_str().starts_with(&prefix)
}
