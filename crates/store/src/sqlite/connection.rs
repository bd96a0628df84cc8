//! How each connection to the file is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};

/// How long a connection waits for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// More than all the statements of this crate.
const CACHED_STATEMENTS: usize = 192;

/// `synchronous=FULL`: a commit waits for the disk. Checkpoints are the writer's own affair, so the automatic ones are off; `journal_size_limit` gives room back after the log has grown behind a long read. Tables without references pay
/// nothing for `foreign_keys`.
const WRITER_SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -16384;
    PRAGMA temp_store = MEMORY;
    PRAGMA mmap_size = 0;
    PRAGMA foreign_keys = ON;
";

const READER_SETTINGS: &str = "
    PRAGMA cache_size = -1024;
    PRAGMA temp_store = MEMORY;
    PRAGMA mmap_size = 0;
";

/// A connection that may write; creates the file when there is none.
pub(super) fn open_writer(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags)?;
    retry_while_busy(|| switch_to_log(&connection))?;
    connection.execute_batch(WRITER_SETTINGS)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch(READER_SETTINGS)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Without it, statements are planned anew when a value is bound that the plan might profit from.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn switch_to_log(connection: &Connection) -> Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
}

/// Two processes that create the file at the same moment exclude each other without the usual wait.
fn retry_while_busy(step: impl Fn() -> Result<()>) -> Result<()> {
    let is_busy = |outcome: &Result<()>| {
        let code = outcome
            .as_ref()
            .err()
            .and_then(rusqlite::Error::sqlite_error_code);
        code == Some(ErrorCode::DatabaseBusy)
    };
    let mut outcome = step();
    let mut waited = Duration::ZERO;
    while is_busy(&outcome) && waited < BUSY_TIMEOUT {
        std::thread::sleep(BUSY_PAUSE);
        waited += BUSY_PAUSE;
        outcome = step();
    }
    outcome
}
