//! How many tries one host gets at once.

/// The limit of a host that nothing is known about.
const FIRST: usize = 8;
/// The highest limit of a host.
pub(super) const MOST: usize = 256;
/// Round trips for which the limit stays after a rise that gained nothing.
const HOLD_ROUNDS: usize = 8;
/// Latency may rise by this much without meaning anything.
const NOISE_MS: u64 = 20;

/// How a try went, as far as the host's load is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was received, after so long.
    Received {
        /// The time from the start of the try to the end of the answer.
        elapsed_ms: u32,
    },
    /// The host refused it. That says nothing about its load.
    Refused,
    /// The host did not answer, or said that it cannot cope.
    Overloaded,
}

/// A limit that follows what the host can take.
///
/// It rises by one with each success while all of it is in use, so it doubles with each round trip. When latency has
/// grown as much as the limit, the host only queues what it gets: the limit falls back and stays for a while. When tries
/// fail for load it is halved, once for all tries that were under way together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdaptiveLimit {
    limit: usize,
    /// A moving average over the last successes, times [`Self::SCALE`].
    latency: Option<u64>,
    /// The limit before it was last doubled, and the latency at the time.
    before: (usize, Option<u64>),
    /// Successes until it may rise again.
    hold: usize,
    /// Tries with lower numbers began before it was last halved.
    halved_at: u64,
}

impl Default for AdaptiveLimit {
    fn default() -> Self {
        Self {
            limit: FIRST,
            latency: None,
            before: (FIRST, None),
            hold: 0,
            halved_at: 0,
        }
    }
}

impl AdaptiveLimit {
    /// The weight of one success in the average is the inverse.
    const SCALE: u64 = 8;

    pub(super) fn get(&self) -> usize {
        self.limit
    }

    /// Notes how try number `number` went. `is_full`: the host had as many tries under way as it may; `next` is the number
    /// that the next try will get.
    pub(super) fn note(&mut self, answer: Answer, number: u64, next: u64, is_full: bool) {
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
        } else if is_full && self.limit < MOST {
            self.limit += 1;
            if self.limit >= 2 * self.before.0 {
                self.judge(latency);
            }
        }
    }

    /// The limit has doubled: keeps it if that was worth it.
    fn judge(&mut self, latency: u64) {
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

/// So many places each may take while there are any: enough for one that is quick.
pub(super) const FEW: usize = 8;

/// Of so many places three quarters are shared out by halves; the last quarter is for those that use only a few.
pub(super) const fn shared(total: usize) -> usize {
    total - total / 4
}

/// Whether one of many that share `total` places may take one more, when it uses `used` of the `taken` ones: as long as it
/// uses fewer than half of the free ones, or only a few. So however many are greedy, the next one finds room.
pub(super) const fn may_take(used: usize, taken: usize, total: usize) -> bool {
    let free = shared(total).saturating_sub(taken);
    taken < total && (used < FEW || used < free.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn received(elapsed_ms: u32) -> Answer {
        Answer::Received { elapsed_ms }
    }

    /// Round trips in which all tries are under way, with the latency that the host has at this concurrency.
    fn rounds(limit: &mut AdaptiveLimit, count: usize, latency_ms: impl Fn(usize) -> usize) {
        for _ in 0..count {
            for _ in 0..limit.get() {
                let elapsed = u32::try_from(latency_ms(limit.get())).expect("short");
                limit.note(received(elapsed), 0, 0, true);
            }
        }
    }

    #[test]
    fn it_doubles_with_each_round_trip_of_a_host_that_keeps_its_latency() {
        for latency in [1, 100, 4_000] {
            let mut limit = AdaptiveLimit::default();
            let mut seen = vec![limit.get()];
            for _ in 0..6 {
                rounds(&mut limit, 1, |_| latency);
                seen.push(limit.get());
            }
            assert_eq!(seen, [8, 16, 32, 64, 128, MOST, MOST], "{latency} ms");
        }
    }

    #[test]
    fn a_host_that_serves_one_at_a_time_is_not_flooded() {
        let mut limit = AdaptiveLimit::default();
        rounds(&mut limit, 1, |_| 800);
        for _ in 0..100 {
            rounds(&mut limit, 1, |at_once| 100 * at_once);
            assert!(limit.get() <= 4 * FIRST, "{limit:?}");
        }
    }

    #[test]
    fn it_rises_only_while_all_of_it_is_in_use() {
        let mut limit = AdaptiveLimit::default();
        for _ in 0..100 {
            limit.note(received(100), 0, 0, false);
        }
        assert_eq!(limit.get(), FIRST);
    }

    #[test]
    fn failures_that_were_under_way_together_halve_it_once() {
        let mut limit = AdaptiveLimit::default();
        rounds(&mut limit, 5, |_| 100);
        for number in 0..10 {
            limit.note(Answer::Overloaded, number, 10, true);
        }
        assert_eq!(limit.get(), MOST / 2);
        limit.note(Answer::Overloaded, 10, 11, true);
        assert_eq!(limit.get(), MOST / 4);
        for number in 11..30 {
            limit.note(Answer::Overloaded, number, number + 1, true);
        }
        assert_eq!(limit.get(), 1);
        limit.note(Answer::Refused, 30, 31, true);
        assert_eq!(limit.get(), 1, "a refusal says nothing");
        rounds(&mut limit, 20, |_| 100);
        assert!(limit.get() >= FIRST, "it recovers: {limit:?}");
    }

    /// Gives places to those that ask, in turn, until nobody gets another.
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
        fn greedy_ones_get_the_same_and_leave_room(total in 100_usize..3_000, greedy in 1_usize..60) {
            let used = fill(total, greedy);
            let taken: usize = used.iter().sum();
            prop_assert!(taken <= total);
            let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{used:?}");
            let are_few = greedy * FEW < total / 4;
            prop_assert!(!are_few || may_take(FEW - 1, taken, total), "a newcomer finds a few places");
        }

        #[test]
        fn one_after_the_other_they_leave_room_too(total in 100_usize..3_000, greedy in 1_usize..60) {
            let mut taken = 0;
            for _ in 0..greedy {
                let mut used = 0;
                while may_take(used, taken, total) {
                    used += 1;
                    taken += 1;
                }
            }
            prop_assert!(taken <= total);
            prop_assert!(greedy * FEW >= total / 4 || may_take(0, taken, total));
        }
    }
}
