//! How often somebody may try a password or a code.

use jiff::{SignedDuration, Timestamp};

/// Attempts are forgotten after this time without another one.
pub const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// The longest pause, in seconds.
const MAX_PAUSE_S: i64 = 24 * 3600;

/// How many attempts are allowed, and when they are forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptLimit {
    /// A burst of attempts; each is forgiven after a fixed time.
    Steady {
        burst: u32,
        /// One attempt is forgiven each time this much time passes.
        forgiven_after: SignedDuration,
    },
    /// A burst of attempts, then a pause before each that doubles every time. The right answer forgives all of them.
    Growing {
        burst: u32,
        /// The first pause, in seconds.
        pause_s: i64,
    },
}

/// The attempts that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub count: u32,
    /// When the last attempt was forgiven, or when the last one began.
    pub since: Timestamp,
}

impl Attempts {
    pub const fn none(now: Timestamp) -> Self {
        Self {
            count: 0,
            since: now,
        }
    }

    /// Begins another attempt. It counts at once, so parallel attempts count like consecutive ones. The error is the
    /// number of seconds to wait.
    pub fn begin(self, limit: AttemptLimit, now: Timestamp) -> Result<Self, u32> {
        let left = self.left(limit, now);
        let passed = now.duration_since(left.since).max(SignedDuration::ZERO);
        let (pause, since) = match limit {
            AttemptLimit::Steady {
                burst,
                forgiven_after,
            } if left.count >= burst => (forgiven_after, left.since),
            AttemptLimit::Steady { .. } => (SignedDuration::ZERO, left.since),
            AttemptLimit::Growing { burst, pause_s } if left.count >= burst => {
                let doubled = 1_i64.checked_shl(left.count - burst).unwrap_or(i64::MAX);
                let pause_s = pause_s.saturating_mul(doubled).min(MAX_PAUSE_S);
                (SignedDuration::from_secs(pause_s), now)
            }
            AttemptLimit::Growing { .. } => (SignedDuration::ZERO, now),
        };
        if pause > passed {
            return Err(seconds_up(pause - passed));
        }
        Ok(Self {
            count: left.count + 1,
            since,
        })
    }

    /// The attempts that count after a right answer; `None` if there are none left.
    pub fn forgive(self, limit: AttemptLimit) -> Option<Self> {
        let count = match limit {
            AttemptLimit::Steady { .. } => self.count.saturating_sub(1),
            AttemptLimit::Growing { .. } => 0,
        };
        (count > 0).then_some(Self { count, ..self })
    }

    /// The attempts that still count. They are forgiven in whole steps, so asking does not delay the next step.
    #[must_use]
    pub fn left(self, limit: AttemptLimit, now: Timestamp) -> Self {
        let passed = now.duration_since(self.since);
        let steps = match limit {
            AttemptLimit::Steady { forgiven_after, .. } => {
                passed.max(SignedDuration::ZERO).as_millis() / forgiven_after.as_millis()
            }
            AttemptLimit::Growing { .. } if passed >= FORGOTTEN_AFTER => i128::MAX,
            AttemptLimit::Growing { .. } => 0,
        };
        let forgiven = u32::try_from(steps).unwrap_or(u32::MAX);
        match (self.count.saturating_sub(forgiven), limit) {
            (0, _) => Self::none(now),
            (count, AttemptLimit::Steady { forgiven_after, .. }) => Self {
                count,
                since: self.since + forgiven_after * i32::try_from(forgiven).unwrap_or(i32::MAX),
            },
            (count, AttemptLimit::Growing { .. }) => Self { count, ..self },
        }
    }
}

/// Whole seconds, rounded up.
fn seconds_up(time: SignedDuration) -> u32 {
    let seconds = time.as_secs() + i64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    /// Begins attempts at these seconds; each is expected to be allowed, or to be refused with this waiting time.
    fn run(limit: AttemptLimit, steps: &[(i64, Result<(), u32>)]) {
        let mut attempts = Attempts::none(at(0));
        for (second, expected) in steps {
            let begun = attempts.begin(limit, at(*second));
            assert_eq!(begun.map(drop), *expected, "second {second}");
            attempts = begun.unwrap_or(attempts);
        }
    }

    #[test]
    fn a_steady_limit_forgives_step_by_step() {
        let limit = AttemptLimit::Steady {
            burst: 3,
            forgiven_after: SignedDuration::from_secs(10),
        };
        run(
            limit,
            &[
                (0, Ok(())),
                (0, Ok(())),
                (0, Ok(())),
                (0, Err(10)),
                (9, Err(1)),
                (10, Ok(())),
                (10, Err(10)),
                (15, Err(5)),
                (20, Ok(())),
                (5, Err(10)),
                (1_000, Ok(())),
                (1_000, Ok(())),
                (1_000, Ok(())),
                (1_000, Err(10)),
            ],
        );
    }

    #[test]
    fn a_growing_limit_doubles_its_pause_up_to_a_day() {
        let limit = AttemptLimit::Growing {
            burst: 2,
            pause_s: 60,
        };
        run(
            limit,
            &[
                (0, Ok(())),
                (0, Ok(())),
                (0, Err(60)),
                (59, Err(1)),
                (60, Ok(())),
                (61, Err(119)),
                (180, Ok(())),
                (180, Err(240)),
                (420, Ok(())),
                // Nothing counts after a day.
                (420 + 86_400, Ok(())),
                (420 + 86_400, Ok(())),
                (420 + 86_400, Err(60)),
            ],
        );
        let many = Attempts {
            count: 500,
            since: at(0),
        };
        assert_eq!(many.begin(limit, at(1)), Err(86_399));
    }

    #[test]
    fn right_answers_are_forgiven() {
        let steady = AttemptLimit::Steady {
            burst: 1,
            forgiven_after: SignedDuration::from_secs(10),
        };
        let growing = AttemptLimit::Growing {
            burst: 1,
            pause_s: 10,
        };
        let attempts = |count| Attempts {
            count,
            since: at(0),
        };
        for (limit, before, after) in [
            (steady, 2, Some(attempts(1))),
            (steady, 1, None),
            (steady, 0, None),
            (growing, 9, None),
        ] {
            assert_eq!(attempts(before).forgive(limit), after, "{limit:?} {before}");
        }
    }
}
