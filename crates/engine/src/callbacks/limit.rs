//! How many concurrent attempts a host gets.

/// The limit of an unknown host.
const INITIAL_LIMIT: usize = 8;
pub(super) const MAX_LIMIT: usize = 256;
/// For how many round trips the limit stays after an increase that gained nothing.
const HOLD_ROUNDS: usize = 8;
/// Smaller increases of latency are ignored.
const NOISE_MS: u64 = 20;

/// The result of an attempt, as far as the host's load is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Received {
        /// From the start of the attempt to the end of the answer.
        elapsed_ms: u32,
    },
    /// The host refused it, which says nothing about its load.
    Refused,
    /// The host did not answer, or answered that it is overloaded.
    Overloaded,
}

/// A limit that follows the host's capacity.
///
/// It grows by one with each success while it is used up, so it doubles with each round trip. If latency has grown as
/// much as the limit, the host only queues the requests: the limit falls back and stays for a while. Failures by
/// overload halve it, once for all attempts that were in flight together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdaptiveLimit {
    limit: usize,
    /// A moving average over the last successes, times [`Self::SCALE`].
    latency: Option<u64>,
    /// The limit before it last doubled, and the latency then.
    before: (usize, Option<u64>),
    /// Successes until it may grow again.
    hold: usize,
    /// Attempts with lower numbers began before it was last halved.
    halved_at: u64,
}

impl Default for AdaptiveLimit {
    fn default() -> Self {
        Self {
            limit: INITIAL_LIMIT,
            latency: None,
            before: (INITIAL_LIMIT, None),
            hold: 0,
            halved_at: 0,
        }
    }
}

impl AdaptiveLimit {
    /// The inverse of the weight of one success in the average.
    const SCALE: u64 = 8;

    pub(super) fn get(&self) -> usize {
        self.limit
    }

    /// Records the result of attempt `number`. `is_full` says whether the host had as many attempts in flight as
    /// allowed; `next` is the number of the next attempt.
    pub(super) fn record(&mut self, answer: Answer, number: u64, next: u64, is_full: bool) {
        match answer {
            Answer::Received { elapsed_ms } => self.succeed(u64::from(elapsed_ms), is_full),
            Answer::Refused => {}
            Answer::Overloaded => self.fail(number, next),
        }
    }

    fn succeed(&mut self, elapsed_ms: u64, is_full: bool) {
        let latency = match self.latency {
            Some(latency) => latency - latency / Self::SCALE + elapsed_ms,
            None => elapsed_ms * Self::SCALE,
        };
        self.latency = Some(latency);
        if self.before.1.is_none() {
            self.before.1 = Some(latency);
        }
        if self.hold > 0 {
            self.hold -= 1;
        } else if is_full && self.limit < MAX_LIMIT {
            self.limit += 1;
            if self.limit >= 2 * self.before.0 {
                self.keep_or_revert(latency);
            }
        }
    }

    /// Called when the limit has doubled: keeps it if latency has not grown as much.
    fn keep_or_revert(&mut self, latency: u64) {
        let (limit, before) = (self.before.0, self.before.1.unwrap_or(latency));
        if latency * 5 > before * 9 + NOISE_MS * Self::SCALE * 5 {
            self.limit = limit;
            self.hold = HOLD_ROUNDS * limit;
        } else {
            self.before = (self.limit, Some(latency));
        }
    }

    fn fail(&mut self, number: u64, next: u64) {
        if number < self.halved_at {
            return;
        }
        self.halved_at = next;
        self.limit = (self.limit / 2).max(1);
        self.before = (self.limit, self.latency);
        self.hold = HOLD_ROUNDS * self.limit;
    }
}

/// The number of slots that each may take while any are free: enough for a quick one.
pub(super) const MIN_SHARE: usize = 8;

/// Three quarters of the slots are shared out by halves; the last quarter is for those that use only a few.
pub(super) const fn shared(total: usize) -> usize {
    total - total / 4
}

