//! Operators review sender IDs.

use std::sync::Arc;

use domain::ports::{ListRange, Reviewed, SenderFilter, SenderStore, StoreError};
use domain::sender::{SenderRecord, Step, WrongState};
use domain::{Clock, SenderId};

use crate::audit::{Action, Actor, Audit};

/// Why a decision was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The sender's state does not allow it.
    #[error("sender {0} stays as it is: {1}")]
    WrongState(SenderId, #[source] WrongState),
    /// There is no such sender.
    #[error("there is no sender {0}; `switchboard sender list` shows those there are")]
    Unknown(SenderId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub struct SenderReview {
    store: Arc<dyn SenderStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
}

impl SenderReview {
    pub fn new(store: Arc<dyn SenderStore>, clock: Arc<dyn Clock>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
        }
    }

    /// Sender IDs of all accounts that match a filter, by ID.
    pub async fn list(
        &self,
        filter: SenderFilter,
        page: ListRange,
    ) -> Result<Vec<SenderRecord>, StoreError> {
        self.store.list_senders(filter, page).await
    }

    /// Decides about a sender ID and returns it in its next state. Its account is notified if it asked for that, and
    /// all nodes apply the decision within a second.
    pub async fn decide(
        &self,
        by: &Actor,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
    ) -> Result<SenderRecord, ReviewError> {
        let action = match step {
            Step::Approve | Step::Confirm => Action::SenderApprove,
            Step::Reject => Action::SenderReject,
            Step::Revoke => Action::SenderRevoke,
        };
        let sender = self.store.find_sender(None, id).await?;
        let sender = sender.ok_or(ReviewError::Unknown(id))?;
        let subject = format!("sender {id} ({})", sender.name);
        let detail = reason.unwrap_or_default();
        let recorded = self
            .audit
            .record(by, Some(sender.account), action, subject, detail)
            .await?;
        let now = self.clock.now();
        let reviewed = match self.store.review_sender(id, step, reason, now).await {
            Ok(Reviewed::Done(sender)) => Ok(sender),
            Ok(Reviewed::Refused(wrong)) => Err(ReviewError::WrongState(id, wrong)),
            Ok(Reviewed::Unknown) => Err(ReviewError::Unknown(id)),
            Err(error) => Err(error.into()),
        };
        recorded.done(reviewed).await
    }
}
