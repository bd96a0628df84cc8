//! What clients may spend.
//!
//! The amount is counted before the messages are stored, and taken back if this request stored none. So a crash in between
//! counts too much and never too little. Only requests of clients with a cap write here.

use std::sync::Arc;

use domain::billing::{GrantCap, day_of};
use domain::ports::BillingStore;
use domain::{Access, Money};

use super::SubmitError;
use super::intake::StoredRequest;
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
        cap.check_alone(cost).map_err(SubmitError::NotPaid)?;
        let counted = self.store.spend_of_grant(cap, cost, day).await?;
        counted.map_err(SubmitError::NotPaid)?;
        Ok(Some(Reservation { cap, cost, day }))
    }

    /// Takes back what was counted if this request stored no messages. After an error of the store it may have.
    pub(super) async fn settle(
        &self,
        reserved: Reservation,
        outcome: Result<&StoredRequest, &SubmitError>,
    ) {
        match outcome {
            Ok(stored) if !stored.is_replay => return,
            Err(SubmitError::Store(_)) => return,
            Ok(_) | Err(_) => {}
        }
        let Reservation { cap, cost, day } = reserved;
        if let Err(error) = self.store.unspend_of_grant(cap.grant, cost, day).await {
            tracing::warn!(%error, "a request that sent nothing still counts for the spending cap of a client until midnight UTC");
        }
    }
}
