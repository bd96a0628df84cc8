//! What a carrier counts: its links, and the messages that it has in part.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// How many links are up. Asked for every message.
#[derive(Default)]
pub(super) struct Tally {
    up: AtomicU16,
    /// Those of them that send.
    sending: AtomicU16,
}

impl Tally {
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

/// How many messages the carrier has in part.
#[derive(Default)]
pub(super) struct Begun(AtomicUsize);

impl Begun {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Counts a message until the guard is dropped.
    pub(super) fn begin(&self) -> BegunMessage<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        BegunMessage(self)
    }
}

/// A message that the carrier has in part.
pub(super) struct BegunMessage<'b>(&'b Begun);

impl Drop for BegunMessage<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
