//! Receipts that wait to be sent to the clients of one system ID.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::simulator::SimulatedOutcome;

/// How many receipts may wait; beyond that the oldest are dropped with a warning.
const MAX_WAITING: usize = 1_000_000;

/// A receipt that waits to be sent.
#[derive(Debug, Clone)]
pub(super) struct QueuedReceipt {
    pub(super) due: Instant,
    pub(super) id: u64,
    /// The sender and the recipient of the message.
    pub(super) from: (u8, u8, Bytes),
    pub(super) to: (u8, u8, Bytes),
    pub(super) outcome: SimulatedOutcome,
    pub(super) accepted_at: Timestamp,
}

/// Pending receipts, the next one first.
#[derive(Default)]
pub(super) struct ReceiptQueue {
    queue: Mutex<VecDeque<QueuedReceipt>>,
    added: Notify,
}

impl ReceiptQueue {
    pub(super) fn add(&self, receipts: impl IntoIterator<Item = QueuedReceipt>) {
        let mut queue = self.lock();
        queue.extend(receipts);
        let over = queue.len().saturating_sub(MAX_WAITING);
        if over > 0 {
            tracing::warn!(
                over,
                "too many receipts wait for a client; dropping the oldest"
            );
            queue.drain(..over);
        }
        drop(queue);
        self.added.notify_one();
    }

    /// Returns receipts that could not be sent to the front.
    pub(super) fn put_back(&self, receipts: impl IntoIterator<Item = QueuedReceipt>) {
        let mut queue = self.lock();
        for receipt in receipts {
            queue.push_front(receipt);
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
    pub(super) fn take(&self, most: usize) -> Vec<QueuedReceipt> {
        let now = Instant::now();
        let mut queue = self.lock();
        let due = queue
            .iter()
            .take(most)
            .take_while(|receipt| receipt.due <= now);
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

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<QueuedReceipt>> {
        self.queue.lock().expect("no holder panics")
    }
}
