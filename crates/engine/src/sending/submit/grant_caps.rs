//! What clients may spend.
//!
//! The amount is counted before the messages are stored, and taken back if they are refused. So a crash in between
//! counts too much and never too little. Only requests of clients with a cap write here.

use std::sync::Arc;

use domain::billing::{GrantCap, day_of};
use domain::ports::BillingStore;
use domain::{Access, Money};

use super::SubmitError;
use super::stages::RoutedRequest;

pub struct GrantCaps {
    store: Arc<dyn BillingStore>,
}

/// An amount that is counted for a request.
pub(super) struct Reservation {
    cap: GrantCap,
    cost: Money,
    day: i32,
}

impl GrantCaps {
    pub fn new(store: Arc<dyn BillingStore>) -> Self {
        Self { store }
    }

    /// Counts the cost of a request. Returns `None` for callers without a cap.
    pub(super) async fn reserve(
        &self,
        access: &Access,
        request: &RoutedRequest,
    ) -> Result<Option<Reservation>, SubmitError> {
        let Some(cap) = access.grant_cap else {
            return Ok(None);
        };
        let (cost, day) = (request.cost(), day_of(request.checked.accepted_at));
        if cost == Money::ZERO {
            return Ok(None);
        }
        let counted = self.store.spend_of_grant(cap, cost, day).await?;
        counted.map_err(SubmitError::NotPaid)?;
        Ok(Some(Reservation { cap, cost, day }))
    }

    /// Takes back what was counted, unless the messages may have been stored.
    pub(super) async fn release(&self, reserved: Reservation, error: &SubmitError) {
        if matches!(error, SubmitError::Store(_)) {
            return;
        }
        let Reservation { cap, cost, day } = reserved;
        if let Err(error) = self.store.unspend_of_grant(cap.grant, cost, day).await {
            tracing::warn!(%error, "a refused request still counts for the spending cap of a client until midnight UTC");
        }
    }
}
