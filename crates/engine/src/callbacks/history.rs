//! Lists callbacks with their attempts, and replays them. A replay only makes callbacks due; workers then send them.

use std::sync::Arc;

use domain::delivery::CallbackAttempt;
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackStore, Cursor, HistoryStore, ListRange, Page,
    ReplayCursor, Store, StoreError,
};
use domain::{AccountId, CallbackId, Clock};

use crate::audit::{Action, Actor, Audit, RecordedChange};
use crate::reading::history::{MAX_PAGE_SIZE, search};

/// Lists and replays callbacks.
pub struct CallbackHistory {
    callbacks: Arc<dyn CallbackStore>,
    history: Arc<dyn HistoryStore>,
    audit: Audit,
}

impl CallbackHistory {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            audit: Audit::new(store.clone(), clock),
            history: store.clone(),
            callbacks: store,
        }
    }

    /// Callbacks that match a filter, newest first.
    pub async fn list(
        &self,
        filter: &CallbackFilter,
        page: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        self.callbacks.list_callbacks(filter, page).await
    }

    /// Callbacks that match, newest first, at most [`MAX_PAGE_SIZE`]. A page
    /// may have fewer items than asked for, even none, and still have a next cursor.
    pub async fn search(
        &self,
        filter: &CallbackFilter,
        cursor: Cursor<CallbackId>,
    ) -> Result<Page<CallbackRecord, CallbackId>, StoreError> {
        let limit = cursor.limit.clamp(1, MAX_PAGE_SIZE);
        search(Cursor { limit, ..cursor }, |step| {
            self.history.search_callbacks(filter, step)
        })
        .await
    }

    /// All attempts of a callback.
    pub async fn attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        self.callbacks.list_attempts(id).await
    }

    /// One callback with its attempts in order; `account` limits the search to one account.
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
        let page = ListRange {
            limit: 1,
            offset: 0,
        };
        let Some(record) = self.callbacks.list_callbacks(&filter, page).await?.pop() else {
            return Ok(None);
        };
        let attempts = self.callbacks.list_attempts(id).await?;
        Ok(Some((record, attempts)))
    }

    /// Makes callbacks due now, including parked ones, and returns how many. Continues even if the caller hangs up.
    pub async fn replay(&self, by: &Actor, filter: &CallbackFilter) -> Result<u64, StoreError> {
        let (store, filter) = (self.callbacks.clone(), filter.clone());
        let recorded = self.record_replay(by, &filter).await?;
        let task = tokio::spawn(async move { replay_all(&*store, &filter, |_| {}).await });
        let replayed = task.await;
        let replayed =
            replayed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        recorded.done(replayed).await
    }

    /// Like [`Self::replay`], but reports progress to `watch` and stops if the caller does.
    pub async fn replay_watched(
        &self,
        by: &Actor,
        filter: &CallbackFilter,
        watch: impl FnMut(u64) + Send,
    ) -> Result<u64, StoreError> {
        let recorded = self.record_replay(by, filter).await?;
        let replayed = replay_all(&*self.callbacks, filter, watch).await;
        recorded.done(replayed).await
    }

    async fn record_replay(
        &self,
        by: &Actor,
        filter: &CallbackFilter,
    ) -> Result<RecordedChange<'_>, StoreError> {
        let subject = match filter.id {
            Some(id) => format!("callback {id}"),
            None => "callbacks".to_owned(),
        };
        let (account, detail) = (filter.account, describe_filter(filter));
        self.audit
            .record(by, account, Action::CallbackReplay, subject, detail)
            .await
    }

    /// Replays the waiting and parked callbacks of all accounts to a receiver, and returns how many. The receiver is
    /// given by scheme, host and port, and must match exactly.
    pub async fn replay_receiver(&self, by: &Actor, address: &str) -> Result<u64, StoreError> {
        let mut replayed = 0;
        // A URL continues after its host with one of these.
        for next in ["/", "?", "#"] {
            let filter = CallbackFilter {
                url_prefix: Some(format!("{address}{next}")),
                ..CallbackFilter::default()
            };
            replayed += self.replay(by, &filter).await?;
        }
        Ok(replayed)
    }
}

/// Replays in steps, each in its own transaction: no transaction holds many rows, and sending begins at once.
async fn replay_all(
    store: &dyn CallbackStore,
    filter: &CallbackFilter,
    mut watch: impl FnMut(u64) + Send,
) -> Result<u64, StoreError> {
    let (mut replayed, mut next) = (0, Some(ReplayCursor::START));
    while let Some(from) = next {
        let step = store.replay_callbacks(filter, from).await?;
        replayed += step.count;
        next = step.next;
        watch(replayed);
    }
    Ok(replayed)
}

/// Describes a filter for the audit log. Only the host of a URL is shown: the rest may be secret.
fn describe_filter(filter: &CallbackFilter) -> String {
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
