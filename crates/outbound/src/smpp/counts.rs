//! Counters of a carrier: its links, and messages of which it has some parts.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// How many links are up. Read for every message.
#[derive(Default)]
pub(super) struct LinkCounts {
    up: AtomicU16,
    /// How many of them can send.
    sending: AtomicU16,
}

impl LinkCounts {
    pub(super) fn up(&self) -> u16 {
        self.up.load(Ordering::Relaxed)
    }

    pub(super) fn sending(&self) -> u16 {
        self.sending.load(Ordering::Relaxed)
    }

    /// Counts a link that came up or went down.
    pub(super) fn count(&self, sends: bool, is_up: bool) {
        let change = |count: &AtomicU16| {
            if is_up {
                count.fetch_add(1, Ordering::Relaxed);
            } else {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        };
        if sends {
            change(&self.sending);
        }
        change(&self.up);
    }
}

/// How many messages have some, but not all parts with the carrier.
#[derive(Default)]
pub(super) struct PartialMessages(AtomicUsize);

impl PartialMessages {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Counts a message until the guard is dropped.
    pub(super) fn begin(&self) -> PartialMessage<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        PartialMessage(self)
    }
}

/// A message that has some parts with the carrier.
pub(super) struct PartialMessage<'b>(&'b PartialMessages);

impl Drop for PartialMessage<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
