//! The store as one node sees it: calls may be slow, fail, lose their answer, or end with a panic or the node's death.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Receipt, Settlement};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, ScheduledRecord, Submission};
use domain::ports::{
    AcceptResult, Cancel, CarrierStatus, Claimed, ClaimedRow, DispatchStore, Ended,
    HeartbeatResult, InTransit, Inbox, ListRange, Matched, MessageStore, NodeInfo, PoolClaim,
    Settled, StoreError, StoredAnswer, accept_results,
};
use domain::{AccountId, MessageId, Msisdn, NodeId, Timestamp};
use jiff::SignedDuration;
use tokio::time::Instant;

use super::environment::Environment;
use super::liveness::Liveness;
use super::model::Model;
use super::unused::unused;

/// How long a call may take before its caller gives up.
const DEADLINE: Duration = Duration::from_secs(15);

/// Which further faults a call may have; every call may be refused or lose its answer.
#[derive(Clone, Copy)]
struct PossibleFaults {
    /// The store may execute a call up to this long after its caller gave up.
    max_delay_ms: u64,
    /// Whether the caller may panic after the store has executed the call.
    can_panic: bool,
}

const DEFAULT_FAULTS: PossibleFaults = PossibleFaults {
    max_delay_ms: 12_000,
    can_panic: false,
};
/// For calls whose callers may panic without harm.
const MAY_PANIC: PossibleFaults = PossibleFaults {
    max_delay_ms: 12_000,
    can_panic: true,
};
/// For calls that assign messages to a node: a commit may hang as long as a standby is unavailable.
const ASSIGNS_MESSAGES: PossibleFaults = PossibleFaults {
    max_delay_ms: 45_000,
    can_panic: true,
};

/// What happens to a call.
#[derive(Clone, Copy)]
enum CallOutcome {
    Done,
    Refused,
    Unanswered,
    Late(Duration),
    Panics,
    DiesBefore,
    DiesAfter,
}

/// One node's connection to the store.
pub(super) struct FaultyStore {
    env: Arc<Environment>,
    liveness: Arc<Liveness>,
}

impl FaultyStore {
    pub(super) fn new(env: Arc<Environment>, liveness: Arc<Liveness>) -> Self {
        Self { env, liveness }
    }

    fn choose_outcome(&self, possible: PossibleFaults) -> CallOutcome {
        let mut state = self.env.state();
        let fault_rates = state.fault_rates;
        let rng = &mut state.rng;
        if rng.per_mille(fault_rates.refused) {
            CallOutcome::Refused
        } else if rng.per_mille(fault_rates.unanswered) {
            CallOutcome::Unanswered
        } else if rng.per_mille(fault_rates.late) {
            CallOutcome::Late(rng.between(10, possible.max_delay_ms))
        } else if possible.can_panic && rng.per_mille(fault_rates.panics) {
            CallOutcome::Panics
        } else if rng.per_mille(fault_rates.dies) {
            [CallOutcome::DiesBefore, CallOutcome::DiesAfter][usize::from(rng.per_mille(500))]
        } else {
            CallOutcome::Done
        }
    }

    pub(super) async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call_with(DEFAULT_FAULTS, what, work).await
    }

    async fn call_with<T: Send + 'static>(
        &self,
        possible: PossibleFaults,
        what: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.liveness.wait_until_running().await;
        tokio::time::sleep(self.env.pause(0, 8)).await;
        let away_until = self.env.state().store_down_until;
        if away_until > Instant::now() {
            let give_up = away_until.min(Instant::now() + DEADLINE);
            tokio::time::sleep_until(give_up).await;
            self.liveness.wait_until_running().await;
            return Err(unavailable(what));
        }
        self.liveness.wait_until_running().await;
        let outcome = self.choose_outcome(possible);
        let env = self.env.clone();
        let act = move || {
            let now = env.now();
            work(&mut env.state().model, now)
        };
        let result = match outcome {
            CallOutcome::Done => Ok(act()),
            CallOutcome::Refused => Err(unavailable(what)),
            CallOutcome::Unanswered => {
                self.env
                    .log(format_args!("{what}: done, the answer is lost"));
                act();
                Err(unavailable(what))
            }
            CallOutcome::Late(after) => {
                self.env.log(format_args!(
                    "{what}: done {after:?} later, the answer is lost"
                ));
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    act();
                });
                Err(unavailable(what))
            }
            CallOutcome::Panics => {
                self.env
                    .log(format_args!("{what}: done, the caller panics"));
                act();
                // Skips the panic hook, which would print a message.
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            CallOutcome::DiesBefore => {
                self.env
                    .log(format_args!("{what}: the node dies before it"));
                self.liveness.kill();
                Err(unavailable(what))
            }
            CallOutcome::DiesAfter => {
                self.env.log(format_args!("{what}: the node dies after it"));
                act();
                self.liveness.kill();
                Err(unavailable(what))
            }
        };
        tokio::time::sleep(self.env.pause(0, 4)).await;
        self.liveness.wait_until_running().await;
        result
    }
}

fn unavailable(what: &str) -> StoreError {
    StoreError::Unavailable {
        source: what.to_owned().into(),
    }
}

