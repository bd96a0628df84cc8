//! The port for sending.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Receipt, Settlement};
use domain::ids::NodeId;
use domain::ports::{
    Beat, CarrierNote, CarrierSeen, Claimed, ClaimedRow, DispatchStore, Ended, InTransit, Inbox,
    Matched, NodeCard, PoolClaim, Settled, StoreError,
};
use domain::{KeyRing, Msisdn, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::attempt::Query;
use super::claims::Claims;
use super::ending::Seen;
use super::receipts::{Holder, Receipts};
use super::sends::{Expiry, Sends};
use super::{PostgresStore, attempt, column, fault, prune};
use crate::rows::dispatch::{
    EndedColumns, InboxColumns, MatchedColumns, SettledColumns, TransitColumns,
};
use crate::rows::operations::beat;
use crate::rows::{self, Corrupt, duration_us};

const NOW: &str = concat!("SELECT ", now_us!());
const JOIN: &str = concat!(
    "INSERT INTO node (alive_until_us, started_us, schema_level, works, roles, version, host, listen)
    SELECT now_us + $1::bigint, now_us - $2::bigint, $3::bigint, $4::boolean, $5::text, $6::text, $7::text, $8::text
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) RETURNING id"
);
const BEAT: &str = concat!(
    "WITH beaten AS (UPDATE node SET alive_until_us = ",
    now_us!(),
    " + $2::bigint WHERE id = $1 RETURNING id)
    SELECT EXISTS (SELECT 1 FROM beaten),
        (SELECT coalesce(f.oldest, m.number) FROM schema_migration AS m LEFT JOIN schema_fit AS f ON f.number = m.number
        ORDER BY m.number DESC LIMIT 1)"
);
/// A node that was given up while it stood still may since have stored rows in its name; so whoever holds rows and is not
/// known to live is dead. Holders are few, and found by steps through the index between those that live: what these have
/// done may lie about there by the million, when it cannot be swept.
const GIVE_UP_DEAD: &str = concat!(
    "WITH RECURSIVE alive AS MATERIALIZED (
        SELECT id FROM node WHERE id = $1 OR alive_until_us >= ",
    now_us!(),
    "), gap (above, below) AS MATERIALIZED (
        SELECT id, lead(id, 1, 9223372036854775807) OVER (ORDER BY id)
        FROM (SELECT 0::bigint AS id UNION SELECT $1 UNION SELECT id FROM alive) AS bound
    ), holder (id, below) AS (
        SELECT (SELECT min(owner) FROM queue WHERE owner > gap.above AND owner < gap.below), gap.below FROM gap
        UNION ALL
        SELECT (SELECT min(owner) FROM queue WHERE owner > h.id AND owner < h.below), h.below
        FROM holder AS h WHERE h.id IS NOT NULL
    ), callback_holder (id, below) AS (
        SELECT (SELECT min(owner) FROM callback_queue WHERE owner > gap.above AND owner < gap.below), gap.below FROM gap
        UNION ALL
        SELECT (SELECT min(owner) FROM callback_queue WHERE owner > h.id AND owner < h.below), h.below
        FROM callback_holder AS h WHERE h.id IS NOT NULL
    ), forgotten AS (
        DELETE FROM node WHERE id <> $1 AND alive_until_us < ",
    now_us!(),
    "), notes AS (
        DELETE FROM carrier WHERE node <> $1 AND node NOT IN (SELECT id FROM alive)
    ), wishes AS (
        DELETE FROM bind_wish WHERE node <> $1 AND node NOT IN (SELECT id FROM alive)
    ), binds AS (
        UPDATE bind SET owner = 0 FROM (
            SELECT DISTINCT owner FROM bind WHERE owner <> 0 AND owner <> $1 AND owner NOT IN (SELECT id FROM alive)
        ) AS dead WHERE bind.owner = dead.owner
    ), messages AS (
        UPDATE queue SET owner = 0 FROM holder WHERE queue.owner = ANY(ARRAY[holder.id]) RETURNING 1
    ), callbacks AS (
        UPDATE callback_queue SET owner = 0 FROM callback_holder AS holder
        WHERE callback_queue.owner = ANY(ARRAY[holder.id]) RETURNING 1
    )
    SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM callbacks)"
);
const LEAVE: &str = "
    WITH forgotten AS (DELETE FROM node WHERE id = $1),
    notes AS (DELETE FROM carrier WHERE node = $1),
    wishes AS (DELETE FROM bind_wish WHERE node = $1),
    binds AS (UPDATE bind SET owner = 0 WHERE owner = $1),
    messages AS (UPDATE queue SET owner = 0 WHERE owner = $1)
    UPDATE callback_queue SET owner = 0 WHERE owner = $1";

const LIST_IN_TRANSIT: &str = "
    SELECT t.reference, m.recipient, t.taken_us FROM transit AS t JOIN message AS m ON m.id = ANY(ARRAY[t.id])
    WHERE t.carrier = $1 AND t.reference > $2 AND t.status IS NULL ORDER BY t.reference LIMIT $3";
