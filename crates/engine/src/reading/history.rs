//! Messages as people look for them, and the story of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::ports::{Found, Look, MessageFilter, MessageStory, MessageSummary, Store, StoreError};
use domain::{AccountId, MessageId};

/// The most that one page shows.
pub const MOST_ROWS: u32 = 200;
/// What is rare is looked for in several steps; after so long no further one is begun.
const PATIENCE: Duration = Duration::from_millis(20);

/// Finds messages.
pub struct History {
    store: Arc<dyn Store>,
}

impl History {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Messages that fit, the newest first, at most [`MOST_ROWS`]. Looks for a few hundredths of a second: it may find
    /// fewer than asked for, even none, and still name a place to go on from.
    pub async fn look_for_messages(
        &self,
        filter: &MessageFilter,
        look: Look<MessageId>,
    ) -> Result<Found<MessageSummary, MessageId>, StoreError> {
        look_on(look, |step| self.store.look_for_messages(filter, step)).await
    }

    /// Everything that is known of one message of an account, or of any.
    pub async fn find_story(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageStory>, StoreError> {
        self.store.find_story(account, id).await
    }
}

/// Looks step by step until a page is full, there is nothing older, or it has taken long enough.
pub(crate) async fn look_on<T, I, F>(
    look: Look<I>,
    step: impl Fn(Look<I>) -> F,
) -> Result<Found<T, I>, StoreError>
where
    I: Copy,
    F: Future<Output = Result<Found<T, I>, StoreError>>,
{
    let began = Instant::now();
    let wanted = look.limit.clamp(1, MOST_ROWS) as usize;
    let mut rows = Vec::new();
    let mut before = look.before;
    loop {
        let limit = u32::try_from(wanted - rows.len()).expect("at most a page");
        let found = step(Look { before, limit }).await?;
        rows.extend(found.rows);
        before = found.next;
        if before.is_none() || rows.len() >= wanted || began.elapsed() >= PATIENCE {
            return Ok(Found { rows, next: before });
        }
    }
}
