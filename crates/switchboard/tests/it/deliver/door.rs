//! A receiver that can be opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::receiver::{Receiver, Reply};

/// A receiver that answers 500 until it is opened.
pub(super) struct Door {
    pub(super) receiver: Receiver,
    open: Arc<AtomicBool>,
}

impl Door {
    /// Takes so long for each refusal.
    pub(super) fn closed(delay: Duration) -> Self {
        let open = Arc::new(AtomicBool::new(false));
        let opened = open.clone();
        let receiver = Receiver::builder().script(move |_| {
            if opened.load(Ordering::Relaxed) {
                Reply::ok()
            } else {
                Reply::answer(500, "closed").after(delay)
            }
        });
        Self {
            receiver: receiver.start(),
            open,
        }
    }

    /// From now on everything is received.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }
}