/// Read from the newest message back. Without an index of its own: only people who try things out ask.
const LIST_INBOX: &str = "
    SELECT m.originator, m.body, m.final_us, c.text FROM transit AS t JOIN message AS m ON m.id = t.id
        LEFT JOIN code_text AS c ON c.message_id = m.id
    WHERE t.carrier = $1 AND t.part = 1 AND m.recipient = $2 AND m.status = 1 ORDER BY t.id DESC LIMIT $3";

/// A heartbeat that gets no answer for this long is tried again over another connection. A try and connecting anew take
/// less than a third of the time that a node lives without one.
const HEARTBEAT_DEADLINE: Duration = Duration::from_millis(1_500);

impl PostgresStore {
    /// Runs a statement that gives one row, over the connection that is kept for heartbeats.
    async fn get_by_heartbeat<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: super::Values<'_>,
        read: impl Fn(&Row) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        let query = Query { sql, values };
        let run = attempt::run_within(HEARTBEAT_DEADLINE, &self.heartbeat, operation, &query);
        let rows = run.await?;
        let first = rows
            .first()
            .ok_or(Corrupt("table of one row"))
            .and_then(read);
        first.map_err(|corrupt| fault::corrupt(operation, corrupt))
    }
}

#[async_trait]
impl DispatchStore for PostgresStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let read = |row: &Row| rows::timestamp(column(row, 0)?);
        self.get("read the clock", NOW, &[], read).await
    }

    async fn join(
        &self,
        card: &NodeCard,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        let read = |row: &Row| rows::node_id(column(row, 0)?);
        let values: super::Values<'_> = &[
            &duration_us(lifetime),
            &duration_us(up_for),
            &self.level,
            &card.works,
            &card.roles.join(","),
            &card.version,
            &card.host,
            &card.listen,
        ];
        self.get_by_heartbeat("join", JOIN, values, read).await
    }

    async fn beat(&self, node: NodeId, lifetime: SignedDuration) -> Result<Beat, StoreError> {
        let values: super::Values<'_> = &[&node.as_i64(), &duration_us(lifetime)];
        let read = |row: &Row| beat(column(row, 0)?, column(row, 1)?, self.level);
        self.get_by_heartbeat("beat", BEAT, values, read).await
    }

    async fn give_up_dead(&self, node: NodeId) -> Result<u64, StoreError> {
        let node = node.as_i64();
        self.get("give up dead nodes", GIVE_UP_DEAD, &[&node], prune::count)
            .await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let left = self.query("leave", LEAVE, &[&node.as_i64()]).await;
        left.map(drop)
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
        attempt::run(&self.pool, "claim messages", &claims).await
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
        let sends = Sends { node, batch, hold };
        let mut settled = attempt::run(&self.pool, OPERATION, &sends).await?;
        // The answers are stored, so this is no failure of theirs.
        if let Err(error) = self.settle_early(node, hold, batch, &mut settled).await {
            tracing::warn!(%error, "receipts that came before these answers are compared later");
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
        let receipts = Receipts { batch, holder };
        let mut matched = attempt::run(&self.pool, OPERATION, &receipts).await?;
        if let Err(error) = self.look_again(node, hold, batch, &mut matched).await {
            tracing::warn!(%error, "parts that were named meanwhile are compared with these receipts later");
        }
        read_all(OPERATION, matched, MatchedColumns::matched)
    }

    async fn compare_receipts(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError> {
        let ended = self.compare_kept(node, limit, hold).await?;
        read_all("compare kept receipts", ended, EndedColumns::ended)
    }

    async fn mark_seen(&self, of: &CarrierRef, at: Timestamp) -> Result<bool, StoreError> {
        let seen = Seen { of, at };
        attempt::run(&self.pool, "note that a message was seen", &seen).await
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
        };
        let ended = attempt::run(&self.pool, OPERATION, &expiry).await?;
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
        };
        let ended = attempt::run(&self.pool, OPERATION, &expiry).await?;
        read_all(OPERATION, ended, EndedColumns::ended)
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

    async fn note_carriers(&self, node: NodeId, notes: &[CarrierNote]) -> Result<(), StoreError> {
        self.replace_notes(node, notes).await
    }

    async fn list_carriers(&self) -> Result<Vec<CarrierSeen>, StoreError> {
        self.list_notes().await
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
    let columns = TransitColumns {
        reference: column(row, 0)?,
        recipient: column(row, 1)?,
        taken_us: column(row, 2)?,
    };
    columns.in_transit()
}

fn inbox(row: &Row, keys: &KeyRing, to: &Msisdn) -> Result<Inbox, Corrupt> {
    let columns = InboxColumns {
        originator: column(row, 0)?,
        body: column(row, 1)?,
        final_us: column(row, 2)?,
        code_text: column(row, 3)?,
    };
    columns.inbox(keys, to)
}
