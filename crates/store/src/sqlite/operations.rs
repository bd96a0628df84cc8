//! The port for operators: nodes, queues, overdue messages, unmatched receipts.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{
    DatabaseFacts, NodeCarrierStatus, NodeStatus, OperationsStore, Overdue, QueueDepth, Receiver,
    StoreError, Unmatched,
};
use jiff::SignedDuration;
use rusqlite::{Connection, Result, Row, params};

use super::{SqliteStore, carriers, clock};
use crate::rows::binds::SET_ASIDE;
use crate::rows::duration_us;
use crate::rows::operations::{
    DatabaseColumns, DepthColumns, HELD_ROWS, MOST, NodeColumns, OverdueColumns, SAMPLE,
    UnmatchedColumns, WaitingColumns, receivers,
};
use crate::sql::operations as sql;

/// The queues of receivers, found by steps through the index: at most 100.
macro_rules! receivers {
    () => {
        "SELECT min(owner) FROM callback_queue WHERE owner < 0
        UNION ALL
        SELECT (SELECT min(q.owner) FROM callback_queue AS q WHERE q.owner > receiver.owner AND q.owner < 0)
        FROM receiver WHERE receiver.owner IS NOT NULL LIMIT 100"
    };
}
const DESCRIBE: &str = "
    SELECT sqlite_version(), (SELECT max(number) FROM schema_migration), c.page_count * s.page_size
    FROM pragma_page_count AS c, pragma_page_size AS s";
const LIST_NODES: &str = "
    SELECT id, alive_until_us, alive_until_us < ?1,
        (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = node.id LIMIT ?2)),
        started_us, schema_level, works, roles, version, host, listen
    FROM node ORDER BY id";
/// The number of each queue, the number of its rows, and its first time.
const LIST_QUEUES: &str = concat!(
    "WITH RECURSIVE receiver (owner) AS (",
    receivers!(),
    "), lane (lane) AS (VALUES (0), (1), (2)),
    open (owner) AS (SELECT 0 UNION ALL SELECT -1 - id FROM pool)
    SELECT 0, lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM open CROSS JOIN queue ON queue.owner = open.owner
            WHERE queue.lane = lane.lane AND due_us <= ?1 LIMIT ?2)),
        (SELECT min(first_us) FROM (SELECT (SELECT min(due_us) FROM queue
            WHERE queue.owner = open.owner AND queue.lane = lane.lane AND due_us <= ?1) AS first_us FROM open))
    FROM lane
    UNION ALL
    SELECT 1, lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM queue WHERE owner = 0 AND queue.lane = lane.lane AND due_us > ?1 LIMIT ?2)),
        (SELECT min(due_us) FROM queue WHERE owner = 0 AND queue.lane = lane.lane AND due_us > ?1)
    FROM lane
    UNION ALL
    SELECT 2, 0, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner > 0 LIMIT ?2)), NULL
    UNION ALL
    SELECT 3, 0, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = -1 LIMIT ?2)),
        (SELECT min(due_us) FROM queue WHERE owner = -1 AND lane = 0)
    UNION ALL
    SELECT 7, 0, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = ?3 LIMIT ?2)),
        (SELECT min(first_us) FROM (SELECT (SELECT min(due_us) FROM queue
            WHERE queue.owner = ?3 AND queue.lane = lane.lane) AS first_us FROM lane))
    UNION ALL
    SELECT 4, 0,
        (SELECT count(*) FROM (
            SELECT 1 FROM callback_queue WHERE owner > 0
            UNION ALL SELECT 1 FROM callback_queue WHERE owner < 0
            UNION ALL SELECT 1 FROM callback_queue WHERE owner = 0 AND due_us <= ?1 LIMIT ?2)),
        (SELECT min(first_us) FROM (
            SELECT min(due_us) AS first_us FROM callback_queue WHERE owner = 0 AND due_us <= ?1
            UNION ALL SELECT (SELECT min(due_us) FROM callback_queue AS q WHERE q.owner = receiver.owner) FROM receiver))
    UNION ALL
    SELECT 5, 0, (SELECT count(*) FROM (SELECT 1 FROM callback_queue WHERE owner = 0 AND due_us > ?1 LIMIT ?2)),
        (SELECT min(due_us) FROM callback_queue WHERE owner = 0 AND due_us > ?1)
    UNION ALL
    SELECT 6, 0, (SELECT count(*) FROM (SELECT 1 FROM callback WHERE state = 1 LIMIT ?2)),
        (SELECT created_us FROM callback WHERE state = 1 ORDER BY id LIMIT 1)"
);
/// Rows that no node holds are ordered by time within their lane; of held rows, a limited number is read.
const LIST_OVERDUE: &str = "
    SELECT q.id, m.account_id, q.owner, q.due_us, q.tries FROM (
        SELECT * FROM (SELECT * FROM queue WHERE owner = 0 AND lane = 0 AND due_us <= ?1 ORDER BY due_us LIMIT ?2)
        UNION ALL
        SELECT * FROM (SELECT * FROM queue WHERE owner = 0 AND lane = 1 AND due_us <= ?1 ORDER BY due_us LIMIT ?2)
        UNION ALL
        SELECT * FROM (SELECT * FROM queue WHERE owner = 0 AND lane = 2 AND due_us <= ?1 ORDER BY due_us LIMIT ?2)
        UNION ALL
        SELECT * FROM (SELECT * FROM queue WHERE owner > 0 LIMIT ?3) WHERE due_us <= ?1
        UNION ALL
        SELECT * FROM (SELECT * FROM queue WHERE owner < -1 LIMIT ?3) WHERE due_us <= ?1
    ) AS q JOIN message AS m ON m.id = q.id
    ORDER BY q.due_us, q.id LIMIT ?2";
