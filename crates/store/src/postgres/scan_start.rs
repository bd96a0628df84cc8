//! Where scans of a queue begin.
//!
//! Claimed rows stay in the index until vacuum removes them, which it cannot do while a transaction is open. A scan
//! from the beginning of the queue then steps over all of them. So once such scans are slow, they begin after the last
//! row found, and only now and then at the beginning, because rows are not stored in the order of their due times.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Scans up to this duration count as quick.
const QUICK: Duration = Duration::from_millis(50);
/// After this many consecutive slow scans, scans start later: a single scan may be slow by chance.
const SLOW_IN_A_ROW: u32 = 4;
/// Scans from the beginning take at most this fraction (1/n) of the time.
const SHARE: u32 = 10;
/// Minimum time between scans from the beginning, once they are slow. A row with an earlier due time than the last row
/// found waits no longer than this.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between scans from the beginning.
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// Rows that are stored this long after their due time are still found by the next scan.
const SLACK_US: i64 = 1_000_000;

/// The position of a row in a queue: its due time and its ID.
pub(super) type QueueKey = (i64, i64);

/// The position before all rows.
pub(super) const BEGINNING: QueueKey = (i64::MIN, i64::MIN);

/// Where the next scan of one range begins. The position may be wrong until the next scan from the beginning, which
/// only delays rows.
#[derive(Default)]
pub(super) struct ScanStart(Mutex<State>);

#[derive(Default)]
struct State {
    /// All rows before it were claimed, as far as is known.
    after: Option<QueueKey>,
    slow_in_a_row: u32,
    /// When the last scan from the beginning ended, and how long it took.
    full_scan: Option<(Instant, Duration)>,
}

pub(super) struct Scan {
    /// The scan finds rows after this key.
    pub(super) after: QueueKey,
    began: Instant,
}

impl ScanStart {
    pub(super) fn begin(&self, now: Instant) -> Scan {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = state.after.filter(|_| !state.is_full_scan_due(now));
        Scan {
            after: after.unwrap_or(BEGINNING),
            began: now,
        }
    }

    /// Ends a scan. `last` is the last key found if there may be more rows after it; without it, the scan found all
    /// rows that were due at `now_us`.
    pub(super) fn end(&self, scan: &Scan, now: Instant, now_us: i64, last: Option<QueueKey>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = (now_us.saturating_sub(SLACK_US), i64::MIN);
        state.after = Some(last.map_or(recent, |last| last.min(recent)));
        if scan.after == BEGINNING {
            let took = now.saturating_duration_since(scan.began);
            state.slow_in_a_row = if took > QUICK {
                state.slow_in_a_row.saturating_add(1)
            } else {
                0
            };
            state.full_scan = Some((now, took));
        }
    }
}

impl State {
    fn is_full_scan_due(&self, now: Instant) -> bool {
        let Some((at, took)) = self
            .full_scan
            .filter(|_| self.slow_in_a_row >= SLOW_IN_A_ROW)
        else {
            return true;
        };
        let apart = (took * SHARE).clamp(MIN_INTERVAL, MAX_INTERVAL);
        now.saturating_duration_since(at) >= apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(200);
    const SECOND_US: i64 = 1_000_000;

    /// Runs scans of given durations, one after another.
    struct Scans {
        start: ScanStart,
        now: Instant,
        now_us: i64,
    }

    impl Scans {
        fn new() -> Self {
            Self {
                start: ScanStart::default(),
                now: Instant::now(),
                now_us: 1_000 * SECOND_US,
            }
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
            self.now_us += i64::try_from(time.as_micros()).expect("short");
        }

        /// Returns where the scan began.
        fn scan(&mut self, takes: Duration, last: Option<QueueKey>) -> QueueKey {
            let scan = self.start.begin(self.now);
            self.pass(takes);
            self.start.end(&scan, self.now, self.now_us, last);
            scan.after
        }

        fn slow_down(&mut self) {
            for _ in 0..SLOW_IN_A_ROW {
                assert_eq!(self.scan(SLOW, Some((5, 5))), BEGINNING);
            }
        }
    }

    #[test]
    fn quick_scans_begin_at_the_beginning() {
        let mut scans = Scans::new();
        for _ in 0..20 {
            assert_eq!(scans.scan(QUICK, Some((5, 5))), BEGINNING);
        }
        for _ in 1..SLOW_IN_A_ROW {
            assert_eq!(scans.scan(SLOW, None), BEGINNING);
        }
        assert_eq!(scans.scan(QUICK, None), BEGINNING, "not slow in a row");
        assert_eq!(scans.scan(SLOW, None), BEGINNING);
    }

    #[test]
    fn slow_scans_start_after_the_last_row_found_and_sometimes_at_the_beginning() {
        let mut scans = Scans::new();
        scans.slow_down();
        assert_eq!(scans.scan(QUICK, Some((5, 900))), (5, 5));
        assert_eq!(scans.scan(QUICK, None), (5, 900));
        let all = scans.now_us - SLACK_US;
        assert_eq!(scans.scan(QUICK, None), (all, i64::MIN), "all was found");
        scans.pass(SLOW * SHARE);
        assert_eq!(scans.scan(QUICK, None), BEGINNING);
        assert_eq!(scans.scan(QUICK, None), BEGINNING, "quick again");
    }

    #[test]
    fn rows_that_are_stored_late_are_not_skipped() {
        let mut scans = Scans::new();
        scans.slow_down();
        let just_now = (scans.now_us, 7);
        scans.scan(QUICK, Some(just_now));
        let recent = scans.now_us - SLACK_US;
        assert_eq!(scans.scan(QUICK, None), (recent, i64::MIN));
    }

    #[test]
    fn scans_from_the_beginning_are_never_far_apart() {
        for takes in [QUICK * 2, SLOW, Duration::from_secs(9)] {
            let mut scans = Scans::new();
            for _ in 0..SLOW_IN_A_ROW {
                scans.pass(MAX_INTERVAL);
                scans.scan(takes, None);
            }
            assert_ne!(scans.scan(QUICK, None), BEGINNING, "{takes:?}");
            scans.pass(MAX_INTERVAL);
            assert_eq!(scans.scan(takes, None), BEGINNING, "{takes:?}");
        }
    }
}
