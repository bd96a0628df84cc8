//! Callbacks as people see them, and sending some again.

use std::sync::Arc;

use domain::delivery::CallbackAttempt;
use domain::ports::{CallbackFilter, CallbackRecord, Page, Store, StoreError};
use domain::{CallbackId, Clock};

use crate::audit::{Action, Audit, By};

/// Shows callbacks, and sends them again.
pub struct CallbackReview {
    store: Arc<dyn Store>,
    audit: Audit,
}

impl CallbackReview {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let audit = Audit::new(store.clone(), clock);
        Self { store, audit }
    }

    /// Callbacks that fit a filter, the newest first.
    pub async fn list(
        &self,
        filter: &CallbackFilter,
        page: Page,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        self.store.list_callbacks(filter, page).await
    }

    /// Every try of a callback.
    pub async fn attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        self.store.list_attempts(id).await
    }

    /// Sends callbacks again, now, and says how many.
    pub async fn replay(&self, by: &By, filter: &CallbackFilter) -> Result<u64, StoreError> {
        let subject = match filter.id {
            Some(id) => format!("callback {id}"),
            None => "callbacks".to_owned(),
        };
        let (account, detail) = (filter.account, in_words(filter));
        let noted = self
            .audit
            .note(by, account, Action::CallbackReplay, subject, detail)
            .await?;
        let replayed = self.store.replay_callbacks(filter).await;
        noted.done(replayed).await
    }
}

/// The conditions. Of an address only the host is named: what follows may be somebody's secret.
fn in_words(filter: &CallbackFilter) -> String {
    let host = filter.url_prefix.as_deref().map(|prefix| {
        let host = prefix.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        format!("to {host}")
    });
    let from = filter.from.map(|time| format!("from {time}"));
    let until = filter.until.map(|time| format!("until {time}"));
    let done = filter.with_done.then(|| "also received ones".to_owned());
    let words: Vec<String> = [host, from, until, done].into_iter().flatten().collect();
    words.join(", ")
}
