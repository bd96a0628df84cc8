//! A receiver that fails until the test lets it recover.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::receiver::{Receiver, Reply};

/// Answers 500 until [`Self::recover`].
pub(super) struct FailingReceiver {
    pub(super) receiver: Receiver,
    is_healthy: Arc<AtomicBool>,
}

impl FailingReceiver {
    /// Each failure takes this long.
    pub(super) fn start(delay: Duration) -> Self {
        let is_healthy = Arc::new(AtomicBool::new(false));
        let healthy = is_healthy.clone();
        let receiver = Receiver::builder().script(move |_| {
            if healthy.load(Ordering::Relaxed) {
                Reply::ok()
            } else {
                Reply::answer(500, "closed").after(delay)
            }
        });
        Self {
            receiver: receiver.start(),
            is_healthy,
        }
    }

    /// From now on it accepts everything.
    pub(super) fn recover(&self) {
        self.is_healthy.store(true, Ordering::Relaxed);
    }
}
