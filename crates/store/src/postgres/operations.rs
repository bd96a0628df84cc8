//! The port for operators: nodes, queues, overdue messages, unmatched receipts.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{
    DatabaseFacts, NodeCarrierStatus, NodeStatus, OperationsStore, Overdue, QueueDepth, Receiver,
    StoreError, Unmatched,
};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::{PostgresStore, fault};
use crate::rows::binds::SET_ASIDE;
use crate::rows::operations::{
    DatabaseColumns, DepthColumns, HELD_ROWS, MOST, NodeColumns, OverdueColumns, SAMPLE,
    UnmatchedColumns, WaitingColumns, receivers,
};
use crate::rows::{Corrupt, duration_us};
use crate::sql::operations as sql;

/// The queues of receivers, found by steps through the index: at most 100.
macro_rules! receivers {
    () => {
        "(SELECT owner, 1 FROM callback_queue WHERE owner < 0 ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT next.owner, receiver.step + 1 FROM receiver CROSS JOIN LATERAL (
            SELECT q.owner FROM callback_queue AS q WHERE q.owner > receiver.owner AND q.owner < 0
            ORDER BY q.owner LIMIT 1
        ) AS next WHERE receiver.step < 100"
    };
}
const DESCRIBE: &str = "
    SELECT current_setting('server_version'), (SELECT max(number) FROM schema_migration),
        pg_database_size(current_database())";
