//! The port for sending.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Receipt, Settlement};
use domain::ids::NodeId;
use domain::ports::{
    CarrierStatus, Claimed, ClaimedRow, DispatchStore, Ended, HeartbeatResult, InTransit, Inbox,
    Matched, NodeInfo, PoolClaim, Settled, StoreError,
};
use domain::{Msisdn, Timestamp};
use jiff::SignedDuration;

use super::fault::Fault;
use super::{SqliteStore, carriers, claims, clock, ending, held, nodes, prune, receipts, sends};
use crate::rows::Corrupt;
use crate::rows::ended::{EndedColumns, MatchedColumns, SettledColumns};
use crate::rows::{duration_us, micros, timestamp};

#[async_trait]
impl DispatchStore for SqliteStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.read("read the clock", |db| Ok(timestamp(clock::now_us(db)?)?))
            .await
    }

    async fn join(
        &self,
        info: &NodeInfo,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        let (info, level) = (info.clone(), self.level);
        let (up_us, lifetime_us) = (duration_us(up_for), duration_us(lifetime));
        self.write("join", move |db| {
            nodes::join(db, &info, level, up_us, lifetime_us)
        })
        .await
    }

    async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError> {
        let (level, lifetime_us) = (self.level, duration_us(lifetime));
        self.write("renew the heartbeat", move |db| {
            nodes::renew_heartbeat(db, node, level, lifetime_us)
        })
        .await
    }

    async fn remove_dead_nodes(&self, node: NodeId) -> Result<u64, StoreError> {
        self.write("remove dead nodes", move |db| {
            nodes::remove_others(db, node)
        })
        .await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.write("leave", move |db| nodes::leave(db, node)).await
    }

    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError> {
        let (pools, keys) = (pools.to_vec(), self.keys.clone());
        self.write("claim messages", move |db| {
            claims::claim_due(db, &keys, node, limits, &pools)
        })
        .await
    }

    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let due_for_us = duration_us(due_for);
        self.read("list held messages", move |db| {
            held::list(db, node, due_for_us, after.as_ref(), limit)
        })
        .await
    }

    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError> {
        let rows = rows.to_vec();
        let work = move |db: &_| held::release(db, node, &rows);
        self.write("release held messages", work).await
    }

    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError> {
        const OPERATION: &str = "settle sends";
        let rows = batch.len();
        let work = move |db: &_| sends::settle(db, node, &batch, hold);
        let settled = self.writer.run(OPERATION, rows, work).await?;
        read_all(OPERATION, settled, SettledColumns::settled)
    }

    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError> {
        const OPERATION: &str = "settle receipts";
        let rows = batch.len();
        let work = move |db: &_| receipts::settle(db, node, &batch, hold);
        let matched = self.writer.run(OPERATION, rows, work).await?;
        read_all(OPERATION, matched, MatchedColumns::matched)
    }

    /// There is one writer: the later of a receipt and the answer to its submit always finds the earlier one.
    async fn match_stored_receipts(
        &self,
        _: NodeId,
        _: u32,
        _: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        Ok(Vec::new())
    }

    async fn mark_seen(&self, of: &CarrierRef, at: Timestamp) -> Result<bool, StoreError> {
        let of = of.clone();
        self.write("mark a message as seen", move |db| {
            ending::mark_seen(db, &of, micros(at))
        })
        .await
    }

    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        const OPERATION: &str = "expire messages";
        let work = move |db: &_| sends::expire(db, node, limit, hold);
        let ended = self.write(OPERATION, work).await?;
        read_all(OPERATION, ended, EndedColumns::ended)
    }

    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        const OPERATION: &str = "expire waiting messages";
        let work = move |db: &_| sends::expire_pooled(db, node, limit, hold);
        let ended = self.write(OPERATION, work).await?;
        read_all(OPERATION, ended, EndedColumns::ended)
    }

    async fn has_early_receipt(&self, of: &CarrierRef) -> Result<bool, StoreError> {
        let of = of.clone();
        self.read("find an early receipt", move |db| {
            receipts::has_early(db, &of)
        })
        .await
    }

    async fn list_in_transit(
        &self,
        carrier: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<InTransit>, StoreError> {
        let (carrier, after) = (carrier.to_owned(), after.to_owned());
        self.read("list parts in transit", move |db| {
            receipts::list_in_transit(db, &carrier, &after, limit)
        })
        .await
    }

    async fn replace_carrier_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError> {
        let statuses = statuses.to_vec();
        self.write("store the states of carriers", move |db| {
            carriers::replace(db, node, &statuses)
        })
        .await
    }

    async fn list_inbox(
        &self,
        carrier: &str,
        to: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Inbox>, StoreError> {
        let (keys, carrier, to) = (self.keys.clone(), carrier.to_owned(), *to);
        self.read("list an inbox", move |db| {
            receipts::list_inbox(db, &keys, &carrier, to, limit)
        })
        .await
    }

    async fn prune_receipts(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        let age_us = duration_us(age);
        self.write("prune receipts", move |db| {
            prune::prune_receipts(db, age_us, limit)
        })
        .await
    }

    async fn prune_messages(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        let age_us = duration_us(age);
        let sweep = *self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let find = move |db: &_| prune::find_old_messages(db, sweep, age_us, limit);
        let found = self.read("find old messages", find).await?;
        let mut pruned = 0;
        if !found.ids.is_empty() {
            let (before_us, ids) = (found.before_us, found.ids);
            let prune = move |db: &_| prune::prune_messages(db, before_us, &ids);
            pruned = self.write("prune messages", prune).await?;
        }
        *self.sweep.lock().unwrap_or_else(PoisonError::into_inner) = found.sweep;
        Ok(pruned)
    }
}

/// Converts the rows outside of the writer thread, which is busy enough.
fn read_all<C, T>(
    operation: &'static str,
    columns: Vec<C>,
    read: impl Fn(C) -> Result<T, Corrupt>,
) -> Result<Vec<T>, StoreError> {
    let read = columns.into_iter().map(read).collect::<Result<_, _>>();
    read.map_err(|corrupt| Fault::from(rusqlite::Error::from(corrupt)).into_error(operation))
}
