//! The store on `SQLite`: one file, one writer, a few readers.
//!
//! Every write of the process goes through one thread that owns the writing connection and commits whatever has
//! gathered at once, because the price of a durable commit is the wait for the disk, however much is in it. Reads run
//! beside it on connections of their own. Other processes may use the same file at the same time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use domain::KeyRing;
use domain::ports::StoreError;
use rusqlite::Connection;

use crate::OpenError;
use crate::encrypted::Encrypting;
use crate::migrations::{self, Migration};
use crate::rows::fold::Folding;
use crate::rows::sweep::Sweep;

mod accept;
mod access;
mod audit;
mod billing;
mod binds;
mod callback_queue;
mod callbacks;
mod carriers;
mod catalogue;
mod checkpoint;
mod claims;
mod clock;
mod codes;
mod connected;
mod connection;
mod dispatch;
mod encrypted;
mod ending;
mod fault;
mod fold;
mod held;
mod history;
mod memberships;
mod messages;
mod migrate;
mod naming;
mod nodes;
mod oauth;
mod operations;
mod people;
mod prune;
mod readers;
mod receipts;
mod replay;
mod second_factor;
mod senders;
mod sends;
mod sessions;
mod story;
mod traffic;
mod transfer;
mod tries;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use transfer::SqliteSide;

use readers::Readers;
use writer::Writer;

/// A `SQLite` file that is open for business.
pub(crate) struct SqliteStore {
    // Dropped in this order: the writer closes last, and closing the last connection moves what is left of the
    // write-ahead log into the file.
    readers: Readers,
    writer: Writer,
    /// The version of the schema that this program knows.
    level: i64,
    /// Where pruning is in the table of messages.
    sweep: Mutex<Sweep>,
    folding: Arc<Folding>,
    keys: Arc<KeyRing>,
}

impl SqliteStore {
    /// Opens a file, creates it when there is none, and migrates it.
    /// Says also how many rows it encrypted.
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
        // After a failed wait for the disk the log may be whole in memory only. Copied into the file it is safe, and
        // nothing new is written behind a hole.
        checkpoint::copy_log(&connection).map_err(cannot_open)?;
        let store = Self {
            readers: Readers::new(path),
            writer: Writer::start(connection),
            level: migrations::level(steps),
            sweep: Mutex::default(),
            folding: Arc::default(),
            keys: Arc::new(keys),
        };
        Ok((store, renewed))
    }

    /// Does a piece of work in a transaction of the writer and waits until it is durable.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.run(operation, 1, work).await
    }

    /// Does a piece of work on a connection that only reads.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.run(operation, work).await
    }
}
