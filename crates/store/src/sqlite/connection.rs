//! How each connection to the file is set up.

use std::fs::{self, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};

/// How long a connection waits for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// More than all the statements of this crate.
const CACHED_STATEMENTS: usize = 192;

/// `synchronous=FULL`: a commit waits for the disk. The writer makes checkpoints, so the automatic ones are off;
/// `journal_size_limit` shrinks the log after it has grown during a long read. `foreign_keys` costs nothing for tables
/// without references.
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
pub(crate) fn open_writer(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    close_to_others(path);
    let connection = open(path, flags)?;
    retry_while_busy(|| switch_to_log(&connection))?;
    connection.execute_batch(WRITER_SETTINGS)?;
    Ok(connection)
}

/// Creates the file for its owner alone, and removes the access of others to an existing file. The log and its index
/// get the permissions of the file when they are created.
fn close_to_others(path: &Path) {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // If it is wrong, the database reports it.
        _ => return,
    }
    for end in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        let Ok(found) = fs::metadata(&file) else {
            continue;
        };
        if found.permissions().mode().trailing_zeros() >= 6 {
            continue;
        }
        let closed = fs::set_permissions(&file, Permissions::from_mode(0o600));
        if let Err(error) = closed {
            let file = file.display();
            tracing::warn!(%file, %error, "other users can read the database; run chmod 600 on it");
        }
    }
}

/// A connection that only reads.
pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch(READER_SETTINGS)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Without it, statements are planned again whenever a bound value could change the plan.
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
