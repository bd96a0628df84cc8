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
        /// One attempt is forgiven each time this many seconds pass.
        forgiven_after_s: i64,
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
pub struct Tries {
    pub count: u32,
    /// When the last attempt was forgiven, or when the last one began.
    pub since: Timestamp,
}

impl Tries {
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
        let passed_s = now.duration_since(left.since).as_secs().max(0);
        let (pause_s, since) = match limit {
            AttemptLimit::Steady {
                burst,
                forgiven_after_s,
            } if left.count >= burst => (forgiven_after_s, left.since),
            AttemptLimit::Steady { .. } => (0, left.since),
            AttemptLimit::Growing { burst, pause_s } if left.count >= burst => {
                let doubled = 1_i64.checked_shl(left.count - burst).unwrap_or(i64::MAX);
                (pause_s.saturating_mul(doubled).min(MAX_PAUSE_S), now)
            }
            AttemptLimit::Growing { .. } => (0, now),
        };
        if pause_s > passed_s {
            let wait_s = (pause_s - passed_s).max(1);
            return Err(u32::try_from(wait_s).unwrap_or(u32::MAX));
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
            AttemptLimit::Steady {
                forgiven_after_s, ..
            } => passed.as_secs().max(0) / forgiven_after_s,
            AttemptLimit::Growing { .. } if passed >= FORGOTTEN_AFTER => i64::MAX,
            AttemptLimit::Growing { .. } => 0,
        };
        let forgiven = u32::try_from(steps).unwrap_or(u32::MAX);
        match (self.count.saturating_sub(forgiven), limit) {
            (0, _) => Self::none(now),
            (
                count,
                AttemptLimit::Steady {
                    forgiven_after_s, ..
                },
            ) => Self {
                count,
                since: self.since + SignedDuration::from_secs(steps * forgiven_after_s),
            },
            (count, AttemptLimit::Growing { .. }) => Self { count, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    /// Begins attempts at these seconds; each is expected to be allowed, or to be refused with this waiting time.
    fn run(limit: AttemptLimit, steps: &[(i64, Result<(), u32>)]) {
        let mut tries = Tries::none(at(0));
        for (second, expected) in steps {
            let begun = tries.begin(limit, at(*second));
            assert_eq!(begun.map(drop), *expected, "second {second}");
            tries = begun.unwrap_or(tries);
        }
    }

    #[test]
    fn a_steady_limit_forgives_step_by_step() {
        let limit = AttemptLimit::Steady {
            burst: 3,
            forgiven_after_s: 10,
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
        let many = Tries {
            count: 500,
            since: at(0),
        };
        assert_eq!(many.begin(limit, at(1)), Err(86_399));
    }

    #[test]
    fn right_answers_are_forgiven() {
        let steady = AttemptLimit::Steady {
            burst: 1,
            forgiven_after_s: 10,
        };
        let growing = AttemptLimit::Growing {
            burst: 1,
            pause_s: 10,
        };
        let tries = |count| Tries {
            count,
            since: at(0),
        };
        for (limit, before, after) in [
            (steady, 2, Some(tries(1))),
            (steady, 1, None),
            (steady, 0, None),
            (growing, 9, None),
        ] {
            assert_eq!(tries(before).forgive(limit), after, "{limit:?} {before}");
        }
    }
}
