//! A node's way to the store, with all that can happen on it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CallbackAttempt, CallbackSettlement, CarrierRef, Receipt, Settlement};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, ScheduledRecord, Submission};
use domain::ports::{
    AcceptResult, CallbackFilter, CallbackRecord, CallbackStore, Cancel, CarrierStatus, Claimed,
    ClaimedCallbacks, ClaimedRow, DispatchStore, Ended, HeartbeatResult, HeldCallback, InTransit,
    Inbox, ListRange, Matched, MessageStore, NodeCarrierStatus, NodeInfo, PoolClaim, ReplayCursor,
    ReplayRequest, Replayed, Settled, SigningSecrets, StoreError, StoredAnswer, accept_results,
};
use domain::{AccountId, CallbackId, MessageId, Msisdn, NodeId, ReceiverId, Timestamp};
use jiff::SignedDuration;
use tokio::time::Instant;

use super::life::Life;
use super::model::Model;
use super::world::World;

/// How long a call may take before its caller gives up.
const DEADLINE: Duration = Duration::from_secs(15);

/// What can go wrong with a call, besides that it is refused or unanswered.
#[derive(Clone, Copy)]
struct Hazards {
    /// How late it may be done whose caller gave up.
    latest_ms: u64,
    /// Whether the caller may panic once it is done.
    panics: bool,
}

const USUAL: Hazards = Hazards {
    latest_ms: 12_000,
    panics: false,
};
/// For calls whose callers panic without harm.
const PANICS: Hazards = Hazards {
    latest_ms: 12_000,
    panics: true,
};
/// For calls that make messages a node's: a commit may hang for as long as a standby is away.
const HOLDS: Hazards = Hazards {
    latest_ms: 45_000,
    panics: true,
};

/// What happens to a call.
#[derive(Clone, Copy)]
enum Fate {
    Done,
    Refused,
    Unanswered,
    Late(Duration),
    Panics,
    DiesBefore,
    DiesAfter,
}

/// One node's way to the store.
pub(super) struct Door {
    world: Arc<World>,
    life: Arc<Life>,
}

impl Door {
    pub(super) fn new(world: Arc<World>, life: Arc<Life>) -> Self {
        Self { world, life }
    }

    fn fate(&self, hazards: Hazards) -> Fate {
        let mut state = self.world.state();
        let troubles = state.troubles;
        let dice = &mut state.dice;
        if dice.per_mille(troubles.refused) {
            Fate::Refused
        } else if dice.per_mille(troubles.unanswered) {
            Fate::Unanswered
        } else if dice.per_mille(troubles.late) {
            Fate::Late(dice.between(10, hazards.latest_ms))
        } else if hazards.panics && dice.per_mille(troubles.panics) {
            Fate::Panics
        } else if dice.per_mille(troubles.dies) {
            [Fate::DiesBefore, Fate::DiesAfter][usize::from(dice.per_mille(500))]
        } else {
            Fate::Done
        }
    }

    pub(super) async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call_with(USUAL, what, work).await
    }

    async fn call_with<T: Send + 'static>(
        &self,
        hazards: Hazards,
        what: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.life.goes_on().await;
        tokio::time::sleep(self.world.pause(0, 8)).await;
        let away_until = self.world.state().store_away_until;
        if away_until > Instant::now() {
            let give_up = away_until.min(Instant::now() + DEADLINE);
            tokio::time::sleep_until(give_up).await;
            self.life.goes_on().await;
            return Err(away(what));
        }
        self.life.goes_on().await;
        let fate = self.fate(hazards);
        let world = self.world.clone();
        let act = move || {
            let now = world.now();
            work(&mut world.state().model, now)
        };
        let result = match fate {
            Fate::Done => Ok(act()),
            Fate::Refused => Err(away(what)),
            Fate::Unanswered => {
                self.world
                    .note(format_args!("{what}: done, the answer is lost"));
                act();
                Err(away(what))
            }
            Fate::Late(after) => {
                self.world.note(format_args!(
                    "{what}: done {after:?} later, the answer is lost"
                ));
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    act();
                });
                Err(away(what))
            }
            Fate::Panics => {
                self.world
                    .note(format_args!("{what}: done, the caller panics"));
                act();
                // Without the hook, which would print it.
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            Fate::DiesBefore => {
                self.world
                    .note(format_args!("{what}: the node dies before"));
                self.life.kill();
                Err(away(what))
            }
            Fate::DiesAfter => {
                self.world.note(format_args!("{what}: the node dies after"));
                act();
                self.life.kill();
                Err(away(what))
            }
        };
        tokio::time::sleep(self.world.pause(0, 4)).await;
        self.life.goes_on().await;
        result
    }
}

