//! Receipts that wait to be sent to the clients of one system ID.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::simulator::Fate;

/// How many receipts may wait; beyond that the oldest are dropped with a warning.
const MOST: usize = 1_000_000;

/// A receipt that waits to be sent.
#[derive(Debug, Clone)]
pub(super) struct Owed {
    pub(super) due: Instant,
    pub(super) id: u64,
    /// The sender and the recipient of the message.
    pub(super) from: (u8, u8, Bytes),
    pub(super) to: (u8, u8, Bytes),
    pub(super) fate: Fate,
    pub(super) taken_at: Timestamp,
}

/// Pending receipts, the next one first.
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

    /// Returns receipts that could not be sent to the front.
    pub(super) fn put_back(&self, owed: impl IntoIterator<Item = Owed>) {
        let mut queue = self.lock();
        for owed in owed {
            queue.push_front(owed);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Waits until a receipt is due.
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

    /// Takes up to `most` receipts that are due.
    pub(super) fn take(&self, most: usize) -> Vec<Owed> {
        let now = Instant::now();
        let mut queue = self.lock();
        let due = queue.iter().take(most).take_while(|owed| owed.due <= now);
        let count = due.count();
        let taken = queue.drain(..count).collect();
        let more = !queue.is_empty();
        drop(queue);
        if more {
            // Other waiting connections may have missed the only notification.
            self.added.notify_one();
        }
        taken
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Owed>> {
        self.queue.lock().expect("no holder panics")
    }
}
