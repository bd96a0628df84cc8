//! A transaction that stays open.

use super::connected;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_postgres::Error;

/// The first query takes the snapshot.
const OPEN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";
const CLOSE: &str = "ROLLBACK";

/// An open transaction, like that of a report, a backup or a forgotten `psql`. While this value lives, vacuum cannot
/// remove row versions that were replaced after it was created.
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
                // If the other side is gone, the transaction ends at once.
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

    /// Ends the transaction. Returns an error if it had already ended.
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
            eprintln!("the held transaction had already ended: {error}");
        }
    }
}
