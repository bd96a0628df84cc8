//! Moves the write-ahead log into the file without holding up the writer.
//!
//! A checkpoint copies pages and waits for the disk, which would stall every commit behind it. So a thread with a
//! connection of its own does the copying beside the writer. It can never catch up with a busy one, and the log starts
//! over only when it is copied to its end; so once it is long, the writer is asked to copy the last few pages itself.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};

use super::fault::{Fault, Health};

/// How often the length of the log is looked at.
const INTERVAL: Duration = Duration::from_millis(250);
/// From how many pages that are not yet copied a copy is worth its two waits for the disk.
const COPY_PAGES: i64 = 1_000;
/// From how many pages on the log should start over: 16 MiB.
const LONG_LOG_PAGES: i64 = 4_096;

/// The thread that copies.
pub(super) struct Checkpointer {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(connection: Connection, health: Arc<Health>) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("sqlite-checkpoint".to_owned());
        let thread = thread.spawn(move || run(&connection, &health, &stopped));
        Self {
            stop: Some(stop),
            thread: Some(thread.expect("the system can start a thread")),
        }
    }

    /// Ends the thread and closes its connection.
    pub(super) fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the database's checkpoint thread ended by a panic");
        }
    }
}

fn run(connection: &Connection, health: &Health, stopped: &Receiver<()>) {
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) && health.broken().is_none() {
        if let Err(error) = copy(connection, health) {
            report(error, health);
        }
    }
}

/// Copies the log if it is worth it, and asks the writer for the rest if the log is long.
pub(super) fn copy(connection: &Connection, health: &Health) -> Result<()> {
    let mut log = checkpoint(connection, "NOOP")?;
    if log.pages - log.copied >= COPY_PAGES {
        log = checkpoint(connection, "PASSIVE")?;
    }
    if log.pages >= LONG_LOG_PAGES {
        // The first copy took a while; what came in meanwhile is copied here, so that little is left for the writer.
        checkpoint(connection, "PASSIVE")?;
        health.ask_to_start_log_over();
    }
    Ok(())
}

/// Copies what is left, in the writer: while it does not write, the copy is complete and its next write starts the log
/// over. Waits for nobody; when a reader is in the way, the next look at the log asks again.
pub(super) fn finish(connection: &Connection, health: &Health) {
    if let Err(error) = checkpoint(connection, "PASSIVE") {
        report(error, health);
    }
}

/// After a failed wait for the disk only the log can be trusted, so closing must not copy it and throw it away: the next
/// start reads it.
pub(super) fn keep_log(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::error!(%error, "the write-ahead log may be copied on closing");
    }
}

fn report(error: rusqlite::Error, health: &Health) {
    tracing::warn!(%error, "the write-ahead log could not be copied; it is tried again");
    health.note(&Fault::from(error));
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