/// `CROSS JOIN` fixes the order: first the few waiting callbacks, then their rows. The planner would read all
/// callbacks.
const LIST_WAITING: &str = concat!(
    "WITH RECURSIVE receiver (owner) AS (",
    receivers!(),
    ")
    SELECT coalesce(c.url, m.dlr_url, x''), c.state, c.created_us, a.reason, open.count, c.account_id, c.tries FROM (
        SELECT (SELECT q.id FROM callback_queue AS q WHERE q.owner = r.owner ORDER BY q.due_us, q.id LIMIT 1) AS id,
            (SELECT count(*) FROM (SELECT 1 FROM callback_queue AS q WHERE q.owner = r.owner LIMIT 10000)) AS count
        FROM receiver AS r WHERE r.owner IS NOT NULL
        UNION ALL
        SELECT id, 1 FROM (SELECT id FROM callback_queue WHERE owner >= 0 LIMIT ?1)
        UNION ALL
        SELECT id, 1 FROM (SELECT id FROM callback WHERE state = 1 ORDER BY id DESC LIMIT ?1)
    ) AS open CROSS JOIN callback AS c ON c.id = open.id
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.id = c.id * 1048576 + min(c.tries, 1048575)
    ORDER BY c.id DESC"
);
const LIST_WAITING_OF: &str = concat!(
    "WITH RECURSIVE receiver (owner) AS (",
    receivers!(),
    ")
    SELECT coalesce(c.url, m.dlr_url, x''), c.state, c.created_us, a.reason, open.count, c.account_id, c.tries FROM (
        SELECT (SELECT q.id FROM callback_queue AS q WHERE q.owner = r.owner ORDER BY q.due_us, q.id LIMIT 1) AS id,
            (SELECT count(*) FROM (SELECT 1 FROM callback_queue AS q WHERE q.owner = r.owner LIMIT 10000)) AS count
        FROM receiver AS r WHERE r.owner IS NOT NULL
        UNION ALL
        SELECT id, 1 FROM (SELECT id FROM callback_queue WHERE owner >= 0 LIMIT ?1)
        UNION ALL
        SELECT id, 1 FROM (SELECT id FROM callback WHERE state = 1 AND account_id = ?2 ORDER BY id DESC LIMIT ?1)
    ) AS open CROSS JOIN callback AS c ON c.id = open.id AND c.account_id = ?2
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.id = c.id * 1048576 + min(c.tries, 1048575)
    ORDER BY c.id DESC"
);

