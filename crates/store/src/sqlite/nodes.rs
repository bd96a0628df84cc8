//! The nodes that use the file. Only one worker can use it, so any other worker in the table is dead.

use domain::ids::NodeId;
use domain::ports::{HeartbeatResult, NodeInfo};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::clock;
use crate::rows::{self, operations};

const JOIN: &str = "
    INSERT INTO node (alive_until_us, started_us, schema_level, works, roles, version, host, listen)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id";
const RENEW_HEARTBEAT: &str = "UPDATE node SET alive_until_us = ?2 WHERE id = ?1";
const OLDEST: &str = "
    SELECT coalesce((SELECT f.oldest FROM schema_fit AS f WHERE f.number = m.number), m.number)
    FROM schema_migration AS m ORDER BY m.number DESC LIMIT 1";
const REPORT_LOST: &str = "
    INSERT INTO alert (topic, subject, account_id, level, since_us, told, data)
    SELECT DISTINCT 'node', name, 0, 1, ?2, 0, json_object('node', name) FROM (
        SELECT coalesce(host, 'unknown') || ' ' || coalesce(listen, '') AS name FROM node
        WHERE id <> ?1 AND (works OR alive_until_us < ?2)
    ) WHERE TRUE
    ON CONFLICT (topic, subject) DO UPDATE SET level = 1, told = 0, since_us = excluded.since_us";
const DELETE_OTHERS: &str = "DELETE FROM node WHERE id <> ?1 AND (works OR alive_until_us < ?2)";
const DELETE_ROWS_OF_OTHERS: [&str; 4] = [
    "DELETE FROM carrier WHERE node <> ?1",
    "DELETE FROM smpp_session WHERE node <> ?1",
    "DELETE FROM bind_wish WHERE node <> ?1",
    "UPDATE bind SET owner = 0 WHERE owner <> 0 AND owner <> ?1",
];
const DELETE: [&str; 5] = [
    "DELETE FROM node WHERE id = ?1",
    "DELETE FROM carrier WHERE node = ?1",
    "DELETE FROM smpp_session WHERE node = ?1",
    "DELETE FROM bind_wish WHERE node = ?1",
    "UPDATE bind SET owner = 0 WHERE owner = ?1",
];
/// Two ranges, so that the rows of this node are not read.
const RELEASE_OTHERS: [&str; 4] = [
    "UPDATE queue SET owner = 0 WHERE owner > 0 AND owner < ?1",
    "UPDATE queue SET owner = 0 WHERE owner > ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner > 0 AND owner < ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner > ?1",
];
const RELEASE: [&str; 2] = [
    "UPDATE queue SET owner = 0 WHERE owner = ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner = ?1",
];

/// Adds a node.
pub(super) fn join(
    db: &Connection,
    info: &NodeInfo,
    level: i64,
    up_us: i64,
    lifetime_us: i64,
) -> Result<NodeId> {
    let now_us = clock::now_us(db)?;
    let values = params![
        now_us.saturating_add(lifetime_us),
        now_us.saturating_sub(up_us),
        level,
        info.works,
        info.roles.join(","),
        info.version,
        info.host,
        info.listen,
    ];
    let id = db
        .prepare_cached(JOIN)?
        .query_row(values, |row| row.get(0))?;
    Ok(rows::node_id(id)?)
}

/// Renews the heartbeat of a node, unless it was removed or its program is too old.
pub(super) fn renew_heartbeat(
    db: &Connection,
    node: NodeId,
    level: i64,
    lifetime_us: i64,
) -> Result<HeartbeatResult> {
    let until_us = clock::now_us(db)?.saturating_add(lifetime_us);
    let mut renew_heartbeat = db.prepare_cached(RENEW_HEARTBEAT)?;
    let is_known = renew_heartbeat.execute(params![node.as_i64(), until_us])? > 0;
    let oldest = db
        .prepare_cached(OLDEST)?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(operations::heartbeat_result(is_known, oldest, level)?)
}

/// Releases the rows that other nodes hold.
pub(super) fn remove_others(db: &Connection, node: NodeId) -> Result<u64> {
    let now_us = clock::now_us(db)?;
    db.prepare_cached(REPORT_LOST)?
        .execute(params![node.as_i64(), now_us])?;
    db.prepare_cached(DELETE_OTHERS)?
        .execute(params![node.as_i64(), now_us])?;
    run_all(db, &DELETE_ROWS_OF_OTHERS, node)?;
    run_all(db, &RELEASE_OTHERS, node)
}

/// Releases the rows that a node holds, and deletes the node.
pub(super) fn leave(db: &Connection, node: NodeId) -> Result<()> {
    run_all(db, &DELETE, node)?;
    run_all(db, &RELEASE, node).map(drop)
}

/// Returns how many rows the statements changed.
fn run_all(db: &Connection, statements: &[&str], node: NodeId) -> Result<u64> {
    let mut changed = 0;
    for sql in statements {
        changed += db.prepare_cached(sql)?.execute([node.as_i64()])? as u64;
    }
    Ok(changed)
}
