//! The nodes that use the database.

use std::time::Duration;

use domain::ids::NodeId;
use domain::ports::{HeartbeatResult, NodeInfo, StoreError};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::retry::Query;
use super::{PostgresStore, Values, column, fault, prune, retry};
use crate::rows::operations::heartbeat_result;
use crate::rows::{self, Corrupt, duration_us};

const JOIN: &str = concat!(
    "INSERT INTO node (alive_until_us, started_us, schema_level, works, roles, version, host, listen)
    SELECT now_us + $1::bigint, now_us - $2::bigint, $3::bigint, $4::boolean, $5::text, $6::text, $7::text, $8::text
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) RETURNING id"
);
const RENEW_HEARTBEAT: &str = concat!(
    "WITH renewed AS (UPDATE node SET alive_until_us = ",
    now_us!(),
    " + $2::bigint WHERE id = $1 RETURNING id)
    SELECT EXISTS (SELECT 1 FROM renewed),
        (SELECT coalesce(f.oldest, m.number) FROM schema_migration AS m LEFT JOIN schema_fit AS f ON f.number = m.number
        ORDER BY m.number DESC LIMIT 1)"
);
/// A paused node that was removed may have claimed rows since. So every holder of rows that is not known to
/// be alive is dead. Holders are few, and are found by steps through the index between the nodes that are alive: their
/// finished rows may stay in the index by the million while vacuum cannot remove them.
const REMOVE_DEAD: &str = concat!(
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
    " RETURNING coalesce(host, 'unknown') || ' ' || coalesce(listen, '') AS name
    ), lost AS (
        INSERT INTO alert (topic, subject, account_id, level, since_us, told, data)
        SELECT DISTINCT 'node', name, 0, 1, ",
    now_us!(),
    ", 0, json_build_object('node', name)::text FROM forgotten
        ON CONFLICT (topic, subject) DO UPDATE SET level = 1, told = 0, since_us = excluded.since_us
    ), notes AS (
        DELETE FROM carrier WHERE node <> $1 AND node NOT IN (SELECT id FROM alive)
    ), sessions AS (
        DELETE FROM smpp_session WHERE node <> $1 AND node NOT IN (SELECT id FROM alive)
    ), demands AS (
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
    sessions AS (DELETE FROM smpp_session WHERE node = $1),
    demands AS (DELETE FROM bind_wish WHERE node = $1),
    binds AS (UPDATE bind SET owner = 0 WHERE owner = $1),
    messages AS (UPDATE queue SET owner = 0 WHERE owner = $1)
    UPDATE callback_queue SET owner = 0 WHERE owner = $1";

/// A heartbeat without an answer is repeated over another connection after this time. One attempt and a new connection
/// take less than a third of the lifetime of a node.
const HEARTBEAT_DEADLINE: Duration = Duration::from_millis(1_500);

impl PostgresStore {
    /// Runs a statement that returns one row, over the connection for heartbeats.
    async fn get_over_heartbeat<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        let query = Query { sql, values };
        let run = retry::run_within(HEARTBEAT_DEADLINE, &self.heartbeat, operation, &query);
        let rows = run.await?;
        let first = rows
            .first()
            .ok_or(Corrupt("table of one row"))
            .and_then(read);
        first.map_err(|corrupt| fault::corrupt(operation, corrupt))
    }

    pub(super) async fn join_node(
        &self,
        info: &NodeInfo,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError> {
        let read = |row: &Row| rows::node_id(column(row, 0)?);
        let values: Values<'_> = &[
            &duration_us(lifetime),
            &duration_us(up_for),
            &self.level,
            &info.works,
            &info.roles.join(","),
            &info.version,
            &info.host,
            &info.listen,
        ];
        self.get_over_heartbeat("join", JOIN, values, read).await
    }

    pub(super) async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError> {
        let values: Values<'_> = &[&node.as_i64(), &duration_us(lifetime)];
        let read = |row: &Row| heartbeat_result(column(row, 0)?, column(row, 1)?, self.level);
        self.get_over_heartbeat("renew the heartbeat", RENEW_HEARTBEAT, values, read)
            .await
    }

    pub(super) async fn remove_dead(&self, node: NodeId) -> Result<u64, StoreError> {
        let node = node.as_i64();
        self.get("remove dead nodes", REMOVE_DEAD, &[&node], prune::count)
            .await
    }

    pub(super) async fn remove_node(&self, node: NodeId) -> Result<(), StoreError> {
        let left = self.query("leave", LEAVE, &[&node.as_i64()]).await;
        left.map(drop)
    }
}
