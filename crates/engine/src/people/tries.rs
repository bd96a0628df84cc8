//! How often somebody may try.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use jiff::Timestamp;

/// Keys that are remembered at once.
const MAX_KEYS: usize = 10_000;

/// Counts tries by key. A try counts from the moment it is begun, so that many at once are as many as one by one.
pub(crate) struct Tries<K> {
    burst: u32,
    forgiven_after_s: i64,
    counts: Mutex<HashMap<K, Count>>,
}

#[derive(Clone, Copy)]
struct Count {
    tries: u32,
    since: Timestamp,
}

impl<K: Hash + Eq> Tries<K> {
    /// So many in quick succession; one is forgiven each time so many seconds pass.
    pub(crate) fn new(burst: u32, forgiven_after_s: i64) -> Self {
        Self {
            burst,
            forgiven_after_s,
            counts: Mutex::default(),
        }
    }

    /// Begins a try. The error is the seconds to wait for the next one.
    pub(crate) fn begin(&self, key: K, now: Timestamp) -> Result<(), u32> {
        let mut counts = self.counts.lock().expect("no holder panics");
        if counts.len() >= MAX_KEYS {
            self.make_room(&mut counts, now);
        }
        let count = counts.entry(key).or_insert(Count {
            tries: 0,
            since: now,
        });
        let (tries, since) = self.left(*count, now);
        if tries >= self.burst {
            let passed_s = now.duration_since(since).as_secs().max(0);
            let next = self.forgiven_after_s - passed_s;
            return Err(u32::try_from(next.max(1)).unwrap_or(u32::MAX));
        }
        *count = Count {
            tries: tries + 1,
            since,
        };
        Ok(())
    }

    /// Takes a try back that was no guess.
    pub(crate) fn forgive(&self, key: &K) {
        let mut counts = self.counts.lock().expect("no holder panics");
        if let Some(count) = counts.get_mut(key) {
            count.tries = count.tries.saturating_sub(1);
        }
    }

    /// Counts on under another key.
    pub(crate) fn hand_over(&self, from: &K, to: K) {
        let mut counts = self.counts.lock().expect("no holder panics");
        if let Some(count) = counts.remove(from) {
            counts.insert(to, count);
        }
    }

    /// What still counts, and since when: forgiving goes by whole steps, so that asking does not put it off.
    fn left(&self, count: Count, now: Timestamp) -> (u32, Timestamp) {
        let passed_s = now.duration_since(count.since).as_secs().max(0);
        let steps = passed_s / self.forgiven_after_s;
        let tries = count
            .tries
            .saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
        if tries == 0 {
            return (0, now);
        }
        let forgiven_s = steps * self.forgiven_after_s;
        (
            tries,
            count.since + jiff::SignedDuration::from_secs(forgiven_s),
        )
    }

    /// Under a flood of ever new keys those are dropped first that tried once; remembering all would be the attack.
    fn make_room(&self, counts: &mut HashMap<K, Count>, now: Timestamp) {
        for least in [0, 1, u32::MAX] {
            counts.retain(|_, count| self.left(*count, now).0 > least);
            if counts.len() < MAX_KEYS {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    #[test]
    fn a_count_goes_on_under_another_key() {
        let tries = Tries::new(2, 10);
        for (from, to) in [("a", "b"), ("b", "c")] {
            assert_eq!(tries.begin(from, at(0)), Ok(()), "{from}");
            tries.hand_over(&from, to);
        }
        assert_eq!(tries.begin("c", at(0)), Err(10));
        assert_eq!(tries.begin("a", at(0)), Ok(()), "nothing is left there");
        tries.hand_over(&"nobody", "a");
        assert_eq!(tries.begin("a", at(0)), Ok(()), "the second");
    }

    #[test]
    fn a_key_is_stopped_after_its_burst_and_forgiven_step_by_step() {
        let tries = Tries::new(3, 10);
        for n in 0..3 {
            assert_eq!(tries.begin("a", at(0)), Ok(()), "{n}");
        }
        for (second, expected) in [
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
        ] {
            assert_eq!(tries.begin("a", at(second)), expected, "second {second}");
        }
        assert_eq!(tries.begin("b", at(0)), Ok(()), "another key is another");
    }

    #[test]
    fn what_was_no_guess_does_not_count() {
        let tries = Tries::new(1, 10);
        for n in 0..10 {
            assert_eq!(tries.begin("a", at(0)), Ok(()), "{n}");
            tries.forgive(&"a");
        }
        assert_eq!(tries.begin("a", at(0)), Ok(()));
        assert_eq!(tries.begin("a", at(0)), Err(10));
    }

    #[test]
    fn a_flood_of_keys_does_not_forgive_whoever_guessed_often() {
        let tries = Tries::new(3, 10);
        for _ in 0..3 {
            assert_eq!(tries.begin(u64::MAX, at(0)), Ok(()));
        }
        for n in 0..3 * u64::try_from(MAX_KEYS).expect("a few thousand") {
            assert_eq!(tries.begin(n, at(0)), Ok(()), "{n}");
        }
        assert!(tries.counts.lock().expect("free").len() <= MAX_KEYS);
        assert_eq!(tries.begin(u64::MAX, at(0)), Err(10));
    }
}