fn id_taken() -> StoreError {
    StoreError::IdTaken {
        source: "an ID that is taken".into(),
    }
}

#[async_trait]
impl MessageStore for FaultyStore {
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError> {
        let reserve = move |model: &mut Model, _| model.reserve_ids(count);
        self.call("reserve", reserve).await
    }

    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        // Two transactions, as PostgreSQL may need: one may fail after the other was committed.
        let mut results = Vec::with_capacity(batch.len());
        let half = batch.len().div_ceil(2);
        for range in [0..half, half..batch.len()] {
            let (batch, count) = (batch.clone(), range.len());
            if count > 0 {
                let accept = move |model: &mut Model, _| model.accept(&batch[range]);
                let accepted = self.call_with(ASSIGNS_MESSAGES, "accept", accept).await;
                let accepted = accepted.and_then(|accepted| accepted.ok_or_else(id_taken));
                results.extend(accept_results(accepted, count));
            }
        }
        results
    }

    async fn find_answer(
        &self,
        _: AccountId,
        _: &[u8; 32],
        _: Timestamp,
    ) -> Result<Option<StoredAnswer>, StoreError> {
        Err(unused())
    }

    async fn find_message(
        &self,
        _: AccountId,
        _: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        Err(unused())
    }

    async fn find_lookup(
        &self,
        _: AccountId,
        _: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        Err(unused())
    }

    async fn list_scheduled(
        &self,
        _: AccountId,
        _: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        Err(unused())
    }

    async fn list_scheduled_after(
        &self,
        _: AccountId,
        _: Option<(Timestamp, MessageId)>,
        _: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        Err(unused())
    }

    async fn cancel(&self, _: AccountId, _: MessageId, _: Timestamp) -> Result<Cancel, StoreError> {
        Err(unused())
    }

    async fn prune_answers(&self, _: Timestamp, _: u32) -> Result<u64, StoreError> {
        Err(unused())
    }
}

#[async_trait]
impl DispatchStore for FaultyStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.call("now", |_: &mut Model, now| now).await
    }

    async fn join(
        &self,
        _: &NodeInfo,
        _: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        let join = move |model: &mut Model, now| model.join(now + lifetime);
        self.call("join", join).await
    }

    async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError> {
        let renew_heartbeat =
            move |model: &mut Model, now| model.renew_heartbeat(node, now + lifetime);
        let is_known = self
            .call_with(MAY_PANIC, "heartbeat", renew_heartbeat)
            .await?;
        Ok(if is_known {
            HeartbeatResult::Alive
        } else {
            HeartbeatResult::GivenUp
        })
    }

    async fn remove_dead_nodes(&self, node: NodeId) -> Result<u64, StoreError> {
        let give_up = move |model: &mut Model, now| model.remove_dead_nodes(node, now);
        self.call("give up", give_up).await
    }

    async fn leave(&self, _: NodeId) -> Result<(), StoreError> {
        Err(unused())
    }

    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError> {
        let pools = pools.to_vec();
        let claim = move |model: &mut Model, now| model.claim_due(node, limits, &pools, now);
        self.call_with(ASSIGNS_MESSAGES, "claim", claim).await
    }

    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let list = move |model: &mut Model, now| model.list_held(node, now - due_for, after, limit);
        self.call_with(MAY_PANIC, "list held", list).await
    }

    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError> {
        let rows = rows.to_vec();
        let release = move |model: &mut Model, _| model.release_held(node, &rows);
        self.call_with(MAY_PANIC, "release held", release).await
    }

    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError> {
        let settle = move |model: &mut Model, now| model.settle_sends(node, &batch, hold, now);
        self.call("settle sends", settle).await
    }

    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError> {
        let settle = move |model: &mut Model, now| model.settle_receipts(node, &batch, hold, now);
        self.call("settle receipts", settle).await
    }

    async fn match_stored_receipts(
        &self,
        _: NodeId,
        _: u32,
        _: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        Err(unused())
    }

    async fn mark_seen(&self, _: &CarrierRef, _: Timestamp) -> Result<bool, StoreError> {
        Err(unused())
    }

    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let expire = move |model: &mut Model, now| model.expire_sent(node, limit, hold, now);
        self.call("expire", expire).await
    }

    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let expire = move |model: &mut Model, now| model.expire_pooled(node, limit, hold, now);
        self.call("expire pooled", expire).await
    }

    async fn list_in_transit(
        &self,
        _: &str,
        _: &str,
        _: u32,
    ) -> Result<Vec<InTransit>, StoreError> {
        Err(unused())
    }

    async fn replace_carrier_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError> {
        let statuses = statuses.to_vec();
        let write = move |model: &mut Model, _| model.replace_carrier_statuses(node, &statuses);
        self.call("carrier statuses", write).await
    }

    async fn list_inbox(&self, _: &str, _: &Msisdn, _: u32) -> Result<Vec<Inbox>, StoreError> {
        Err(unused())
    }

    async fn prune_receipts(&self, _: SignedDuration, _: u32) -> Result<u64, StoreError> {
        Err(unused())
    }

    async fn prune_messages(&self, _: SignedDuration, _: u32) -> Result<u64, StoreError> {
        Err(unused())
    }
}
