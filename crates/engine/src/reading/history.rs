//! Searching messages, and the detail of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::ports::{
    Cursor, HistoryStore, MessageDetail, MessageFilter, MessageSummary, Page, StoreError,
};
use domain::{AccountId, MessageId};

/// Maximum number of items on one page, and of the messages with texts in memory for one request.
pub const MAX_PAGE_SIZE: u32 = 200;
/// Maximum number of messages in one list without texts.
pub const MAX_LIST_SIZE: u32 = 1000;
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
        let limit = cursor.limit.clamp(1, MAX_PAGE_SIZE);
        search(Cursor { limit, ..cursor }, |step| {
            self.store.search_messages(filter, step)
        })
        .await
    }

    /// Messages that match, newest first, without their texts, at most [`MAX_LIST_SIZE`]. There is a next cursor only if
    /// there are more messages, or if the search time was over first.
    pub async fn list_messages(
        &self,
        filter: &MessageFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<MessageSummary, MessageId>, StoreError> {
        let limit = cursor.limit.clamp(1, MAX_LIST_SIZE);
        let with_one_more = Cursor {
            limit: limit + 1,
            ..cursor
        };
        let mut page = search(with_one_more, |step| async move {
            let mut found = self.store.search_messages(filter, step).await?;
            for row in &mut found.rows {
                row.text = String::new();
            }
            Ok(found)
        })
        .await?;
        if page.rows.len() > limit as usize {
            page.rows.truncate(limit as usize);
            page.next = page.rows.last().map(|row| row.id);
        }
        Ok(page)
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

/// Searches step by step until the page is full, nothing older is left, or the search time is over. A step that found all
/// that it was asked for is always followed by the next.
pub(crate) async fn search<T, I, F>(
    cursor: Cursor<I>,
    step: impl Fn(Cursor<I>) -> F,
) -> Result<Page<T, I>, StoreError>
where
    I: Copy,
    F: Future<Output = Result<Page<T, I>, StoreError>>,
{
    let began = Instant::now();
    let page_size = cursor.limit as usize;
    let mut rows = Vec::new();
    let mut before = cursor.before;
    loop {
        let limit = (page_size - rows.len()).min(MAX_PAGE_SIZE as usize);
        let limit = u32::try_from(limit).expect("at most a page");
        let found = step(Cursor { before, limit }).await?;
        let is_full = found.rows.len() >= limit as usize;
        rows.extend(found.rows);
        before = found.next;
        let is_over = !is_full && began.elapsed() >= SEARCH_TIME;
        if before.is_none() || rows.len() >= page_size || is_over {
            return Ok(Page { rows, next: before });
        }
    }
}
