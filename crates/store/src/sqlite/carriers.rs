//! How carriers do, as nodes noted it.

use domain::ids::NodeId;
use domain::ports::{CarrierNote, CarrierSeen};
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

/// Puts notes in the place of those that the node made before.
pub(super) fn note(db: &Connection, node: NodeId, notes: &[CarrierNote]) -> Result<()> {
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

/// What the nodes that live noted last.
pub(super) fn list(db: &Connection) -> Result<Vec<CarrierSeen>> {
    let now_us = clock::now_us(db)?;
    let read = |row: &Row<'_>| {
        let columns = CarrierColumns {
            node: row.get(0)?,
            name: row.get(1)?,
            kind: row.get(2)?,
            health: row.get(3)?,
            links_up: row.get(4)?,
            links: row.get(5)?,
            note: row.get(6)?,
            waiting: row.get(7)?,
            under_way: row.get(8)?,
            at_us: row.get(9)?,
            places: row.get(10)?,
            per_second: row.get(11)?,
            links_total: row.get(12)?,
        };
        Ok(columns.seen()?)
    };
    let mut list = db.prepare_cached(LIST)?;
    list.query_map([now_us], read)?.collect()
}