#[async_trait]
impl OperationsStore for SqliteStore {
    async fn describe_database(&self) -> Result<DatabaseFacts, StoreError> {
        self.read("describe the database", describe).await
    }

    async fn list_nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.read("list nodes", list_nodes).await
    }

    async fn list_carrier_statuses(&self) -> Result<Vec<NodeCarrierStatus>, StoreError> {
        self.read("list carriers", carriers::list).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.read("list queues", list_queues).await
    }

    async fn list_overdue(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Overdue>, StoreError> {
        let age_us = duration_us(age);
        self.read("list overdue messages", move |db| {
            list_overdue(db, age_us, limit)
        })
        .await
    }

    async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError> {
        self.read("list unmatched receipts", move |db| {
            list_unmatched(db, limit)
        })
        .await
    }

    async fn list_receivers(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<Receiver>, StoreError> {
        self.read("list receivers", move |db| list_receivers(db, account))
            .await
    }
}

fn list_nodes(db: &Connection) -> Result<Vec<NodeStatus>> {
    let read = |row: &Row<'_>| Ok(NodeColumns::read(row)?.node()?);
    let now_us = clock::now_us(db)?;
    db.prepare_cached(LIST_NODES)?
        .query_map([now_us, MOST], read)?
        .collect()
}

fn list_queues(db: &Connection) -> Result<Vec<QueueDepth>> {
    let read = |row: &Row<'_>| Ok(DepthColumns::read(row)?.depth()?);
    let now_us = clock::now_us(db)?;
    db.prepare_cached(LIST_QUEUES)?
        .query_map([now_us, MOST, SET_ASIDE], read)?
        .collect()
}

/// Messages that have been overdue for a given time.
fn list_overdue(db: &Connection, age_us: i64, limit: u32) -> Result<Vec<Overdue>> {
    let read = |row: &Row<'_>| Ok(OverdueColumns::read(row)?.overdue()?);
    let before_us = clock::now_us(db)?.saturating_sub(age_us);
    db.prepare_cached(LIST_OVERDUE)?
        .query_map(params![before_us, limit, HELD_ROWS], read)?
        .collect()
}

fn list_unmatched(db: &Connection, limit: u32) -> Result<Vec<Unmatched>> {
    let read = |row: &Row<'_>| Ok(UnmatchedColumns::read(row)?.unmatched()?);
    db.prepare_cached(sql::LIST_UNMATCHED.sqlite)?
        .query_map([limit], read)?
        .collect()
}

fn describe(db: &Connection) -> Result<DatabaseFacts> {
    let read = |row: &Row<'_>| Ok(DatabaseColumns::read(row)?.facts("SQLite")?);
    db.prepare_cached(DESCRIBE)?.query_row([], read)
}

/// The hosts for which callbacks wait or are parked.
fn list_receivers(db: &Connection, account: Option<AccountId>) -> Result<Vec<Receiver>> {
    let read = |row: &Row<'_>| WaitingColumns::read(row);
    let waiting: Vec<WaitingColumns> = match account {
        Some(account) => db
            .prepare_cached(LIST_WAITING_OF)?
            .query_map([SAMPLE, account.as_i64()], read)?
            .collect::<Result<_>>()?,
        None => list_waiting(db)?,
    };
    Ok(receivers(waiting)?)
}

/// A sample of the callbacks that wait or are parked.
pub(super) fn list_waiting(db: &Connection) -> Result<Vec<WaitingColumns>> {
    db.prepare_cached(LIST_WAITING)?
        .query_map([SAMPLE], |row| WaitingColumns::read(row))?
        .collect()
}
