//! Stores a checked request: gives it IDs, reserves slots, and writes it in a batch.

use std::convert::Infallible;
use std::sync::Arc;

use domain::message::{AcceptedMessages, IdempotencyClaim, SendTime};
use domain::ports::{Accepted, WorkStore};
use domain::{Clock, Holder};

use super::SubmitError;
use super::health::WriteHealth;
use super::stages::{Numbered, RoutedRequest};
use super::writer::{QueuedSubmission, StoreResult, SubmissionWriter};
use crate::batcher::{Batcher, Limits};
use crate::cluster::id_blocks::IdBlocks;
use crate::monitoring::ended::EndedCounters;
use crate::sending::carriers::Routed;
use crate::sending::dispatch::Dispatch;

/// The answer to a request, and whether it is the stored one of an earlier, identical request.
pub(crate) struct StoredRequest {
    pub(crate) receipt: AcceptedMessages,
    pub(crate) is_replay: bool,
}

pub(crate) struct Intake {
    clock: Arc<dyn Clock>,
    ids: Arc<IdBlocks>,
    batcher: Batcher<QueuedSubmission, StoreResult, Infallible>,
    dispatch: Option<Arc<Dispatch>>,
    health: Arc<WriteHealth>,
}

impl Intake {
    /// Stored messages go to `dispatch` if this process is a worker. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        dispatch: Option<Arc<Dispatch>>,
        ended: Arc<EndedCounters>,
        limits: Limits,
    ) -> Self {
        let health = Arc::new(WriteHealth::default());
        let ids = Arc::new(IdBlocks::new(store.clone()));
        let writer = Arc::new(SubmissionWriter {
            store,
            ids: ids.clone(),
            clock: clock.clone(),
            health: health.clone(),
            dispatch: dispatch.clone(),
            ended,
        });
        Self {
            clock,
            ids,
            batcher: Batcher::start(limits, move |batch| {
                let writer = writer.clone();
                async move { Ok(writer.write(batch).await) }
            }),
            dispatch,
            health,
        }
    }

    /// Gives a request its IDs and stores it. Once this returns `Ok`, it survives a power cut.
    pub(crate) async fn store(
        &self,
        request: RoutedRequest,
        idempotency: Option<IdempotencyClaim>,
    ) -> Result<StoredRequest, SubmitError> {
        let first = self.ids.take(request.messages()).await?;
        let (numbered, routes) = request.number(first);
        let entry = self.reserve(numbered, routes, idempotency);
        let written = self.batcher.write(entry).await?;
        match written.result.map_err(SubmitError::Store)? {
            Accepted::Stored => Ok(StoredRequest {
                receipt: written.receipt,
                is_replay: false,
            }),
            Accepted::Replayed(earlier) => Ok(StoredRequest {
                receipt: earlier,
                is_replay: true,
            }),
            Accepted::KeyConflict => Err(SubmitError::KeyConflict),
            Accepted::NotPaid(not_paid) => {
                metrics::counter!("switchboard_submissions_unpaid_total").increment(1);
                Err(SubmitError::NotPaid(not_paid))
            }
        }
    }

    /// Lets this node hold the messages from the start if it has slots for them.
    fn reserve(
        &self,
        numbered: Numbered,
        routes: Vec<Routed>,
        idempotency: Option<IdempotencyClaim>,
    ) -> QueuedSubmission {
        let (holder, reservations) = match &self.dispatch {
            Some(dispatch) if numbered.send() == SendTime::Now => {
                dispatch.reserve(numbered.account(), numbered.priority(), routes)
            }
            _ => (Holder::Nobody, None),
        };
        QueuedSubmission {
            submission: numbered.into_submission(holder, idempotency),
            reservations,
        }
    }

    /// Whether messages can be stored, judging by the last writes.
    pub(super) fn is_accepting(&self) -> bool {
        self.health.is_good(self.clock.now())
    }

    pub(super) async fn broken(&self) {
        self.health.broken.notified().await;
    }

    /// Refuses further requests and returns once all accepted ones are stored.
    pub(super) async fn stop(&self) {
        self.batcher.stop().await;
    }
}
