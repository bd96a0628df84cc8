//! Stores the results of attempts.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{QueuedMessage, SendResult, Settlement};
use domain::kill_point::{KillPoint, pass};
use domain::message::lookup::{self, Subscriber};
use domain::message::outcome::Outcome;
use domain::ports::{Settled, StoreError, WorkStore};
use domain::{Channel, Clock, Code, MessageId, Money, TraceContext};

use super::unanswered::as_taken;
use crate::batcher::{BatchError, Batcher, Limits};
use crate::callbacks::Callbacks;
use crate::cluster::node::Held;
use crate::monitoring::ended::EndedCounters;
use crate::sending::routing::Routing;

/// How long to wait before storing a result again.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Stores results, many in one transaction.
pub(super) struct Results {
    clock: Arc<dyn Clock>,
    batcher: Batcher<Held<Settlement>, Settled, StoreError>,
    ended: Arc<EndedCounters>,
}

impl Results {
    /// `most` is how many results may wait to be stored.
    pub(super) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        callbacks: Arc<Callbacks>,
        ended: Arc<EndedCounters>,
        most: usize,
    ) -> Self {
        let limits = Limits {
            queue: most,
            batch: 512,
            writes: 1,
            interval: Duration::ZERO,
        };
        let batcher = Batcher::start(limits, move |batch| {
            settle(store.clone(), callbacks.clone(), batch)
        });
        Self {
            clock,
            batcher,
            ended,
        }
    }

    /// Stores a result and retries until that succeeds: until then, this node must settle the message. Returns `false`
    /// if the claim was void. `carrier` is the one that decided, if any.
    pub(super) async fn store(
        &self,
        held: &Held<QueuedMessage>,
        sent: SendResult,
        carrier: Option<&str>,
        cost: Option<Money>,
    ) -> bool {
        let queued = &held.item;
        if let Some(trace) = queued.trace {
            log(queued.id, trace, &sent);
        }
        let settlement = Settlement {
            id: queued.id,
            priority: queued.priority,
            claim: queued.claim,
            to: queued.to,
            expires_at: queued.expires_at,
            sent,
            cost,
            at: self.clock.now(),
        };
        let settlement = Held {
            by: held.by,
            item: settlement,
        };
        loop {
            match self.batcher.write(settlement.clone()).await {
                Ok(Settled::Ended(ended)) => {
                    self.ended.count(carrier, &ended);
                    return true;
                }
                Ok(settled) => return settled != Settled::Stale,
                // A message without a stored result is released when the node leaves.
                Err(BatchError::Stopped) if self.batcher.is_stopped() => return true,
                Err(BatchError::Full | BatchError::Stopped | BatchError::Write(_)) => {
                    tokio::time::sleep(STORE_RETRY_AFTER).await;
                }
            }
        }
    }

    /// Returns once all results are stored.
    pub(super) async fn stop(&self) {
        self.batcher.stop().await;
    }
}

/// Logs the result of an attempt. Only for messages with a trace: a line for each message would be too many.
fn log(message_id: MessageId, trace: TraceContext, sent: &SendResult) {
    let (result, carrier) = match sent {
        SendResult::Taken { carrier, .. } => ("the carrier took it", Some(carrier.as_str())),
        SendResult::PartlyTaken { carrier, .. } => {
            ("the carrier took a part of it", Some(carrier.as_str()))
        }
        SendResult::Unknown { carrier, .. } => (
            "the carrier did not answer; it is sent again later",
            Some(carrier.as_str()),
        ),
        SendResult::Later(_) | SendResult::Retry(_) => ("it is sent later", None),
        SendResult::Pooled { .. } => ("it waits for a carrier", None),
        SendResult::Over(_) => ("it ended without a carrier", None),
        SendResult::Answered { .. } => ("the lookup was answered", None),
    };
    log_traced!(trace, "attempted", %message_id, carrier, result);
}

/// What the carrier charges for what it took.
pub(super) fn cost(routing: &Routing, queued: &QueuedMessage, sent: &SendResult) -> Option<Money> {
    let (carrier, parts) = match sent {
        SendResult::Taken { carrier, .. } => (carrier, queued.shape.parts.into()),
        SendResult::PartlyTaken {
            carrier,
            references,
            ..
        } => (carrier, u32::try_from(references.len()).unwrap_or(u32::MAX)),
        SendResult::Answered { carrier, .. } => (carrier.as_ref()?, 1),
        _ => return None,
    };
    let part = routing.cost(carrier, queued.account, &queued.to)?;
    Some(part.times(parts))
}

async fn settle(
    store: Arc<dyn WorkStore>,
    callbacks: Arc<Callbacks>,
    batch: Vec<Held<Settlement>>,
) -> Result<Vec<Settled>, StoreError> {
    let mut settled = Vec::with_capacity(batch.len());
    // A batch has one holder, unless this node has just rejoined under another ID.
    for group in batch.chunk_by(|a, b| a.by == b.by) {
        let results: Arc<Vec<Settlement>> =
            Arc::new(group.iter().map(|held| held.item.clone()).collect());
        let reservation = callbacks.reserve(group.len());
        pass(KillPoint::SettleBegins);
        let result = store
            .settle_sends(group[0].by, results, reservation.is_some())
            .await;
        let mut stored = result.inspect_err(|error| {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(%error, cause, "results of sending cannot be stored; trying again");
            callbacks.write_failed();
        })?;
        pass(KillPoint::SettleCommitted);
        let ended = stored.iter_mut().filter_map(|settled| match settled {
            Settled::Ended(ended) => Some(ended),
            Settled::Stored | Settled::Stale => None,
        });
        callbacks.take(group[0].by, reservation, ended);
        settled.extend(stored);
    }
    Ok(settled)
}

/// The end of a message that no carrier took. A lookup gets a report without an answer.
pub(super) fn over(queued: &QueuedMessage, code: Code) -> SendResult {
    if queued.channel != Channel::Hlr {
        return SendResult::Over(Outcome::Failed(code));
    }
    let (outcome, report) = lookup::unanswered(queued.id, Outcome::Failed(code));
    SendResult::Answered {
        carrier: None,
        outcome,
        report,
    }
}

/// The result of an expired message. If a carrier did not answer, it may have the message, so it counts as handed over.
pub(super) fn expired(queued: &QueuedMessage) -> SendResult {
    if let Some(taken) = as_taken(queued) {
        return taken;
    }
    // An older version did not store which carrier that was.
    if queued.unknown_tries > 0 {
        return SendResult::Over(Outcome::Expired);
    }
    over(queued, Code::EXPIRED)
}

/// The end of a lookup that was answered.
pub(super) fn answered(
    queued: &QueuedMessage,
    carrier: &str,
    subscriber: &Subscriber,
) -> SendResult {
    SendResult::Answered {
        carrier: Some(carrier.to_owned()),
        outcome: subscriber.outcome(),
        report: subscriber.payload(queued.id),
    }
}
