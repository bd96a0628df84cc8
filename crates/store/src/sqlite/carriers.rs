//! The state of carriers, as reported by nodes.

use domain::ids::NodeId;
use domain::ports::{CarrierStatus, NodeCarrierStatus};
use rusqlite::{Connection, Result, Row, params};

use super::clock;
use crate::rows::carriers::CarrierColumns;

const FORGET: &str = "DELETE FROM carrier WHERE node = ?1";
const NOTE: &str = "
    INSERT INTO carrier (node, name, kind, health, links_up, links, note, waiting, under_way, at_us, places,
        per_second, links_total)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const LIST: &str = "
    SELECT c.node, c.name, c.kind, c.health, c.links_up, c.links, c.note, c.waiting, c.under_way, c.at_us,
        c.places, c.per_second, c.links_total
    FROM node JOIN carrier AS c ON c.node = node.id WHERE node.alive_until_us > ?1 ORDER BY c.name, c.node";

/// Replaces the earlier reports of the node.
pub(super) fn note(db: &Connection, node: NodeId, notes: &[CarrierStatus]) -> Result<()> {
    let now_us = clock::now_us(db)?;
    db.prepare_cached(FORGET)?.execute([node.as_i64()])?;
    let mut insert = db.prepare_cached(NOTE)?;
    for note in notes {
        insert.execute(params![
            node.as_i64(),
            note.name,
            note.kind,
            note.state.health.name(),
            note.state.links_up,
            note.state.links,
            note.state.note.as_ref().map(String::as_bytes),
            note.waiting,
            note.under_way,
            now_us,
            note.window,
            note.per_second,
            note.state.links_total,
        ])?;
    }
    Ok(())
}

/// The latest reports of the nodes that are alive.
pub(super) fn list(db: &Connection) -> Result<Vec<NodeCarrierStatus>> {
    let now_us = clock::now_us(db)?;
    let read = |row: &Row<'_>| Ok(CarrierColumns::read(row)?.seen()?);
    let mut list = db.prepare_cached(LIST)?;
    list.query_map([now_us], read)?.collect()
}
