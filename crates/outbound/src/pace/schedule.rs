//! Calculates when each part may be sent.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the first throttling. It doubles while throttling continues.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The lowest rate, in parts a second. Something must be sent to learn that the carrier accepts parts again.
const LOWEST_RATE: f64 = 1.0;
/// How many parts may be sent at once, as a share of one second's parts.
const BURST: f64 = 0.05;
/// The share of the full rate that is recovered each second.
const RECOVERY: f64 = 0.05;
/// The period over which the rate is measured if no limit is set.
const MEASURING_PERIOD: Duration = Duration::from_secs(1);

/// When a part may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(super) at: Instant,
    /// The number of rate cuts when the turn was given.
    pub(super) cuts: u64,
}

/// Calculates the turns of parts.
pub(super) struct Schedule {
    /// The full rate, in parts a second.
    limit: Option<f64>,
    /// When the next turn is due if all turns are evenly spaced.
    due: Instant,
    /// The last turn since the last cut. No turn may be earlier.
    last: Instant,
    pub(super) cuts: u64,
    slow: Option<ReducedRate>,
    meter: RateMeter,
    /// When all parts handed over so far are sent at the current rate.
    pub(super) handed_until: Instant,
}

/// A rate that was cut and recovers.
#[derive(Debug, Clone, Copy)]
struct ReducedRate {
    /// When sending resumes.
    since: Instant,
    pause: Duration,
    rate: f64,
    full: f64,
}

impl ReducedRate {
    /// The rate at a time; `None` once it has recovered.
    fn rate_at(&self, now: Instant) -> Option<f64> {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        let rate = self.rate + seconds * self.full * RECOVERY;
        (rate < self.full).then_some(rate)
    }

    fn until(&self) -> Instant {
        self.since + Duration::from_secs_f64((self.full - self.rate) / (self.full * RECOVERY))
    }
}

impl Schedule {
    pub(super) fn new(limit: Option<f64>, now: Instant) -> Self {
        Self {
            limit,
            due: now,
            last: now,
            cuts: 0,
            slow: None,
            meter: RateMeter::new(now),
            handed_until: now,
        }
    }

    /// Changes the full rate. A reduced rate stays reduced and recovers to the new one.
    pub(super) fn set_limit(&mut self, limit: f64) {
        self.limit = Some(limit);
        if let Some(slow) = &mut self.slow {
            slow.rate = slow.rate.min(limit);
            slow.full = limit;
        }
    }

    /// The current rate, if there is a limit.
    pub(super) fn rate(&self, now: Instant) -> Option<f64> {
        let slow = self.slow.and_then(|slow| slow.rate_at(now.max(slow.since)));
        slow.or(self.limit)
    }

    pub(super) fn next(&mut self, now: Instant) -> Turn {
        let mut earliest = now.max(self.last);
        let mut rate = self.limit;
        if let Some(slow) = self.slow {
            earliest = earliest.max(slow.since);
            match slow.rate_at(earliest) {
                Some(slower) => rate = Some(slower),
                None => self.slow = None,
            }
        }
        self.meter.count(now);
        let cuts = self.cuts;
        self.last = earliest;
        let Some(rate) = rate else {
            return Turn { at: earliest, cuts };
        };
        let interval = Duration::from_secs_f64(rate.recip());
        // Turns of up to one burst may be saved up while nothing is sent.
        let saved = interval.mul_f64((rate * BURST - 1.0).max(0.0));
        let at = self
            .due
            .max(earliest.checked_sub(saved).unwrap_or(earliest));
        self.due = at + interval;
        self.last = at.max(earliest);
        Turn {
            at: self.last,
            cuts,
        }
    }

    /// Halves the rate and returns when it will have recovered; `None` if the part was sent before the last cut.
    pub(super) fn cut(&mut self, turn: Turn, now: Instant) -> Option<Instant> {
        if turn.cuts != self.cuts {
            return None;
        }
        let measured = self.meter.rate(now).max(2.0 * LOWEST_RATE);
        let before = self.slow.filter(|slow| slow.rate_at(now).is_some());
        let full = before.map_or(self.limit.unwrap_or(measured), |slow| slow.full);
        let rate = before.and_then(|slow| slow.rate_at(now)).unwrap_or(full);
        let pause = before.map_or(FIRST_PAUSE, |slow| (slow.pause * 2).min(LONGEST_PAUSE));
        let slow = ReducedRate {
            since: now + pause,
            pause,
            rate: (rate / 2.0).max(LOWEST_RATE),
            full,
        };
        self.cuts += 1;
        self.due = slow.since;
        self.last = now;
        self.slow = Some(slow);
        Some(slow.until())
    }
}

/// Counts the parts of about the last second.
struct RateMeter {
    since: Instant,
    count: f64,
    before: f64,
}

impl RateMeter {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            count: 0.0,
            before: 0.0,
        }
    }

    fn count(&mut self, now: Instant) {
        self.roll(now);
        self.count += 1.0;
    }

    fn rate(&mut self, now: Instant) -> f64 {
        self.roll(now);
        self.before.max(self.count) / MEASURING_PERIOD.as_secs_f64()
    }

    fn roll(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        if passed >= MEASURING_PERIOD {
            self.before = if passed < 2 * MEASURING_PERIOD {
                self.count
            } else {
                0.0
            };
            self.count = 0.0;
            self.since = now;
        }
    }
}
