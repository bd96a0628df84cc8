//! Limits attempts in the memory of one node, before the database is asked.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use domain::access::attempts::{AttemptLimit, Attempts};
use jiff::Timestamp;

pub(super) const MAX_KEYS: usize = 10_000;

/// Counts attempts by key.
pub(crate) struct AttemptCounter<K> {
    limit: AttemptLimit,
    pub(super) counts: Mutex<HashMap<K, Attempts>>,
}

impl<K: Hash + Eq> AttemptCounter<K> {
    pub(crate) fn new(limit: AttemptLimit) -> Self {
        Self {
            limit,
            counts: Mutex::default(),
        }
    }

    /// Begins an attempt. The error is the number of seconds until the next one is allowed.
    pub(crate) fn begin(&self, key: K, now: Timestamp) -> Result<(), u32> {
        let mut counts = self.counts.lock().expect("no holder panics");
        if counts.len() >= MAX_KEYS {
            self.drop_keys(&mut counts, now);
        }
        let none = Attempts::none(now);
        let counted = counts.entry(key).or_insert(none);
        *counted = counted.begin(self.limit, now)?;
        Ok(())
    }

    /// Whether the next attempt would be refused.
    pub(crate) fn is_used_up(&self, key: &K, now: Timestamp) -> bool {
        let counts = self.counts.lock().expect("no holder panics");
        let counted = counts.get(key);
        counted.is_some_and(|counted| counted.begin(self.limit, now).is_err())
    }

    /// Gives an attempt back that was not a guess.
    pub(crate) fn forgive(&self, key: &K) {
        let mut counts = self.counts.lock().expect("no holder panics");
        let left = counts.get(key).map(|counted| counted.forgive(self.limit));
        match left {
            Some(Some(left)) => drop(counts.get_mut(key).map(|counted| *counted = left)),
            Some(None) => drop(counts.remove(key)),
            None => {}
        }
    }

    /// Moves the count to another key.
    pub(crate) fn hand_over(&self, from: &K, to: K) {
        let mut counts = self.counts.lock().expect("no holder panics");
        if let Some(count) = counts.remove(from) {
            counts.insert(to, count);
        }
    }

    /// Under a flood of keys, those with few attempts are dropped first: storing all of them would exhaust memory.
    fn drop_keys(&self, counts: &mut HashMap<K, Attempts>, now: Timestamp) {
        for least in [0, 1, u32::MAX] {
            counts.retain(|_, counted| counted.left(self.limit, now).count > least);
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

    fn limit(burst: u32) -> AttemptLimit {
        AttemptLimit::Steady {
            burst,
            forgiven_after: SignedDuration::from_secs(10),
        }
    }

    #[test]
    fn a_count_moves_to_another_key() {
        let counter = AttemptCounter::new(limit(2));
        for (from, to) in [("a", "b"), ("b", "c")] {
            assert_eq!(counter.begin(from, at(0)), Ok(()), "{from}");
            counter.hand_over(&from, to);
        }
        assert_eq!(counter.begin("c", at(0)), Err(10));
        assert_eq!(counter.begin("a", at(0)), Ok(()), "nothing is left there");
        counter.hand_over(&"nobody", "a");
        assert_eq!(counter.begin("a", at(0)), Ok(()), "the second");
    }

    #[test]
    fn keys_are_counted_apart() {
        let counter = AttemptCounter::new(limit(1));
        assert_eq!(counter.begin("a", at(0)), Ok(()));
        assert_eq!(counter.begin("a", at(0)), Err(10));
        assert_eq!(counter.begin("b", at(0)), Ok(()));
    }

    #[test]
    fn a_forgiven_attempt_does_not_count() {
        let counter = AttemptCounter::new(limit(1));
        for n in 0..10 {
            assert_eq!(counter.begin("a", at(0)), Ok(()), "{n}");
            counter.forgive(&"a");
        }
        assert_eq!(counter.begin("a", at(0)), Ok(()));
        assert_eq!(counter.begin("a", at(0)), Err(10));
    }

    #[test]
    fn a_flood_of_keys_does_not_reset_frequent_guessers() {
        let counter = AttemptCounter::new(limit(3));
        for _ in 0..3 {
            assert_eq!(counter.begin(u64::MAX, at(0)), Ok(()));
        }
        for n in 0..3 * u64::try_from(MAX_KEYS).expect("a few thousand") {
            assert_eq!(counter.begin(n, at(0)), Ok(()), "{n}");
        }
        assert!(counter.counts.lock().expect("free").len() <= MAX_KEYS);
        assert_eq!(counter.begin(u64::MAX, at(0)), Err(10));
    }
}
