//! Who works on the file. Only one service can, so whoever else is in the table has died.

use domain::ids::NodeId;
use rusqlite::{Connection, Result, params};

use super::clock;
use crate::rows;

const JOIN: &str = "INSERT INTO node (alive_until_us) VALUES (?1) RETURNING id";
const BEAT: &str = "UPDATE node SET alive_until_us = ?2 WHERE id = ?1";
const FORGET_OTHERS: [&str; 4] = [
    "DELETE FROM node WHERE id <> ?1",
    "DELETE FROM carrier WHERE node <> ?1",
    "DELETE FROM bind_wish WHERE node <> ?1",
    "UPDATE bind SET owner = 0 WHERE owner <> 0 AND owner <> ?1",
];
const FORGET: [&str; 4] = [
    "DELETE FROM node WHERE id = ?1",
    "DELETE FROM carrier WHERE node = ?1",
    "DELETE FROM bind_wish WHERE node = ?1",
    "UPDATE bind SET owner = 0 WHERE owner = ?1",
];
/// In two ranges around the caller's own rows, which need not be read.
const GIVE_BACK_OTHERS: [&str; 4] = [
    "UPDATE queue SET owner = 0 WHERE owner > 0 AND owner < ?1",
    "UPDATE queue SET owner = 0 WHERE owner > ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner > 0 AND owner < ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner > ?1",
];
const GIVE_BACK: [&str; 2] = [
    "UPDATE queue SET owner = 0 WHERE owner = ?1",
    "UPDATE callback_queue SET owner = 0 WHERE owner = ?1",
];

/// Adds a node.
pub(super) fn join(db: &Connection, lifetime_us: i64) -> Result<NodeId> {
    let until_us = clock::now_us(db)?.saturating_add(lifetime_us);
    let id = db
        .prepare_cached(JOIN)?
        .query_row([until_us], |row| row.get(0))?;
    Ok(rows::node_id(id)?)
}

/// Lets a node live on; `false` when it was given up.
pub(super) fn beat(db: &Connection, node: NodeId, lifetime_us: i64) -> Result<bool> {
    let until_us = clock::now_us(db)?.saturating_add(lifetime_us);
    let mut beat = db.prepare_cached(BEAT)?;
    Ok(beat.execute(params![node.as_i64(), until_us])? > 0)
}

/// Gives back what all others hold.
pub(super) fn give_up_others(db: &Connection, node: NodeId) -> Result<u64> {
    run_all(db, &FORGET_OTHERS, node)?;
    run_all(db, &GIVE_BACK_OTHERS, node)
}

/// Gives back what a node holds, and forgets it.
pub(super) fn leave(db: &Connection, node: NodeId) -> Result<()> {
    run_all(db, &FORGET, node)?;
    run_all(db, &GIVE_BACK, node).map(drop)
}

/// Says how many rows the statements changed.
fn run_all(db: &Connection, statements: &[&str], node: NodeId) -> Result<u64> {
    let mut changed = 0;
    for sql in statements {
        changed += db.prepare_cached(sql)?.execute([node.as_i64()])? as u64;
    }
    Ok(changed)
}
