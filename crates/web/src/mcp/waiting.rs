//! Tool calls that wait until a result is final.
//!
//! A waiting call reads REST again and again, so it sees what any node does. The reads are bounded: a few a second for
//! each call, and so many calls at once for each account.

use std::sync::Arc;
use std::time::Duration;

use domain::AccountId;
use permits::{Permit, Permits};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Waiting calls of a process, and of one account.
const MAX_WAITS: usize = 256;
const MAX_PER_ACCOUNT: usize = 16;
/// The pause before the second read. It doubles after each read.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// A wait ends so long before the request must be answered, which leaves time for a last read.
const MARGIN: Duration = Duration::from_secs(2);

/// All calls that wait.
pub(super) struct Waits {
    permits: Arc<Permits<AccountId>>,
    longest: Duration,
    stop: watch::Receiver<bool>,
}

impl Waits {
    /// A wait is shorter than `request_time`, and ends when `stop` turns true.
    pub(super) fn new(request_time: Duration, stop: watch::Receiver<bool>) -> Self {
        Self {
            permits: Permits::new(MAX_WAITS, |_| MAX_PER_ACCOUNT),
            longest: request_time.saturating_sub(MARGIN),
            stop,
        }
    }

    /// Begins to wait; `None` if too many calls of this account, or of all, wait already.
    pub(super) fn begin(&self, account: AccountId, time: Duration) -> Option<Wait> {
        Some(Wait {
            until: Instant::now() + time.min(self.longest),
            pause: MIN_PAUSE,
            stop: self.stop.clone(),
            _permit: self.permits.try_acquire(&[account])?,
        })
    }
}

/// One call that waits.
pub(super) struct Wait {
    until: Instant,
    pause: Duration,
    stop: watch::Receiver<bool>,
    _permit: Permit<AccountId>,
}

impl Wait {
    /// Pauses before the next read. `false` if the wait is over: its time has passed, or the service stops.
    pub(super) async fn pause(&mut self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() || *self.stop.borrow() {
            return false;
        }
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        tokio::select! {
            () = sleep(pause) => true,
            _ = self.stop.wait_for(|stop| *stop) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u64) -> AccountId {
        AccountId::new(number).expect("in range")
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_reads_a_few_times_a_second_until_its_time_is_over() {
        let (_stop, stopped) = watch::channel(false);
        let waits = Waits::new(Duration::from_secs(30), stopped);
        for (asked_s, waited_s) in [(0, 0), (1, 1), (10, 10), (30, 28)] {
            let began = Instant::now();
            let mut wait = waits
                .begin(account(1), Duration::from_secs(asked_s))
                .expect("a permit");
            let mut reads = 0;
            while wait.pause().await {
                reads += 1;
            }
            assert_eq!(began.elapsed().as_secs(), waited_s);
            // Two a second, and two more because the first pauses are shorter.
            assert!(reads <= 2 * waited_s + 2, "{reads} reads in {waited_s} s");
            assert!(reads >= waited_s, "{reads} reads in {waited_s} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_the_service_stops() {
        let (stop, stopped) = watch::channel(false);
        let waits = Waits::new(Duration::from_secs(30), stopped);
        let mut wait = waits
            .begin(account(1), Duration::from_secs(20))
            .expect("a permit");
        assert!(wait.pause().await);
        stop.send_replace(true);
        let began = Instant::now();
        assert!(!wait.pause().await);
        assert!(began.elapsed() < MIN_PAUSE);
    }

    #[test]
    fn an_account_has_a_share_of_the_waits() {
        let (_stop, stopped) = watch::channel(false);
        let waits = Waits::new(Duration::from_secs(30), stopped);
        let begin = |number| waits.begin(account(number), Duration::from_secs(1));
        let held: Vec<Wait> = std::iter::from_fn(|| begin(1)).collect();
        assert_eq!(held.len(), MAX_PER_ACCOUNT);
        assert!(begin(2).is_some(), "another account has its own share");
        drop(held);
        assert!(begin(1).is_some(), "the permits were returned");
    }
}
