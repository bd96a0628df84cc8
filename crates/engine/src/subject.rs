//! What is stored about one number: exporting and erasing it.

use std::sync::Arc;

use domain::ports::{
    AuditStore, HistoryStore, InboundDetail, MessageDetail, PartSet, PrivacyStore, StoreError,
    SubjectMessage,
};
use domain::{Clock, MessageId, Msisdn};

use crate::audit::{Action, Actor, Audit};

/// How many messages one write erases, so that no other write waits long.
const STEP: usize = 500;
/// Maximum number of texts without all of their parts that are shown or counted.
const MAX_WAITING: u32 = 1_000;

/// How many messages were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubjectCount {
    /// Messages that have ended and whose callbacks do not wait.
    pub over: u64,
    /// Messages that are still in progress.
    pub in_progress: u64,
}

impl SubjectCount {
    fn add(&mut self, messages: &[SubjectMessage]) {
        let over = messages.iter().filter(|message| message.is_over).count();
        self.over += over as u64;
        self.in_progress += (messages.len() - over) as u64;
    }

    fn add_erased(&mut self, messages: &[SubjectMessage], erased: u64) {
        self.over += erased;
        self.in_progress += (messages.len() as u64).saturating_sub(erased);
    }
}

/// Finds and erases numbers. The audit log says that it was done, and never for which number.
pub struct Subjects {
    store: Arc<dyn PrivacyStore>,
    history: Arc<dyn HistoryStore>,
    audit: Audit,
}

impl Subjects {
    pub fn new(
        store: Arc<dyn PrivacyStore>,
        history: Arc<dyn HistoryStore>,
        audit: Arc<dyn AuditStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            history,
            audit: Audit::new(audit, clock),
        }
    }

    /// Records an export, and begins it.
    pub async fn export(
        &self,
        by: &Actor,
        number: Msisdn,
    ) -> Result<SubjectExport<'_>, StoreError> {
        let recorded = self
            .audit
            .record(by, None, Action::SubjectExport, "one number", "")
            .await?;
        drop(recorded);
        Ok(SubjectExport {
            subjects: self,
            number,
            messages: Position::default(),
            inbox: Position::default(),
        })
    }

    /// Counts the messages to and from a number.
    pub async fn count(&self, number: &Msisdn) -> Result<SubjectCount, StoreError> {
        let mut count = SubjectCount::default();
        let mut after = None;
        loop {
            let page = self.store.list_subject(number, after).await?;
            count.add(&page.messages);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        loop {
            let page = self.store.list_inbound_subject(number, after).await?;
            count.add(&page.messages);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        count.over += self.waiting_texts(number).await?;
        Ok(count)
    }

    /// How many texts from and to a number wait for parts.
    async fn waiting_texts(&self, number: &Msisdn) -> Result<u64, StoreError> {
        let waiting = self.store.list_subject_parts(number, MAX_WAITING).await?;
        Ok(waiting.len() as u64)
    }

    /// Erases a number from all messages that are over. Those in progress stay, and are counted. Texts that wait for
    /// parts are deleted.
    pub async fn erase(&self, by: &Actor, number: &Msisdn) -> Result<SubjectCount, StoreError> {
        let recorded = self
            .audit
            .record(by, None, Action::SubjectErase, "one number", "")
            .await?;
        let erased = self.erase_all(number).await;
        recorded.done(erased).await
    }

    async fn erase_all(&self, number: &Msisdn) -> Result<SubjectCount, StoreError> {
        self.store.erase_verifications(number).await?;
        // First, so that no message is made of them after the inboxes were read.
        let mut count = SubjectCount {
            over: self.waiting_texts(number).await?,
            in_progress: 0,
        };
        self.store.erase_subject_parts(number).await?;
        let mut after = None;
        loop {
            let page = self.store.list_subject(number, after).await?;
            for step in page.messages.chunks(STEP) {
                let erased = self.store.erase_subject(number, &ids(step)).await?;
                count.add_erased(step, erased);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        loop {
            let page = self.store.list_inbound_subject(number, after).await?;
            for step in page.messages.chunks(STEP) {
                let erased = self.store.erase_inbound_subject(number, &ids(step)).await?;
                count.add_erased(step, erased);
            }
            after = page.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }
}

fn ids(messages: &[SubjectMessage]) -> Vec<MessageId> {
    messages.iter().map(|message| message.id).collect()
}

/// An export in progress.
pub struct SubjectExport<'a> {
    subjects: &'a Subjects,
    number: Msisdn,
    messages: Position,
    inbox: Position,
}

/// How far a list was read.
#[derive(Default)]
struct Position {
    after: Option<MessageId>,
    is_done: bool,
}

impl Position {
    fn move_to(&mut self, next: Option<MessageId>) {
        self.after = next;
        self.is_done = next.is_none();
    }
}

impl SubjectExport<'_> {
    /// The next messages with everything that is known about each; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<MessageDetail>>, StoreError> {
        if self.messages.is_done {
            return Ok(None);
        }
        let Subjects { store, history, .. } = self.subjects;
        let page = store
            .list_subject(&self.number, self.messages.after)
            .await?;
        self.messages.move_to(page.next);
        let mut details = Vec::with_capacity(page.messages.len());
        for message in page.messages {
            details.extend(history.find_message_detail(None, message.id).await?);
        }
        Ok(Some(details))
    }

    /// The next messages from and to this handset in inboxes; `None` at the end.
    pub async fn next_inbox(&mut self) -> Result<Option<Vec<InboundDetail>>, StoreError> {
        if self.inbox.is_done {
            return Ok(None);
        }
        let store = &self.subjects.store;
        let page = store.list_inbound_subject(&self.number, self.inbox.after);
        let page = page.await?;
        self.inbox.move_to(page.next);
        let mut details = Vec::with_capacity(page.messages.len());
        for message in page.messages {
            details.extend(store.find_inbound_detail(message.id).await?);
        }
        Ok(Some(details))
    }

    /// Texts that wait for missing parts.
    pub async fn waiting_texts(&self) -> Result<Vec<PartSet>, StoreError> {
        let store = &self.subjects.store;
        store.list_subject_parts(&self.number, MAX_WAITING).await
    }
}
