//! A transaction that somebody forgot.

use super::connected;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_postgres::Error;

/// The first look takes the snapshot that all later ones see.
const OPEN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";
const CLOSE: &str = "ROLLBACK";

/// A report, a backup or a forgotten `psql`: as long as this value lives, no version of a row that was replaced since it
/// was made can be swept from the database.
#[derive(Debug)]
pub struct HeldSnapshot {
    release: Option<oneshot::Sender<()>>,
    holder: Option<JoinHandle<Result<(), Error>>>,
}

impl HeldSnapshot {
    pub(super) fn open(url: String) -> Result<Self, Error> {
        let (release, released) = oneshot::channel();
        let (opened, is_open) = mpsc::channel();
        let hold = async move {
            connected(&url, async |client| {
                client.batch_execute(OPEN).await?;
                // Whoever waits for this may be gone, and so is then what releases it.
                let _gone = opened.send(());
                let _gone = released.await;
                client.batch_execute(CLOSE).await
            })
            .await
        };
        let holder = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(hold)
        });
        let mut snapshot = Self {
            release: Some(release),
            holder: Some(holder),
        };
        match is_open.recv() {
            Ok(()) => Ok(snapshot),
            Err(_) => snapshot.release().map(|()| snapshot),
        }
    }

    /// Ends the transaction. An error when it had ended before.
    pub fn release(&mut self) -> Result<(), Error> {
        drop(self.release.take());
        match self.holder.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        if let Err(error) = self.release() {
            eprintln!("the transaction that was held had ended: {error}");
        }
    }
}
