//! The way of a checked submission into the store: numbered, held where there is room, written with others.

use std::convert::Infallible;
use std::sync::Arc;

use domain::Clock;
use domain::message::{Submission, SubmitReceipt};
use domain::ports::{Accepted, WorkStore};

use super::SubmitError;
use super::health::WriteHealth;
use super::writing::{Entry, Writing, Written};
use crate::batcher::{Batcher, Limits};
use crate::cluster::id_blocks::IdBlocks;
use crate::sending::dispatch::Dispatch;

/// Stores what was checked.
pub(crate) struct Intake {
    clock: Arc<dyn Clock>,
    ids: Arc<IdBlocks>,
    batcher: Batcher<Entry, Written, Infallible>,
    dispatch: Option<Arc<Dispatch>>,
    health: Arc<WriteHealth>,
}

impl Intake {
    /// What is stored goes straight to `dispatch`, where this process has one. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        dispatch: Option<Arc<Dispatch>>,
        limits: Limits,
    ) -> Self {
        let health = Arc::new(WriteHealth::default());
        let ids = Arc::new(IdBlocks::new(store.clone()));
        let writing = Arc::new(Writing {
            store,
            ids: ids.clone(),
            clock: clock.clone(),
            health: health.clone(),
            dispatch: dispatch.clone(),
        });
        Self {
            clock,
            ids,
            batcher: Batcher::start(limits, move |batch| {
                let writing = writing.clone();
                async move { Ok(writing.write(batch).await) }
            }),
            dispatch,
            health,
        }
    }

    /// Stores a submission. When this returns `Ok`, it survives a power cut.
    pub(crate) async fn store(
        &self,
        mut submission: Submission,
    ) -> Result<SubmitReceipt, SubmitError> {
        let count = u32::try_from(submission.recipients.len()).expect("at most a thousand");
        submission.number_from(self.ids.take(count).await?);
        let written = self.batcher.write(self.entry(submission)).await?;
        match written.result.map_err(SubmitError::Store)? {
            Accepted::Stored => Ok(written.receipt),
            Accepted::Replayed(earlier) => Ok(earlier),
            Accepted::KeyConflict => Err(SubmitError::KeyConflict),
            Accepted::NotPaid(not_paid) => {
                metrics::counter!("switchboard_submissions_unpaid_total").increment(1);
                Err(SubmitError::NotPaid(not_paid))
            }
        }
    }

    /// Where this node has room for it, a submission is held from the start.
    fn entry(&self, mut submission: Submission) -> Entry {
        let mut places = None;
        if let Some(dispatch) = &self.dispatch {
            (submission.holder, places) = dispatch.reserve(&submission);
        }
        Entry { submission, places }
    }

    /// Whether messages can be stored, as far as the last writes told.
    pub(super) fn is_accepting(&self) -> bool {
        self.health.is_good(self.clock.now())
    }

    /// Returns when the store could not make a write durable.
    pub(super) async fn broken(&self) {
        self.health.broken.notified().await;
    }

    /// Takes nothing more and returns once everything taken is stored.
    pub(super) async fn stop(&self) {
        self.batcher.stop().await;
    }
}