const LIST_NODES: &str = concat!(
    "SELECT id, alive_until_us, alive_until_us < ",
    now_us!(),
    ", (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = node.id LIMIT $1) AS held),
        started_us, schema_level, works, roles, version, host, listen
    FROM node ORDER BY id"
);
/// The number of each queue, the number of its rows, and its first time.
///
/// A first time is `ORDER BY … LIMIT 1`: `min()` reads the whole queue if its plan was made while the queue was empty.
const LIST_QUEUES: &str = concat!(
    "WITH RECURSIVE clock (now_us) AS MATERIALIZED (SELECT ",
    now_us!(),
    "), receiver (owner, step) AS MATERIALIZED (",
    receivers!(),
    "), lane (lane) AS (VALUES (0::smallint), (1::smallint), (2::smallint)
    ), open (owner) AS MATERIALIZED (SELECT 0::bigint UNION ALL SELECT -1 - id FROM pool)
    SELECT 0::smallint, lane.lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM open AS o CROSS JOIN LATERAL (SELECT 1 FROM queue AS q
                WHERE q.owner = o.owner AND q.lane = lane.lane AND q.due_us <= now_us LIMIT $1) AS q LIMIT $1) AS due),
        (SELECT min(q.due_us) FROM open AS o CROSS JOIN LATERAL (SELECT q.due_us FROM queue AS q
            WHERE q.owner = o.owner AND q.lane = lane.lane AND q.due_us <= now_us ORDER BY q.due_us LIMIT 1) AS q)
    FROM lane, clock
    UNION ALL
    SELECT 1::smallint, lane.lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM queue AS q WHERE q.owner = 0 AND q.lane = lane.lane AND q.due_us > now_us LIMIT $1) AS later),
        (SELECT q.due_us FROM queue AS q WHERE q.owner = 0 AND q.lane = lane.lane AND q.due_us > now_us
            ORDER BY q.due_us LIMIT 1)
    FROM lane, clock
    UNION ALL
    SELECT 2::smallint, 0::smallint, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner > 0 LIMIT $1) AS held), NULL
    UNION ALL
    SELECT 3::smallint, 0::smallint, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = -1 LIMIT $1) AS sent),
        (SELECT due_us FROM queue WHERE owner = -1 AND lane = 0 ORDER BY due_us LIMIT 1)
    UNION ALL
    SELECT 7::smallint, 0::smallint, (SELECT count(*) FROM (SELECT 1 FROM queue WHERE owner = $2 LIMIT $1) AS aside),
        (SELECT min(q.due_us) FROM lane CROSS JOIN LATERAL (SELECT q.due_us FROM queue AS q
            WHERE q.owner = $2 AND q.lane = lane.lane ORDER BY q.due_us LIMIT 1) AS q)
    UNION ALL
    SELECT 4::smallint, 0::smallint,
        (SELECT count(*) FROM (
            SELECT 1 FROM callback_queue WHERE owner > 0
            UNION ALL SELECT 1 FROM callback_queue WHERE owner < 0
            UNION ALL SELECT 1 FROM callback_queue WHERE owner = 0 AND due_us <= now_us LIMIT $1) AS due),
        least((SELECT due_us FROM callback_queue WHERE owner = 0 AND due_us <= now_us ORDER BY due_us LIMIT 1),
            (SELECT min(q.due_us) FROM receiver AS r CROSS JOIN LATERAL (SELECT due_us FROM callback_queue
                WHERE callback_queue.owner = r.owner ORDER BY due_us LIMIT 1) AS q))
    FROM clock
    UNION ALL
    SELECT 5::smallint, 0::smallint,
        (SELECT count(*) FROM (SELECT 1 FROM callback_queue WHERE owner = 0 AND due_us > now_us LIMIT $1) AS later),
        (SELECT due_us FROM callback_queue WHERE owner = 0 AND due_us > now_us ORDER BY due_us LIMIT 1)
    FROM clock
    UNION ALL
    SELECT 6::smallint, 0::smallint,
        (SELECT count(*) FROM (SELECT 1 FROM callback WHERE state = 1 LIMIT $1) AS parked),
        (SELECT created_us FROM callback WHERE state = 1 ORDER BY id LIMIT 1)"
);
/// Rows that no node holds are ordered by time within their lane; of held rows, a limited number is read.
const LIST_OVERDUE: &str = concat!(
    "WITH clock (before_us) AS MATERIALIZED (SELECT ",
    now_us!(),
    " - $1::bigint), waiting AS MATERIALIZED (
        SELECT q.* FROM clock, (VALUES (0::smallint), (1::smallint), (2::smallint)) AS lane (lane)
        CROSS JOIN (SELECT 0::bigint UNION ALL SELECT $4::bigint UNION ALL SELECT -1 - id FROM pool) AS open (owner)
        CROSS JOIN LATERAL (
            SELECT * FROM queue WHERE queue.owner = open.owner AND queue.lane = lane.lane AND queue.due_us <= clock.before_us
            ORDER BY queue.due_us, queue.id LIMIT $2
        ) AS q
        UNION ALL
        SELECT held.* FROM clock, (SELECT * FROM queue WHERE owner > 0 LIMIT $3) AS held
        WHERE held.due_us <= clock.before_us
    )
    SELECT q.id, m.account_id, q.owner, q.due_us, q.tries FROM waiting AS q JOIN message AS m ON m.id = ANY(ARRAY[q.id])
    ORDER BY q.due_us, q.id LIMIT $2"
);
const LIST_WAITING: &str = concat!(
    "WITH RECURSIVE receiver (owner, step) AS MATERIALIZED (",
    receivers!(),
    ")
    SELECT coalesce(c.url, m.dlr_url, ''), c.state, c.created_us, a.reason, open.count, c.account_id, c.tries FROM (
        (SELECT first.id, first.message_id, (SELECT count(*) FROM
            (SELECT 1 FROM callback_queue AS q WHERE q.owner = r.owner LIMIT 10000) AS few) AS count
        FROM receiver AS r CROSS JOIN LATERAL (
            SELECT q.id, q.message_id FROM callback_queue AS q WHERE q.owner = r.owner ORDER BY q.due_us, q.id LIMIT 1
        ) AS first)
        UNION ALL
        (SELECT id, message_id, 1::bigint FROM callback_queue WHERE owner >= 0 LIMIT $1)
        UNION ALL
        (SELECT id, message_id, 1::bigint FROM callback WHERE state = 1 ORDER BY id DESC LIMIT $1)
    ) AS open JOIN callback AS c ON c.id = ANY(ARRAY[open.id]) AND c.message_id = ANY(ARRAY[open.message_id])
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.callback_id = c.id AND a.number = c.tries
            AND a.message_id = c.message_id
    ORDER BY c.id DESC"
);
const LIST_WAITING_OF: &str = concat!(
    "WITH RECURSIVE receiver (owner, step) AS MATERIALIZED (",
    receivers!(),
    ")
    SELECT coalesce(c.url, m.dlr_url, ''), c.state, c.created_us, a.reason, open.count, c.account_id, c.tries FROM (
        (SELECT first.id, first.message_id, (SELECT count(*) FROM
            (SELECT 1 FROM callback_queue AS q WHERE q.owner = r.owner LIMIT 10000) AS few) AS count
        FROM receiver AS r CROSS JOIN LATERAL (
            SELECT q.id, q.message_id FROM callback_queue AS q WHERE q.owner = r.owner ORDER BY q.due_us, q.id LIMIT 1
        ) AS first)
        UNION ALL
        (SELECT id, message_id, 1::bigint FROM callback_queue WHERE owner >= 0 LIMIT $1)
        UNION ALL
        (SELECT id, message_id, 1::bigint FROM callback WHERE state = 1 AND account_id = $2 ORDER BY id DESC LIMIT $1)
    ) AS open JOIN callback AS c ON c.id = ANY(ARRAY[open.id]) AND c.message_id = ANY(ARRAY[open.message_id]) AND c.account_id = $2
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.callback_id = c.id AND a.number = c.tries
            AND a.message_id = c.message_id
    ORDER BY c.id DESC"
);

