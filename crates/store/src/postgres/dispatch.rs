//! The port for sending.

use std::sync::Arc;

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Receipt, Settlement};
use domain::ids::NodeId;
use domain::ports::{
    CarrierStatus, Claimed, ClaimedRow, DispatchStore, Ended, HeartbeatResult, InTransit, Inbox,
    Matched, NodeInfo, PoolClaim, Settled, StoreError,
};
use domain::{KeyRing, Msisdn, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::claims::Claims;
use super::ending::MarkSeen;
use super::receipts::{Holder, Receipts};
use super::sends::{Expiry, Sends};
use super::{PostgresStore, column, fault, retry};
use crate::rows::dispatch::{InboxColumns, TransitColumns};
use crate::rows::ended::{EndedColumns, MatchedColumns, SettledColumns};
use crate::rows::{self, Corrupt, duration_us};

const NOW: &str = concat!("SELECT ", now_us!());
const LIST_IN_TRANSIT: &str = "
    SELECT t.reference, m.recipient, t.taken_us FROM transit AS t JOIN message AS m ON m.id = ANY(ARRAY[t.id])
    WHERE t.carrier = $1 AND t.reference > $2 AND t.status IS NULL ORDER BY t.reference LIMIT $3";
const HAS_EARLY: &str =
    "SELECT EXISTS (SELECT 1 FROM early_receipt WHERE carrier = $1 AND reference = $2)";
/// Reads from the newest message back, without an index: only people who try the simulator use this.
const LIST_INBOX: &str = "
    SELECT m.originator, m.body, m.final_us, c.text FROM transit AS t JOIN message AS m ON m.id = t.id
        LEFT JOIN code_text AS c ON c.message_id = m.id
    WHERE t.carrier = $1 AND t.part = 1 AND m.recipient = $2 AND m.status = 1 ORDER BY t.id DESC LIMIT $3";

#[async_trait]
impl DispatchStore for PostgresStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let read = |row: &Row| rows::timestamp(column(row, 0)?);
        self.get("read the clock", NOW, &[], read).await
    }

    async fn join(
        &self,
        info: &NodeInfo,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        self.join_node(info, up_for, lifetime).await
    }

    async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError> {
        self.renew_heartbeat(node, lifetime).await
    }

    async fn remove_dead_nodes(&self, node: NodeId) -> Result<u64, StoreError> {
        self.remove_dead(node).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.remove_node(node).await
    }

    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError> {
        let claims = Claims {
            node,
            limits,
            pools,
            lanes: &self.lanes,
            keys: &self.keys,
        };
        retry::run(&self.pool, "claim messages", &claims).await
    }

    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        self.held_rows(node, duration_us(due_for), after.as_ref(), limit)
            .await
    }

    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError> {
        self.release_rows(node, rows).await
    }

    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError> {
        const OPERATION: &str = "settle sends";
        let batch = &batch;
        let days = &self.day_statements;
        let sends = Sends {
            node,
            batch,
            hold,
            days,
        };
        let mut settled = retry::run(&self.pool, OPERATION, &sends).await?;
        // The results are stored, so a failure here must not fail them.
        if let Err(error) = self.settle_early(node, hold, batch, &mut settled).await {
            tracing::warn!(%error, "receipts that arrived before these answers are matched later");
        }
        read_all(OPERATION, settled, SettledColumns::settled)
    }

    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError> {
        const OPERATION: &str = "settle receipts";
        let batch = &batch;
        let holder = Holder::new(node, hold);
        let days = &self.day_statements;
        let receipts = Receipts {
            batch,
            holder,
            days,
        };
        let mut matched = retry::run(&self.pool, OPERATION, &receipts).await?;
        if let Err(error) = self.match_again(node, hold, batch, &mut matched).await {
            tracing::warn!(%error, "parts that got their references meanwhile are matched with these receipts later");
        }
        read_all(OPERATION, matched, MatchedColumns::matched)
    }

    async fn match_stored_receipts(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let ended = self.match_stored(node, limit, hold).await?;
        read_all("match stored receipts", ended, EndedColumns::ended)
    }

    async fn mark_seen(&self, of: &CarrierRef, at: Timestamp) -> Result<bool, StoreError> {
        let seen = MarkSeen { of, at };
        retry::run(&self.pool, "mark a message as seen", &seen).await
    }

    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        const OPERATION: &str = "expire messages";
        let expiry = Expiry {
            node,
            limit,
            hold,
            taken: true,
            days: &self.day_statements,
        };
        let ended = retry::run(&self.pool, OPERATION, &expiry).await?;
        read_all(OPERATION, ended, EndedColumns::ended)
    }

    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        const OPERATION: &str = "expire waiting messages";
        let expiry = Expiry {
            node,
            limit,
            hold,
            taken: false,
            days: &self.day_statements,
        };
        let ended = retry::run(&self.pool, OPERATION, &expiry).await?;
        read_all(OPERATION, ended, EndedColumns::ended)
    }

    async fn has_early_receipt(&self, of: &CarrierRef) -> Result<bool, StoreError> {
        let values: super::Values<'_> = &[&of.carrier, &of.reference.as_bytes()];
        let read = |row: &Row| column(row, 0);
        self.get("find an early receipt", HAS_EARLY, values, read)
            .await
    }

    async fn list_in_transit(
        &self,
        carrier: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<InTransit>, StoreError> {
        let values: super::Values<'_> = &[&carrier, &after.as_bytes(), &i64::from(limit)];
        self.list("list parts in transit", LIST_IN_TRANSIT, values, in_transit)
            .await
    }

    async fn replace_carrier_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError> {
        self.store_statuses(node, statuses).await
    }

    async fn list_inbox(
        &self,
        carrier: &str,
        to: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Inbox>, StoreError> {
        let values: super::Values<'_> = &[&carrier, &to.as_i64(), &i64::from(limit)];
        let inbox = |row: &Row| inbox(row, &self.keys, to);
        self.list("list an inbox", LIST_INBOX, values, inbox).await
    }

    async fn prune_receipts(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        self.prune_old_receipts(duration_us(age), limit).await
    }

    async fn prune_messages(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        self.prune_old_messages(duration_us(age), limit).await
    }
}

fn read_all<C, T>(
    operation: &'static str,
    columns: Vec<C>,
    read: impl Fn(C) -> Result<T, Corrupt>,
) -> Result<Vec<T>, StoreError> {
    let read = columns.into_iter().map(read).collect::<Result<_, _>>();
    read.map_err(|corrupt| fault::corrupt(operation, corrupt))
}

fn in_transit(row: &Row) -> Result<InTransit, Corrupt> {
    TransitColumns::read(row)?.in_transit()
}

fn inbox(row: &Row, keys: &KeyRing, to: &Msisdn) -> Result<Inbox, Corrupt> {
    InboxColumns::read(row)?.inbox(keys, to)
}
