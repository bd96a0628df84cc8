//! The clock that all nodes of a database share.
//!
//! One node writes times that others act on: when a message is due, when it expires, when an idempotency key may be
//! deleted. So all of them use the time of the database. Between two readings, the machine's boot clock carries it on;
//! that clock also counts while the machine is suspended. A wrong wall clock, or one that is set while the service
//! runs, has no effect.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ports::{DispatchStore, StoreError};
use domain::{Clock, Timestamp};

const READ_EVERY: Duration = Duration::from_secs(1);
/// Slower readings say little about the current time.
const MAX_READ_TIME: Duration = Duration::from_millis(250);
/// Readings differ by how long they take; smaller differences are ignored.
const JITTER_US: i64 = 50_000;
/// Larger corrections are logged.
const LOG_ABOVE_US: i64 = 1_000_000;

/// A clock that follows the database.
pub struct DatabaseClock {
    machine: MachineClock,
    /// The database's time when `machine` started, in microseconds.
    base_us: AtomicI64,
}

impl DatabaseClock {
    /// Reads the database's clock and keeps following it. Must be called inside a tokio runtime.
    pub async fn start(store: Arc<dyn DispatchStore>) -> Result<Arc<Self>, StoreError> {
        let clock = Arc::new(Self {
            machine: MachineClock::start(),
            base_us: AtomicI64::new(0),
        });
        let (base_us, _) = clock.read(&*store).await?;
        clock.base_us.store(base_us, Ordering::Relaxed);
        // Weak, so that this task does not keep the store open.
        let (weak, store) = (Arc::downgrade(&clock), Arc::downgrade(&store));
        supervise::spawn("database-clock", move || {
            follow(weak.clone(), store.clone())
        });
        Ok(clock)
    }

    /// Returns the database's time when `machine` started, and how long the reading took. The answer counts as given
    /// at the end of the reading, so this clock is never ahead.
    async fn read(&self, store: &dyn DispatchStore) -> Result<(i64, Duration), StoreError> {
        let began = self.machine.elapsed();
        let time = store.now().await?;
        let took = self.machine.elapsed().saturating_sub(began);
        Ok((time.as_microsecond() - self.elapsed_us(), took))
    }

    fn correct(&self, base_us: i64) {
        let before = self.base_us.load(Ordering::Relaxed);
        if let Some(base_us) = corrected(before, base_us) {
            if (base_us - before).abs() > LOG_ABOVE_US {
                let by_ms = (base_us - before) / 1000;
                tracing::warn!(
                    by_ms,
                    "the database's clock was moved; this node follows it"
                );
            }
            self.base_us.store(base_us, Ordering::Relaxed);
        }
    }

    fn elapsed_us(&self) -> i64 {
        i64::try_from(self.machine.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let now_us = self
            .base_us
            .load(Ordering::Relaxed)
            .saturating_add(self.elapsed_us());
        Timestamp::from_microsecond(now_us).unwrap_or(Timestamp::MAX)
    }
}

/// Time since a moment, including time for which the machine was suspended.
#[derive(Debug, Clone, Copy)]
struct MachineClock {
    began: Duration,
}

impl MachineClock {
    fn start() -> Self {
        Self {
            began: since_boot(),
        }
    }

    fn elapsed(self) -> Duration {
        since_boot().saturating_sub(self.began)
    }
}

#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// On other systems, the time of a suspension is missing until the next reading.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}

/// Of two readings that agree, the later time is the more exact one: its answer arrived sooner.
fn corrected(before_us: i64, seen_us: i64) -> Option<i64> {
    (seen_us > before_us || before_us - seen_us > JITTER_US).then_some(seen_us)
}

/// A slow reading can only prove that the clock is behind.
fn is_useful(took: Duration, before_us: i64, seen_us: i64) -> bool {
    took <= MAX_READ_TIME || seen_us > before_us
}

async fn follow(clock: Weak<DatabaseClock>, store: Weak<dyn DispatchStore>) {
    let mut tick = tokio::time::interval(READ_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(clock), Some(store)) = (clock.upgrade(), store.upgrade()) else {
            return;
        };
        // Without an answer, the machine's clock carries on: it drifts by less than a second in hours.
        if let Ok((base_us, took)) = clock.read(&*store).await
            && is_useful(took, clock.base_us.load(Ordering::Relaxed), base_us)
        {
            clock.correct(base_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_corrects_the_clock_when_it_is_more_exact() {
        for (case, before, seen, expected) in [
            ("the same", 1000, 1000, None),
            ("a quicker read", 1000, 1400, Some(1400)),
            ("a slower read", 1000, 600, None),
            ("set forward", 0, 3_600_000_000, Some(3_600_000_000)),
            ("set back", 3_600_000_000, 0, Some(0)),
            ("at the edge", JITTER_US, 0, None),
            ("beyond the edge", JITTER_US + 1, 0, Some(0)),
        ] {
            assert_eq!(corrected(before, seen), expected, "{case}");
        }
    }

    #[test]
    fn a_slow_reading_only_moves_the_clock_forward() {
        let (quick, slow) = (Duration::from_millis(1), Duration::from_secs(9));
        for (case, took, seen, expected) in [
            ("quick, behind", quick, 500, true),
            ("quick, ahead", quick, 2_000, true),
            ("slow, behind", slow, 500, false),
            (
                "slow, ahead: this machine was suspended",
                slow,
                60_000_000,
                true,
            ),
        ] {
            assert_eq!(is_useful(took, 1_000, seen), expected, "{case}");
        }
    }

    #[test]
    fn time_passes_by_the_clock_of_the_machine() {
        let began = since_boot().checked_sub(Duration::from_secs(5));
        let clock = DatabaseClock {
            machine: MachineClock {
                began: began.expect("the machine has run for longer"),
            },
            base_us: AtomicI64::new(1_000_000),
        };
        let now = clock.now();
        assert!(now >= Timestamp::from_second(6).expect("a time"), "{now}");
        assert!(now < Timestamp::from_second(60).expect("a time"), "{now}");
    }
}
