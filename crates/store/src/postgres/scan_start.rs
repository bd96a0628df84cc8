//! Where scans of a queue begin.
//!
//! Claimed rows stay in the index until vacuum removes them, which it cannot do while a transaction is open. A scan
//! from the beginning of the queue then steps over all of them. So once such scans are slow, they begin after the last
//! row found, and only now and then at the beginning, because rows are not stored in the order of their due times.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Scans that are not slower than this are left alone.
const QUICK: Duration = Duration::from_millis(50);
/// The number of consecutive slow scans from the beginning that matters: a single scan may be slow by chance.
const SLOW_IN_A_ROW: u32 = 4;
/// Scans from the beginning take at most this fraction (1/n) of the time.
const SHARE: u32 = 10;
/// Minimum time between scans from the beginning, once they are slow. A row with an earlier due time than the last row
/// found waits no longer than this.
const APART_LEAST: Duration = Duration::from_secs(1);
/// Maximum time between scans from the beginning.
const APART_MOST: Duration = Duration::from_secs(10);
/// Rows that are stored this long after their due time are still found by the next scan.
const SLACK_US: i64 = 1_000_000;

/// The position of a row in a queue: its due time and its ID.
pub(super) type QueueKey = (i64, i64);

/// Before all rows.
pub(super) const BEGINNING: QueueKey = (i64::MIN, i64::MIN);

/// Where the next scan of one range begins. The position may be wrong until the next scan from the beginning, which
/// only delays rows.
#[derive(Default)]
pub(super) struct ScanStart(Mutex<State>);

#[derive(Default)]
struct State {
    /// All rows before it were claimed, as far as is known.
    behind: Option<QueueKey>,
    slow_in_a_row: u32,
    /// When the last scan from the beginning ended, and how long it took.
    whole: Option<(Instant, Duration)>,
}

/// A scan.
pub(super) struct Scan {
    /// The scan finds rows after this key.
    pub(super) behind: QueueKey,
    began: Instant,
}

impl ScanStart {
    /// A scan that begins now.
    pub(super) fn begin(&self, now: Instant) -> Scan {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = state.behind.filter(|_| !state.is_whole_due(now));
        Scan {
            behind: behind.unwrap_or(BEGINNING),
            began: now,
        }
    }

    /// Ends a scan. `last` is the last key found if there may be more rows after it; without it, the scan found all
    /// rows that were due at `now_us`.
    pub(super) fn end(&self, scan: &Scan, now: Instant, now_us: i64, last: Option<QueueKey>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = (now_us.saturating_sub(SLACK_US), i64::MIN);
        state.behind = Some(last.map_or(recent, |last| last.min(recent)));
        if scan.behind == BEGINNING {
            let took = now.saturating_duration_since(scan.began);
            state.slow_in_a_row = if took > QUICK {
                state.slow_in_a_row.saturating_add(1)
            } else {
                0
            };
            state.whole = Some((now, took));
        }
    }
}

impl State {
    fn is_whole_due(&self, now: Instant) -> bool {
        let Some((at, took)) = self.whole.filter(|_| self.slow_in_a_row >= SLOW_IN_A_ROW) else {
            return true;
        };
        let apart = (took * SHARE).clamp(APART_LEAST, APART_MOST);
        now.saturating_duration_since(at) >= apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Duration = Duration::from_millis(200);
    const SECOND_US: i64 = 1_000_000;

    /// Scans one after the other, each as long as it says.
    struct Scans {
        floor: ScanStart,
        now: Instant,
        now_us: i64,
    }

    impl Scans {
        fn new() -> Self {
            Self {
                floor: ScanStart::default(),
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
            let scan = self.floor.begin(self.now);
            self.pass(takes);
            self.floor.end(&scan, self.now, self.now_us, last);
            scan.behind
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
    fn slow_ones_begin_behind_what_was_found_and_now_and_then_at_the_beginning() {
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
    fn what_may_still_be_stored_is_not_skipped() {
        let mut scans = Scans::new();
        scans.slow_down();
        let just_now = (scans.now_us, 7);
        scans.scan(QUICK, Some(just_now));
        let recent = scans.now_us - SLACK_US;
        assert_eq!(scans.scan(QUICK, None), (recent, i64::MIN));
    }

    #[test]
    fn the_beginning_is_never_far_away() {
        for takes in [QUICK * 2, SLOW, Duration::from_secs(9)] {
            let mut scans = Scans::new();
            for _ in 0..SLOW_IN_A_ROW {
                scans.pass(APART_MOST);
                scans.scan(takes, None);
            }
            assert_ne!(scans.scan(QUICK, None), BEGINNING, "{takes:?}");
            scans.pass(APART_MOST);
            assert_eq!(scans.scan(takes, None), BEGINNING, "{takes:?}");
        }
    }
}
