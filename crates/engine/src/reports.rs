//! Callbacks as people see them: how they went, and sending them again. Where this process works, it finds those that
//! were made due like any other; delivering them is [`crate::callbacks`].

use std::sync::Arc;

use domain::delivery::CallbackAttempt;
use domain::ports::{CallbackFilter, CallbackRecord, Found, Look, Page, Store, StoreError};
use domain::{AccountId, CallbackId};

use crate::history::MOST_ROWS;

/// Why nothing is sent again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nothing says which, so that all of them would be.
    #[error("say which callbacks: one by its ID, those of an address, or those of a time")]
    All,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Shows callbacks and sends them again.
pub struct Reports {
    store: Arc<dyn Store>,
}

impl Reports {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Callbacks that fit, the newest first, at most [`MOST_ROWS`]; it may find fewer than asked for, even none, and
    /// still name a place to go on from.
    pub async fn look_for(
        &self,
        filter: &CallbackFilter,
        look: Look<CallbackId>,
    ) -> Result<Found<CallbackRecord, CallbackId>, StoreError> {
        let look = Look {
            before: look.before,
            limit: look.limit.clamp(1, MOST_ROWS),
        };
        self.store.look_for_callbacks(filter, look).await
    }

    /// One callback of an account, or of any, with its tries in order.
    pub async fn find(
        &self,
        account: Option<AccountId>,
        id: CallbackId,
    ) -> Result<Option<(CallbackRecord, Vec<CallbackAttempt>)>, StoreError> {
        let filter = CallbackFilter {
            account,
            id: Some(id),
            with_done: true,
            ..CallbackFilter::default()
        };
        let page = Page {
            limit: 1,
            offset: 0,
        };
        let Some(record) = self.store.list_callbacks(&filter, page).await?.pop() else {
            return Ok(None);
        };
        let tries = self.store.list_attempts(id).await?;
        Ok(Some((record, tries)))
    }

    /// Makes callbacks due now, parked ones too, and says how many. The filter must name more than an account.
    pub async fn replay(&self, filter: &CallbackFilter) -> Result<u64, ReplayError> {
        let anything = CallbackFilter {
            account: filter.account,
            with_done: filter.with_done,
            ..CallbackFilter::default()
        };
        if *filter == anything {
            return Err(ReplayError::All);
        }
        Ok(self.store.replay_callbacks(filter).await?)
    }

    /// The secret that signs an account's callbacks.
    pub async fn find_secret(&self, account: AccountId) -> Result<Option<String>, StoreError> {
        self.store.find_callback_secret(account).await
    }
}
