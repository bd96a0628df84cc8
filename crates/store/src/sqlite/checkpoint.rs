//! Moves the write-ahead log into the file, in small and steady portions.
//!
//! The writer does it between transactions: after its callers have their answers, not before, as the automatic
//! checkpoint would. A separate thread was measured and was no better (both wait for the same disk), and it cannot
//! catch up with a busy writer: the log starts over only after a full copy.

use rusqlite::{Connection, Result};

/// A log of this many pages is copied: 4 MiB, which takes a few milliseconds.
const LONG_LOG_PAGES: i64 = 1_000;

/// Copies the log if it is long. After a full copy, the next write starts it over.
pub(super) fn copy_long_log(connection: &Connection) -> Result<()> {
    let log = checkpoint(connection, "NOOP")?;
    if log.pages - log.copied >= LONG_LOG_PAGES {
        copy_log(connection)?;
    }
    Ok(())
}

/// Copies the log without waiting: pages that a reader still needs are left for the next time.
pub(super) fn copy_log(connection: &Connection) -> Result<()> {
    checkpoint(connection, "PASSIVE").map(drop)
}

struct Log {
    pages: i64,
    copied: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> Result<Log> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    statement.query_row([], |row| {
        Ok(Log {
            pages: row.get(1)?,
            copied: row.get(2)?,
        })
    })
}
