//! A few connections that only read, used off the async threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::ports::{ConnectionUse, StoreError};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::fault::Fault;

/// How many reads run at once.
const READERS: u32 = 4;

pub(super) struct Readers {
    free: Arc<Semaphore>,
    idle: Arc<Idle>,
}

/// Idle connections. They are opened when first needed.
struct Idle {
    path: PathBuf,
    connections: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        let connections = Mutex::new(Vec::with_capacity(READERS as usize));
        Self {
            free: Arc::new(Semaphore::new(READERS as usize)),
            idle: Arc::new(Idle { path, connections }),
        }
    }

    /// The write-ahead log of the file.
    pub(super) fn log_file(&self) -> PathBuf {
        let mut path = self.idle.path.clone().into_os_string();
        path.push("-wal");
        path.into()
    }

    pub(super) fn connection_use(&self) -> ConnectionUse {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX);
        ConnectionUse {
            most: READERS,
            busy: READERS.saturating_sub(free),
            waiting: 0,
        }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let idle = Arc::clone(&self.idle);
        let task = tokio::task::spawn_blocking(move || {
            // Moved into the task, so that the permit is held until the read ends, even if the caller gives up.
            let _permit = permit;
            idle.with_connection(work)
        });
        let outcome = task.await.unwrap_or_else(|error| {
            Err(if error.is_panic() {
                Fault::panicked()
            } else {
                Fault::thread_ended()
            })
        });
        outcome.map_err(|fault| fault.into_error(operation))
    }
}

impl Idle {
    fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => open(&self.path)?,
        };
        let outcome = work(&connection)?;
        self.put_back(connection);
        Ok(outcome)
    }

    fn take(&self) -> Option<Connection> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// A connection is not put back after a failure: the next read opens a new one.
    fn put_back(&self, connection: Connection) {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
    }
}

fn open(path: &Path) -> Result<Connection, Fault> {
    Ok(connection::open_reader(path)?)
}
