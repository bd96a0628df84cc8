//! The state of carriers, as reported by nodes.

use domain::ids::NodeId;
use domain::ports::{CarrierStatus, NodeCarrierStatus};
use rusqlite::{Connection, Result, Row, params};

use super::clock;
use crate::rows::carriers::CarrierColumns;

const DELETE: &str = "DELETE FROM carrier WHERE node = ?1";
const INSERT: &str = "
    INSERT INTO carrier (node, name, kind, health, links_up, links, note, waiting, under_way, at_us, places,
        per_second, links_total)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const LIST: &str = "
    SELECT c.node, c.name, c.kind, c.health, c.links_up, c.links, c.note, c.waiting, c.under_way, c.at_us,
        c.places, c.per_second, c.links_total
    FROM node JOIN carrier AS c ON c.node = node.id WHERE node.alive_until_us > ?1 ORDER BY c.name, c.node";

/// Replaces the earlier reports of the node.
pub(super) fn replace(db: &Connection, node: NodeId, statuses: &[CarrierStatus]) -> Result<()> {
    let now_us = clock::now_us(db)?;
    db.prepare_cached(DELETE)?.execute([node.as_i64()])?;
    let mut insert = db.prepare_cached(INSERT)?;
    for status in statuses {
        insert.execute(params![
            node.as_i64(),
            status.name,
            status.kind,
            status.state.health.name(),
            status.state.links_up,
            status.state.links,
            status.state.note.as_ref().map(String::as_bytes),
            status.waiting,
            status.under_way,
            now_us,
            status.window,
            status.per_second,
            status.state.links_total,
        ])?;
    }
    Ok(())
}

/// The latest reports of the nodes that are alive.
pub(super) fn list(db: &Connection) -> Result<Vec<NodeCarrierStatus>> {
    let now_us = clock::now_us(db)?;
    let read = |row: &Row<'_>| Ok(CarrierColumns::read(row)?.status()?);
    let mut list = db.prepare_cached(LIST)?;
    list.query_map([now_us], read)?.collect()
}
