//! The way of a checked submission into the store: numbered, held where there is room, written with others.

use std::convert::Infallible;
use std::sync::Arc;

use domain::message::{IdempotencyClaim, SendTime, SubmitReceipt};
use domain::ports::{Accepted, WorkStore};
use domain::{Clock, Holder};

use super::SubmitError;
use super::health::WriteHealth;
use super::stages::{Numbered, RoutedRequest};
use super::writing::{Entry, Writing, Written};
use crate::batcher::{Batcher, Limits};
use crate::cluster::id_blocks::IdBlocks;
use crate::sending::carriers::Routed;
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

    /// Numbers a request and stores it. When this returns `Ok`, it survives a power cut.
    pub(crate) async fn store(
        &self,
        routed: RoutedRequest,
        idempotency: Option<IdempotencyClaim>,
    ) -> Result<SubmitReceipt, SubmitError> {
        let first = self.ids.take(routed.messages()).await?;
        let (numbered, routes) = routed.number(first);
        let entry = self.reserve(numbered, routes, idempotency);
        let written = self.batcher.write(entry).await?;
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

    /// Holds the messages from the start where this node has room for them.
    fn reserve(
        &self,
        numbered: Numbered,
        routes: Vec<Routed>,
        idempotency: Option<IdempotencyClaim>,
    ) -> Entry {
        let (holder, reservations) = match &self.dispatch {
            Some(dispatch) if numbered.send() == SendTime::Now => {
                dispatch.reserve(numbered.account(), numbered.priority(), routes)
            }
            _ => (Holder::Nobody, None),
        };
        Entry {
            submission: numbered.into_submission(holder, idempotency),
            reservations,
        }
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
