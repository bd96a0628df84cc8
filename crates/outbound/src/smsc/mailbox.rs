//! What the SMSC owes to those who are bound under one name.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::simulator::Fate;

/// Receipts that may wait; the oldest are dropped for newer ones, which is told in the log.
const MOST: usize = 1_000_000;

/// A receipt that is owed.
#[derive(Debug, Clone)]
pub(super) struct Owed {
    pub(super) due: Instant,
    pub(super) id: u64,
    /// From whom and to whom the message was.
    pub(super) from: (u8, u8, Bytes),
    pub(super) to: (u8, u8, Bytes),
    pub(super) fate: Fate,
    pub(super) taken_at: Timestamp,
}

/// The receipts that are owed, the next one first.
#[derive(Default)]
pub(super) struct Mailbox {
    queue: Mutex<VecDeque<Owed>>,
    added: Notify,
}

impl Mailbox {
    pub(super) fn add(&self, owed: impl IntoIterator<Item = Owed>) {
        let mut queue = self.lock();
        queue.extend(owed);
        let over = queue.len().saturating_sub(MOST);
        if over > 0 {
            tracing::warn!(over, "nobody takes receipts; the oldest are dropped");
            queue.drain(..over);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Takes back what could not be brought: it is the next again.
    pub(super) fn put_back(&self, owed: impl IntoIterator<Item = Owed>) {
        let mut queue = self.lock();
        for owed in owed {
            queue.push_front(owed);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Returns when a receipt is due.
    pub(super) async fn due(&self) {
        loop {
            let due = self.lock().front().map(|first| first.due);
            match due {
                None => self.added.notified().await,
                Some(due) if due > Instant::now() => tokio::time::sleep_until(due).await,
                Some(_) => return,
            }
        }
    }

    /// Takes receipts that are due, at most so many.
    pub(super) fn take(&self, most: usize) -> Vec<Owed> {
        let now = Instant::now();
        let mut queue = self.lock();
        let due = queue.iter().take(most).take_while(|owed| owed.due <= now);
        let count = due.count();
        let taken = queue.drain(..count).collect();
        let more = !queue.is_empty();
        drop(queue);
        if more {
            // Others who wait here may have missed the only call.
            self.added.notify_one();
        }
        taken
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Owed>> {
        self.queue.lock().expect("no holder panics")
    }
}
