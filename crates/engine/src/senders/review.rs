//! What whoever runs the service decides about senders.

use std::sync::Arc;

use domain::ports::{Page, Reviewed, SenderFilter, Store, StoreError};
use domain::sender::{SenderRecord, Step, WrongState};
use domain::{Clock, SenderId};

/// Why a decision changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The sender's state does not allow it.
    #[error("sender {0} stays as it is: {1}")]
    WrongState(SenderId, #[source] WrongState),
    /// There is no such sender.
    #[error("there is no sender {0}; `switchboard sender list` shows those there are")]
    Unknown(SenderId),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reviews the senders of all accounts.
pub struct SenderReview {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl SenderReview {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Senders that fit a filter, by ID.
    pub async fn list(
        &self,
        filter: SenderFilter,
        page: Page,
    ) -> Result<Vec<SenderRecord>, StoreError> {
        self.store.list_senders(filter, page).await
    }

    /// Takes a step with a sender and returns it as it is then. Its account is notified, where it asked for that, and
    /// every node keeps to the decision within a second.
    pub async fn decide(
        &self,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
    ) -> Result<SenderRecord, ReviewError> {
        let now = self.clock.now();
        match self.store.review_sender(id, step, reason, now).await? {
            Reviewed::Done(sender) => Ok(sender),
            Reviewed::Refused(wrong) => Err(ReviewError::WrongState(id, wrong)),
            Reviewed::Unknown => Err(ReviewError::Unknown(id)),
        }
    }
}