/// Whether a receiver that uses `used` slots may take one more. All receivers share `total` slots and use `taken`. It may
/// while it uses less than half of the free slots, or only a few, so a new receiver always finds one.
pub(super) const fn may_take(used: usize, taken: usize, total: usize) -> bool {
    let free = shared(total).saturating_sub(taken);
    taken < total && (used < MIN_SHARE || used < free.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn received(elapsed_ms: u32) -> Answer {
        Answer::Received { elapsed_ms }
    }

    /// Round trips at full use of the limit; `latency_ms` gives the host's latency at that concurrency.
    fn rounds(limit: &mut AdaptiveLimit, count: usize, latency_ms: impl Fn(usize) -> usize) {
        for _ in 0..count {
            for _ in 0..limit.get() {
                let elapsed = u32::try_from(latency_ms(limit.get())).expect("short");
                limit.record(received(elapsed), 0, 0, true);
            }
        }
    }

    #[test]
    fn the_limit_doubles_with_each_round_trip_at_constant_latency() {
        for latency in [1, 100, 4_000] {
            let mut limit = AdaptiveLimit::default();
            let mut seen = vec![limit.get()];
            for _ in 0..6 {
                rounds(&mut limit, 1, |_| latency);
                seen.push(limit.get());
            }
            assert_eq!(
                seen,
                [8, 16, 32, 64, 128, MAX_LIMIT, MAX_LIMIT],
                "{latency} ms"
            );
        }
    }

    #[test]
    fn a_host_that_serves_one_at_a_time_is_not_flooded() {
        let mut limit = AdaptiveLimit::default();
        rounds(&mut limit, 1, |_| 800);
        for _ in 0..100 {
            rounds(&mut limit, 1, |at_once| 100 * at_once);
            assert!(limit.get() <= 4 * INITIAL_LIMIT, "{limit:?}");
        }
    }

    #[test]
    fn the_limit_grows_only_while_it_is_used_up() {
        let mut limit = AdaptiveLimit::default();
        for _ in 0..100 {
            limit.record(received(100), 0, 0, false);
        }
        assert_eq!(limit.get(), INITIAL_LIMIT);
    }

    #[test]
    fn failures_that_were_in_flight_together_halve_the_limit_once() {
        let mut limit = AdaptiveLimit::default();
        rounds(&mut limit, 5, |_| 100);
        for number in 0..10 {
            limit.record(Answer::Overloaded, number, 10, true);
        }
        assert_eq!(limit.get(), MAX_LIMIT / 2);
        limit.record(Answer::Overloaded, 10, 11, true);
        assert_eq!(limit.get(), MAX_LIMIT / 4);
        for number in 11..30 {
            limit.record(Answer::Overloaded, number, number + 1, true);
        }
        assert_eq!(limit.get(), 1);
        limit.record(Answer::Refused, 30, 31, true);
        assert_eq!(limit.get(), 1, "a refusal says nothing");
        rounds(&mut limit, 20, |_| 100);
        assert!(limit.get() >= INITIAL_LIMIT, "it recovers: {limit:?}");
    }

    /// Gives slots in turn until none is given any more.
    fn fill(total: usize, greedy: usize) -> Vec<usize> {
        let mut used = vec![0; greedy];
        loop {
            let mut given = false;
            for at in 0..greedy {
                if may_take(used[at], used.iter().sum(), total) {
                    used[at] += 1;
                    given = true;
                }
            }
            if !given {
                return used;
            }
        }
    }

    proptest! {
        #[test]
        fn greedy_users_get_equal_shares_and_leave_some(total in 100_usize..3_000, greedy in 1_usize..60) {
            let used = fill(total, greedy);
            let taken: usize = used.iter().sum();
            prop_assert!(taken <= total);
            let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{used:?}");
            let are_few = greedy * MIN_SHARE < total / 4;
            prop_assert!(!are_few || may_take(MIN_SHARE - 1, taken, total), "a newcomer gets its share");
        }

        #[test]
        fn greedy_users_in_sequence_leave_some_too(total in 100_usize..3_000, greedy in 1_usize..60) {
            let mut taken = 0;
            for _ in 0..greedy {
                let mut used = 0;
                while may_take(used, taken, total) {
                    used += 1;
                    taken += 1;
                }
            }
            prop_assert!(taken <= total);
            prop_assert!(greedy * MIN_SHARE >= total / 4 || may_take(0, taken, total));
        }
    }
}
