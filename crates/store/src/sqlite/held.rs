//! Rows of the message queue that a node holds.

use domain::ids::NodeId;
use domain::ports::ClaimedRow;
use rusqlite::{Connection, Result, params};

use super::clock;
use crate::rows::dispatch::{ClaimedColumns, lanes_after};

const LIST: &str = "
    SELECT due_us, id, attempt FROM queue
    WHERE owner = ?1 AND lane = ?2 AND (due_us, id) > (?3, ?4) AND due_us <= ?5 ORDER BY due_us, id LIMIT ?6";
const RELEASE: &str = "
    UPDATE queue SET owner = 0 WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4 AND attempt = ?5";

/// Lists rows that have been due for a while.
pub(super) fn list(
    db: &Connection,
    node: NodeId,
    due_for_us: i64,
    after: Option<&ClaimedRow>,
    limit: u32,
) -> Result<Vec<ClaimedRow>> {
    let due_us = clock::now_us(db)?.saturating_sub(due_for_us);
    let mut list = db.prepare_cached(LIST)?;
    let mut listed = Vec::new();
    for (lane, after_us, after_id) in lanes_after(after) {
        let left = i64::from(limit) - i64::try_from(listed.len()).unwrap_or(i64::MAX);
        let values = params![node.as_i64(), lane, after_us, after_id, due_us, left];
        let rows = list.query_map(values, |row| {
            let columns = ClaimedColumns {
                lane,
                due_us: row.get(0)?,
                id: row.get(1)?,
                attempt: row.get(2)?,
            };
            Ok(columns.row()?)
        })?;
        for row in rows {
            listed.push(row?);
        }
    }
    Ok(listed)
}

/// Puts rows back in the queue that the node holds under these claims.
pub(super) fn release(db: &Connection, node: NodeId, rows: &[ClaimedRow]) -> Result<u64> {
    let mut release = db.prepare_cached(RELEASE)?;
    let mut released = 0;
    for row in rows.iter().map(ClaimedColumns::from_row) {
        let values = params![node.as_i64(), row.lane, row.due_us, row.id, row.attempt];
        released += release.execute(values)? as u64;
    }
    Ok(released)
}
