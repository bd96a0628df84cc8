//! The database's own time.

use rusqlite::{Connection, Result};

/// Rounded down to milliseconds, so that nothing is due too early.
const NOW: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000";

/// Now, in microseconds.
pub(super) fn now_us(db: &Connection) -> Result<i64> {
    db.prepare_cached(NOW)?.query_row([], |row| row.get(0))
}
