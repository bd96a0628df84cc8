//! The time that all nodes of a database share.
//!
//! What one node writes by its clock, another reads by its own: when a message is due, when it expires, when a key may be
//! forgotten. So the time of a service is that of its database, carried on by the monotonic clock of the process between
//! two looks. A machine whose wall clock is wrong, or is set while the service runs, sends nothing early and nothing late.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use domain::ports::{Store, StoreError};
use domain::{Clock, Timestamp};

/// How often the database is asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An answer that took longer says little about now.
const LONGEST_LOOK: Duration = Duration::from_millis(250);
/// Looks differ by the time that they take; below this they say the same.
const JITTER_US: i64 = 50_000;
/// A correction of more than that is told.
const WORTH_A_LINE_US: i64 = 1_000_000;

/// A clock that follows the database's.
pub struct DatabaseClock {
    started: Instant,
    /// The database's time at `started`, in microseconds.
    base_us: AtomicI64,
}

impl DatabaseClock {
    /// Reads the database's clock, and goes on reading it. Must be called inside a tokio runtime.
    pub async fn start(store: Arc<dyn Store>) -> Result<Arc<Self>, StoreError> {
        let clock = Arc::new(Self {
            started: Instant::now(),
            base_us: AtomicI64::new(0),
        });
        let (base_us, _) = clock.look(&*store).await?;
        clock.base_us.store(base_us, Ordering::Relaxed);
        // Weak, so that whoever closes the store is the last to hold it.
        tokio::spawn(follow(Arc::downgrade(&clock), Arc::downgrade(&store)));
        Ok(clock)
    }

    /// What the database's time was at `started`, and how long it took to ask. The answer is counted as if it had been
    /// given at the end of that, so that this clock is never ahead.
    async fn look(&self, store: &dyn Store) -> Result<(i64, Duration), StoreError> {
        let began = Instant::now();
        let time = store.now().await?;
        Ok((time.as_microsecond() - self.elapsed_us(), began.elapsed()))
    }

    fn correct(&self, base_us: i64) {
        let before = self.base_us.load(Ordering::Relaxed);
        if let Some(base_us) = corrected(before, base_us) {
            if (base_us - before).abs() > WORTH_A_LINE_US {
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
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
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

/// A look that came back sooner is nearer to the truth, so of two that agree the later time counts.
fn corrected(before_us: i64, seen_us: i64) -> Option<i64> {
    (seen_us > before_us || before_us - seen_us > JITTER_US).then_some(seen_us)
}

async fn follow(clock: Weak<DatabaseClock>, store: Weak<dyn Store>) {
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(clock), Some(store)) = (clock.upgrade(), store.upgrade()) else {
            return;
        };
        // Without an answer the monotonic clock goes on: it drifts by less than a second in hours.
        if let Ok((base_us, took)) = clock.look(&*store).await
            && took <= LONGEST_LOOK
        {
            clock.correct(base_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_corrects_the_clock_when_it_knows_better() {
        for (case, before, seen, expected) in [
            ("the same", 1000, 1000, None),
            ("a quicker look", 1000, 1400, Some(1400)),
            ("a slower look", 1000, 600, None),
            ("set forward", 0, 3_600_000_000, Some(3_600_000_000)),
            ("set back", 3_600_000_000, 0, Some(0)),
            ("at the edge", JITTER_US, 0, None),
            ("beyond the edge", JITTER_US + 1, 0, Some(0)),
        ] {
            assert_eq!(corrected(before, seen), expected, "{case}");
        }
    }

    #[test]
    fn time_goes_on_by_the_monotonic_clock() {
        let started = Instant::now().checked_sub(Duration::from_secs(5));
        let clock = DatabaseClock {
            started: started.expect("the machine has run for longer"),
            base_us: AtomicI64::new(1_000_000),
        };
        let now = clock.now();
        assert!(now >= Timestamp::from_second(6).expect("a time"), "{now}");
        assert!(now < Timestamp::from_second(60).expect("a time"), "{now}");
    }
}
