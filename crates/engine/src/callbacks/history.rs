//! Callbacks as people see them: how they went, and sending them again. Where this process works, it finds those that
//! were made due like any other; delivering them is [`crate::callbacks`].

use std::sync::Arc;

use domain::delivery::CallbackAttempt;
use domain::ports::{
    CallbackFilter, CallbackRecord, Found, Look, Page, ReplayCursor, Store, StoreError,
};
use domain::{AccountId, CallbackId, Clock};

use crate::audit::{Action, Audit, By, Noted};
use crate::reading::history::look_on;

/// Shows callbacks and sends them again.
pub struct Reports {
    store: Arc<dyn Store>,
    audit: Audit,
}

impl Reports {
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

    /// Callbacks that fit, the newest first, at most [`MOST_ROWS`](crate::reading::history::MOST_ROWS); it may find fewer than asked for, even none, and
    /// still name a place to go on from.
    pub async fn look_for(
        &self,
        filter: &CallbackFilter,
        look: Look<CallbackId>,
    ) -> Result<Found<CallbackRecord, CallbackId>, StoreError> {
        look_on(look, |step| self.store.look_for_callbacks(filter, step)).await
    }

    /// Every try of a callback.
    pub async fn attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        self.store.list_attempts(id).await
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

    /// Makes callbacks due now, parked ones too, and says how many. It goes on although its caller hangs up.
    pub async fn replay(&self, by: &By, filter: &CallbackFilter) -> Result<u64, StoreError> {
        let (store, filter) = (self.store.clone(), filter.clone());
        let noted = self.note_replay(by, &filter).await?;
        let task = tokio::spawn(async move { replay_all(&*store, &filter, |_| {}).await });
        let replayed = task.await;
        let replayed =
            replayed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        noted.done(replayed).await
    }

    /// The same for a caller who watches how many there are so far.
    pub async fn replay_watched(
        &self,
        by: &By,
        filter: &CallbackFilter,
        watch: impl FnMut(u64) + Send,
    ) -> Result<u64, StoreError> {
        let noted = self.note_replay(by, filter).await?;
        let replayed = replay_all(&*self.store, filter, watch).await;
        noted.done(replayed).await
    }

    async fn note_replay(&self, by: &By, filter: &CallbackFilter) -> Result<Noted<'_>, StoreError> {
        let subject = match filter.id {
            Some(id) => format!("callback {id}"),
            None => "callbacks".to_owned(),
        };
        let (account, detail) = (filter.account, in_words(filter));
        self.audit
            .note(by, account, Action::CallbackReplay, subject, detail)
            .await
    }

    /// Sends what waits or is parked for a receiver again, of all accounts, and says how many. The receiver is named by
    /// scheme, host and port; one whose name only begins so is another.
    pub async fn replay_receiver(&self, by: &By, address: &str) -> Result<u64, StoreError> {
        let mut replayed = 0;
        // What stands after the host of an address, as far as anything does.
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

/// Replays step by step, each a transaction of its own: no one holds many rows, and deliveries begin with the first.
async fn replay_all(
    store: &dyn Store,
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
