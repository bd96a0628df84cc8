//! The port for sending.

use std::sync::Arc;

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Receipt, Settlement};
use domain::ports::{
    CarrierStatus, Claimed, ClaimedRow, DispatchStore, Ended, HeartbeatResult, InTransit, Inbox,
    Matched, NodeInfo, PoolClaim, Settled, StoreError,
};
use domain::{Msisdn, NodeId, Timestamp};
use jiff::SignedDuration;

use crate::calls::CallKind::{AssignsMessages, MayPanic, Plain};
use crate::calls::{Calls, MemoryStore, missing};
use crate::model::Model;
use crate::settling::Settler;

#[async_trait]
impl<C: Calls> DispatchStore for MemoryStore<C> {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.call(Plain, "now", |_: &mut Model, now| now).await
    }

    async fn join(
        &self,
        _: &NodeInfo,
        _: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        let join = move |model: &mut Model, now| model.join(now + lifetime);
        self.0.call(Plain, "join", join).await
    }

    async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError> {
        let renew_heartbeat =
            move |model: &mut Model, now| model.renew_heartbeat(node, now + lifetime);
        let is_known = self.0.call(MayPanic, "heartbeat", renew_heartbeat).await?;
        Ok(if is_known {
            HeartbeatResult::Alive
        } else {
            HeartbeatResult::GivenUp
        })
    }

    async fn remove_dead_nodes(&self, node: NodeId) -> Result<u64, StoreError> {
        let give_up = move |model: &mut Model, now| model.remove_dead_nodes(node, now);
        self.0.call(Plain, "give up", give_up).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let leave = move |model: &mut Model, _| model.leave(node);
        self.0.call(Plain, "leave", leave).await
    }

    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError> {
        let pools = pools.to_vec();
        let claim = move |model: &mut Model, now| model.claim_due(node, limits, &pools, now);
        self.0.call(AssignsMessages, "claim", claim).await
    }

    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let list = move |model: &mut Model, now| model.list_held(node, now - due_for, after, limit);
        self.0.call(MayPanic, "list held", list).await
    }

    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError> {
        let rows = rows.to_vec();
        let release = move |model: &mut Model, _| model.release_held(node, &rows);
        self.0.call(MayPanic, "release held", release).await
    }

    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError> {
        let settle =
            move |model: &mut Model, now| model.settle_sends(Settler { node, hold, now }, &batch);
        self.0.call(Plain, "settle sends", settle).await
    }

    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError> {
        let settle = move |model: &mut Model, now| {
            model.settle_receipts(Settler { node, hold, now }, &batch)
        };
        self.0.call(Plain, "settle receipts", settle).await
    }

    async fn match_stored_receipts(
        &self,
        _: NodeId,
        _: u32,
        _: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        Err(missing("match stored receipts"))
    }

    async fn has_early_receipt(&self, of: &CarrierRef) -> Result<bool, StoreError> {
        let of = of.clone();
        let find = move |model: &mut Model, _| model.has_early_receipt(&of);
        self.0.call(Plain, "early receipt", find).await
    }

    async fn mark_seen(&self, _: &CarrierRef, _: Timestamp) -> Result<bool, StoreError> {
        Err(missing("mark seen"))
    }

    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let expire =
            move |model: &mut Model, now| model.expire_sent(Settler { node, hold, now }, limit);
        self.0.call(Plain, "expire", expire).await
    }

    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let expire =
            move |model: &mut Model, now| model.expire_pooled(Settler { node, hold, now }, limit);
        self.0.call(Plain, "expire pooled", expire).await
    }

    async fn list_in_transit(
        &self,
        _: &str,
        _: &str,
        _: u32,
    ) -> Result<Vec<InTransit>, StoreError> {
        Err(missing("list in transit"))
    }

    async fn replace_carrier_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError> {
        let statuses = statuses.to_vec();
        let write = move |model: &mut Model, _| model.replace_carrier_statuses(node, &statuses);
        self.0.call(Plain, "carrier statuses", write).await
    }

    async fn list_inbox(&self, _: &str, _: &Msisdn, _: u32) -> Result<Vec<Inbox>, StoreError> {
        Err(missing("list inbox"))
    }

    async fn prune_receipts(&self, _: SignedDuration, _: u32) -> Result<u64, StoreError> {
        Err(missing("prune receipts"))
    }

    async fn prune_messages(&self, _: SignedDuration, _: u32) -> Result<u64, StoreError> {
        Err(missing("prune messages"))
    }
}