fn away(what: &str) -> StoreError {
    StoreError::Unavailable {
        source: what.to_owned().into(),
    }
}

fn id_taken() -> StoreError {
    StoreError::IdTaken {
        source: "an ID that is taken".into(),
    }
}

fn unused() -> StoreError {
    StoreError::Unexpected {
        operation: "nothing that is simulated",
        source: "not part of the simulation".into(),
    }
}

#[async_trait]
impl MessageStore for Door {
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
                let accepted = self.call_with(HOLDS, "accept", accept).await;
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
impl DispatchStore for Door {
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
        let is_known = self.call_with(PANICS, "beat", renew_heartbeat).await?;
        Ok(if is_known {
            HeartbeatResult::Alive
        } else {
            HeartbeatResult::GivenUp
        })
    }

    async fn give_up_dead(&self, node: NodeId) -> Result<u64, StoreError> {
        let give_up = move |model: &mut Model, now| model.give_up_dead(node, now);
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
        self.call_with(HOLDS, "claim", claim).await
    }

    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let list = move |model: &mut Model, now| model.list_held(node, now - due_for, after, limit);
        self.call_with(PANICS, "list held", list).await
    }

    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError> {
        let rows = rows.to_vec();
        let release = move |model: &mut Model, _| model.release_held(node, &rows);
        self.call_with(PANICS, "release held", release).await
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

    async fn compare_receipts(&self, _: NodeId, _: u32, _: bool) -> Result<Vec<Ended>, StoreError> {
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

    async fn note_carriers(&self, node: NodeId, notes: &[CarrierStatus]) -> Result<(), StoreError> {
        let notes = notes.to_vec();
        let write = move |model: &mut Model, _| model.note_carriers(node, &notes);
        self.call("note", write).await
    }

    async fn list_carriers(&self) -> Result<Vec<NodeCarrierStatus>, StoreError> {
        Err(unused())
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

#[async_trait]
impl CallbackStore for Door {
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError> {
        let queues = queues.to_vec();
        let claim = move |model: &mut Model, now| model.claim_reports(node, limit, &queues, now);
        self.call("claim reports", claim).await
    }

    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError> {
        let list = move |model: &mut Model, _| model.list_queues(after, limit);
        self.call("list queues", list).await
    }

    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError> {
        let settle = move |model: &mut Model, _| model.settle_reports(node, &batch);
        self.call("settle reports", settle).await
    }

    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError> {
        let list = move |model: &mut Model, now: Timestamp| {
            model.list_held_reports(node, now - age, after, limit)
        };
        self.call("list held reports", list).await
    }

    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError> {
        let release = move |model: &mut Model, _| model.release_reports(node, &held);
        self.call("release reports", release).await
    }

    async fn list_callbacks(
        &self,
        _: &CallbackFilter,
        _: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        Err(unused())
    }

    async fn list_attempts(&self, _: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        Err(unused())
    }

    async fn replay_callbacks(
        &self,
        _: &CallbackFilter,
        _: ReplayCursor,
    ) -> Result<Replayed, StoreError> {
        Err(unused())
    }

    async fn list_replay_requests(&self, _: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        Ok(Vec::new())
    }

    async fn find_signing_secrets(
        &self,
        _: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError> {
        Ok(Some(SigningSecrets {
            newest: "secret".to_owned(),
            former: None,
        }))
    }

    async fn replace_signing_secret(
        &self,
        _: AccountId,
        _: &str,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
}
