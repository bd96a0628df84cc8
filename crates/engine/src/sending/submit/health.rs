//! Whether messages can be stored, judging by the last writes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::Timestamp;
use domain::ports::StoreError;
use jiff::SignedDuration;
use tokio::sync::Notify;

/// How long the service is not ready after a failed write, unless a write succeeds.
const UNREADY_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(5);

/// Tracks the last writes, and logs when their health changes.
#[derive(Default)]
pub(super) struct WriteHealth {
    /// Microseconds of the first failure since the last success; 0 if there is none.
    failing_since: AtomicI64,
    last_failure: AtomicI64,
    fatal: OnceLock<()>,
    pub(super) broken: Notify,
}

impl WriteHealth {
    pub(super) fn succeeded(&self) {
        if self.failing_since.load(Ordering::Relaxed) != 0
            && self.failing_since.swap(0, Ordering::Relaxed) != 0
        {
            tracing::info!("messages are stored again");
        }
    }

    pub(super) fn failed(&self, error: &StoreError, now: Timestamp) {
        metrics::counter!("switchboard_accept_failures_total").increment(1);
        self.last_failure
            .store(now.as_microsecond(), Ordering::Relaxed);
        if self
            .failing_since
            .swap(now.as_microsecond(), Ordering::Relaxed)
            == 0
        {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(%error, cause, "messages cannot be stored; callers get 503");
        }
        if matches!(error, StoreError::Broken { .. }) && self.fatal.set(()).is_ok() {
            self.broken.notify_one();
        }
    }

    pub(super) fn is_good(&self, now: Timestamp) -> bool {
        let failing = self.failing_since.load(Ordering::Relaxed) != 0;
        let quiet = now.as_microsecond() - self.last_failure.load(Ordering::Relaxed);
        self.fatal.get().is_none()
            && !(failing
                && quiet < i64::try_from(UNREADY_AFTER_FAILURE.as_micros()).expect("seconds"))
    }
}
