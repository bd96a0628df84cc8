//! The store on `SQLite`: one file, one writer, a few readers.
//!
//! Every write of the process goes through one thread, which owns the writing connection and commits all pending work
//! at once: a durable commit costs a wait for the disk, however much is in it. Reads run on their own connections at
//! the same time. Other processes may use the same file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use domain::KeyRing;
use domain::ports::StoreError;
use rusqlite::Connection;

use crate::OpenError;
use crate::migrations::{self, Migration};
use crate::rows::encrypted::Encrypting;
use crate::rows::fold::Folding;
use crate::rows::privacy::TextSweep;
use crate::rows::sweep::Sweep;
use crate::rows::{SqlRow, SqlValue};

mod accept;
mod access;
mod alerts;
mod attempts;
mod audit;
mod billing;
mod binds;
mod callback_queue;
mod callbacks;
mod carrier_refs;
mod carriers;
mod catalogue;
mod checkpoint;
mod claims;
mod clock;
mod codes;
pub(crate) mod connection;
mod dispatch;
mod encrypted;
mod ending;
mod export;
mod fault;
mod fold;
mod held;
mod history;
mod inbound;
mod inbound_privacy;
mod inbound_sources;
mod ledger_totals;
mod memberships;
mod message_detail;
mod messages;
pub(crate) mod migrate;
mod monitoring;
mod nodes;
mod oauth;
mod operations;
mod opt_outs;
mod people;
mod polls;
mod ported;
mod privacy;
mod prune;
mod readers;
mod receipts;
mod replace;
mod replay;
mod replies;
mod request_log;
mod second_factor;
mod senders;
mod sends;
mod sessions;
mod smpp_users;
mod templates;
mod traffic;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use readers::Readers;
use writer::Writer;

/// An open `SQLite` file.
pub(crate) struct SqliteStore {
    // Dropped in this order: the writer closes last, and closing the last connection moves the rest of the write-ahead
    // log into the file.
    readers: Readers,
    writer: Writer,
    /// The version of the schema that this program knows.
    level: i64,
    /// How far retention has swept the table of messages.
    sweep: Mutex<Sweep>,
    text_sweep: Mutex<TextSweep>,
    inbound_text_sweep: Mutex<TextSweep>,
    folding: Arc<Folding>,
    keys: Arc<KeyRing>,
}

impl SqliteStore {
    /// Opens a file, creates it if it does not exist, and migrates it.
    /// Also returns how many rows it encrypted.
    pub(crate) async fn open(
        path: &Path,
        steps: Vec<Migration>,
        keys: KeyRing,
        encrypting: Encrypting,
    ) -> Result<(Self, u64), OpenError> {
        let path = path.to_owned();
        let open = move || Self::open_blocking(path, &steps, &keys, encrypting);
        let opened = tokio::task::spawn_blocking(open);
        opened.await.expect("opening a database does not panic")
    }

    fn open_blocking(
        path: PathBuf,
        steps: &[Migration],
        keys: &KeyRing,
        encrypting: Encrypting,
    ) -> Result<(Self, u64), OpenError> {
        let cannot_open = |source: rusqlite::Error| OpenError::Open {
            database: path.display().to_string(),
            source: Box::new(source),
        };
        let mut connection = connection::open_writer(&path).map_err(cannot_open)?;
        migrate::run(&mut connection, steps)?;
        let database = path.display().to_string();
        let (keys, renewed) = encrypted::prepare(&mut connection, &database, keys, encrypting)?;
        // After a failed sync the log may be complete in memory only. Copied into the file it is safe, and nothing is
        // written after a gap.
        checkpoint::copy_log(&connection).map_err(cannot_open)?;
        let store = Self {
            readers: Readers::new(path),
            writer: Writer::start(connection),
            level: migrations::level(steps),
            sweep: Mutex::default(),
            text_sweep: Mutex::default(),
            inbound_text_sweep: Mutex::default(),
            folding: Arc::default(),
            keys: Arc::new(keys),
        };
        Ok((store, renewed))
    }

    /// Runs work in a transaction of the writer and waits until it is durable.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.run(operation, 1, work).await
    }

    /// Runs work on a read-only connection.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.run(operation, work).await
    }
}

impl SqlRow for rusqlite::Row<'_> {
    type Error = rusqlite::Error;

    fn column<T: SqlValue>(&self, at: usize) -> rusqlite::Result<T> {
        self.get(at)
    }
}
