//! Searching messages, and the detail of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::ports::{
    Cursor, HistoryStore, MessageDetail, MessageFilter, MessageSummary, Page, StoreError,
};
use domain::{AccountId, MessageId};

/// Maximum number of items on one page.
pub const MAX_PAGE_SIZE: u32 = 200;
/// A search for rare messages takes several steps; after this long no further step begins.
const SEARCH_TIME: Duration = Duration::from_millis(20);

pub struct History {
    store: Arc<dyn HistoryStore>,
}

impl History {
    pub fn new(store: Arc<dyn HistoryStore>) -> Self {
        Self { store }
    }

    /// Messages that match, newest first, at most [`MAX_PAGE_SIZE`]. The search time is limited: a page may have fewer
    /// items than asked for, even none, and still have a next cursor.
    pub async fn search_messages(
        &self,
        filter: &MessageFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<MessageSummary, MessageId>, StoreError> {
        search(cursor, |step| self.store.search_messages(filter, step)).await
    }

    /// Everything that is known about one message; `account` limits the search to one account.
    pub async fn find_message_detail(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageDetail>, StoreError> {
        self.store.find_message_detail(account, id).await
    }
}

/// Searches step by step until the page is full, nothing older is left, or the search time is over.
pub(crate) async fn search<T, I, F>(
    cursor: Cursor<I>,
    step: impl Fn(Cursor<I>) -> F,
) -> Result<Page<T, I>, StoreError>
where
    I: Copy,
    F: Future<Output = Result<Page<T, I>, StoreError>>,
{
    let began = Instant::now();
    let page_size = cursor.limit.clamp(1, MAX_PAGE_SIZE) as usize;
    let mut rows = Vec::new();
    let mut before = cursor.before;
    loop {
        let limit = u32::try_from(page_size - rows.len()).expect("at most a page");
        let found = step(Cursor { before, limit }).await?;
        rows.extend(found.rows);
        before = found.next;
        if before.is_none() || rows.len() >= page_size || began.elapsed() >= SEARCH_TIME {
            return Ok(Page { rows, next: before });
        }
    }
}
