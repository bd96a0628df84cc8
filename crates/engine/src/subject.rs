//! What is stored about one number: exporting and erasing it.

use std::sync::Arc;

use domain::ports::{
    AuditStore, HistoryStore, MessageDetail, PrivacyStore, StoreError, SubjectMessage,
};
use domain::{Clock, MessageId, Msisdn};

use crate::audit::{Action, Actor, Audit};

/// How many messages one write erases, so that no other write waits long.
const STEP: usize = 500;

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
            after: None,
            is_done: false,
        })
    }

    /// Counts the messages to and from a number.
    pub async fn count(&self, number: &Msisdn) -> Result<SubjectCount, StoreError> {
        let (mut count, mut after) = (SubjectCount::default(), None);
        loop {
            let page = self.store.list_subject(number, after).await?;
            count.add(&page.messages);
            after = page.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Erases a number from all messages that are over. Those in progress stay, and are counted.
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
        let (mut count, mut after) = (SubjectCount::default(), None);
        loop {
            let page = self.store.list_subject(number, after).await?;
            for step in page.messages.chunks(STEP) {
                let ids: Vec<MessageId> = step.iter().map(|message| message.id).collect();
                let erased = self.store.erase_subject(number, &ids).await?;
                count.over += erased;
                count.in_progress += (step.len() as u64).saturating_sub(erased);
            }
            after = page.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }
}

/// An export in progress.
pub struct SubjectExport<'a> {
    subjects: &'a Subjects,
    number: Msisdn,
    after: Option<MessageId>,
    is_done: bool,
}

impl SubjectExport<'_> {
    /// The next messages with everything that is known about each; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<MessageDetail>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let Subjects { store, history, .. } = self.subjects;
        let page = store.list_subject(&self.number, self.after).await?;
        self.after = page.next;
        self.is_done = page.next.is_none();
        let mut details = Vec::with_capacity(page.messages.len());
        for message in page.messages {
            details.extend(history.find_message_detail(None, message.id).await?);
        }
        Ok(Some(details))
    }
}