#[async_trait]
impl OperationsStore for PostgresStore {
    async fn describe_database(&self) -> Result<DatabaseFacts, StoreError> {
        self.get("describe the database", DESCRIBE, &[], database)
            .await
    }

    async fn list_nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.list("list nodes", LIST_NODES, &[&MOST], node).await
    }

    async fn list_carrier_statuses(&self) -> Result<Vec<NodeCarrierStatus>, StoreError> {
        self.list_statuses().await
    }

    async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.list("list queues", LIST_QUEUES, &[&MOST, &SET_ASIDE], depth)
            .await
    }

    async fn list_overdue(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Overdue>, StoreError> {
        let values: super::Values<'_> =
            &[&duration_us(age), &i64::from(limit), &HELD_ROWS, &SET_ASIDE];
        self.list("list overdue messages", LIST_OVERDUE, values, overdue)
            .await
    }

    async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError> {
        let limit = i64::from(limit);
        let operation = "list unmatched receipts";
        self.list(
            operation,
            sql::LIST_UNMATCHED.postgres,
            &[&limit],
            unmatched,
        )
        .await
    }

    async fn list_receivers(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<Receiver>, StoreError> {
        const OPERATION: &str = "list receivers";
        let waiting = match account {
            Some(account) => {
                let values: super::Values<'_> = &[&SAMPLE, &account.as_i64()];
                self.list(OPERATION, LIST_WAITING_OF, values, WaitingColumns::read)
                    .await
            }
            None => self.list_waiting_callbacks(OPERATION).await,
        };
        receivers(waiting?).map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }
}

impl PostgresStore {
    /// A sample of the callbacks that wait or are parked.
    pub(super) async fn list_waiting_callbacks(
        &self,
        operation: &'static str,
    ) -> Result<Vec<WaitingColumns>, StoreError> {
        self.list(operation, LIST_WAITING, &[&SAMPLE], WaitingColumns::read)
            .await
    }
}

fn database(row: &Row) -> Result<DatabaseFacts, Corrupt> {
    DatabaseColumns::read(row)?.facts("PostgreSQL")
}

fn node(row: &Row) -> Result<NodeStatus, Corrupt> {
    NodeColumns::read(row)?.node()
}

fn depth(row: &Row) -> Result<QueueDepth, Corrupt> {
    DepthColumns::read(row)?.depth()
}

fn overdue(row: &Row) -> Result<Overdue, Corrupt> {
    OverdueColumns::read(row)?.overdue()
}

fn unmatched(row: &Row) -> Result<Unmatched, Corrupt> {
    UnmatchedColumns::read(row)?.unmatched()
}
