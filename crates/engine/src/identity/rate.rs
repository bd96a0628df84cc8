//! Rate limits: how many requests a second an account or an SMPP user may make. Each node counts for itself, in memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

/// How many accounts are counted; beyond that, those with a full allowance are dropped.
const MAX_COUNTED: usize = 10_000;
const SECOND: Duration = Duration::from_secs(1);

/// Counted apart, so that a program that uses up its allowance cannot lock people out of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Requester {
    /// REST and MCP, together.
    Programs,
    /// The dashboard.
    People,
}

/// The remaining rate limit of an account after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests a second, which is also the largest burst.
    pub per_second: u32,
    /// Requests that may still be made now.
    pub remaining: u32,
    /// Seconds until the full burst is available again, rounded up.
    pub whole_in_s: u32,
    pub is_exceeded: bool,
}

/// Token buckets, each stored as the time at which it is full again.
pub struct RateLimits<K> {
    full_at: Mutex<HashMap<K, Duration>>,
}

impl<K> Default for RateLimits<K> {
    fn default() -> Self {
        Self {
            full_at: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> RateLimits<K> {
    /// Counts a request. `now` must be monotonic and `per_second` must not be 0.
    pub fn count(&self, key: K, per_second: u32, now: Duration) -> Allowance {
        let per_second = per_second.max(1);
        let interval = SECOND / per_second;
        let mut full_at = self.full_at.lock().expect("no holder panics");
        if full_at.len() >= MAX_COUNTED {
            full_at.retain(|_, full_at| *full_at > now);
        }
        let entry = full_at.entry(key).or_default();
        // A lowered limit applies at once: no bucket is more than a second from full.
        let before = (*entry).clamp(now, now + SECOND);
        let is_exceeded = before + interval > now + SECOND;
        let after = if is_exceeded {
            before
        } else {
            before + interval
        };
        *entry = after;
        let used = after.saturating_sub(now);
        let free = SECOND.saturating_sub(used).as_nanos() / interval.as_nanos().max(1);
        Allowance {
            per_second,
            remaining: u32::try_from(free).map_or(per_second, |free| free.min(per_second)),
            whole_in_s: u32::try_from(used.as_nanos().div_ceil(SECOND.as_nanos())).unwrap_or(1),
            is_exceeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::AccountId;

    use super::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).expect("an ID")
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(1_000_000 + ms)
    }

    #[test]
    fn a_burst_passes_at_once_and_later_requests_at_the_rate() {
        let limits = RateLimits::default();
        let count = |ms| limits.count((account(1), Requester::Programs), 4, at(ms));
        for remaining in [3, 2, 1, 0] {
            let allowance = count(0);
            assert_eq!(
                (allowance.remaining, allowance.is_exceeded),
                (remaining, false)
            );
            assert_eq!((allowance.per_second, allowance.whole_in_s), (4, 1));
        }
        for (ms, is_exceeded) in [
            (0, true),
            (249, true),
            (250, false),
            (250, true),
            (500, false),
            (5000, false),
        ] {
            assert_eq!(count(ms).is_exceeded, is_exceeded, "after {ms} ms");
        }
        assert_eq!(count(10_000).remaining, 3, "the bucket is full again");
    }

    #[test]
    fn accounts_people_and_programs_are_counted_apart() {
        let limits = RateLimits::default();
        let count = |id, who| limits.count((account(id), who), 1, at(0)).is_exceeded;
        assert!(!count(1, Requester::Programs));
        assert!(count(1, Requester::Programs));
        assert!(!count(1, Requester::People));
        assert!(!count(2, Requester::Programs));
    }

    #[test]
    fn a_changed_limit_applies_at_once() {
        let limits = RateLimits::default();
        let count = |rate, ms| limits.count((account(1), Requester::Programs), rate, at(ms));
        for _ in 0..100 {
            assert!(!count(100, 0).is_exceeded);
        }
        assert!(count(1, 999).is_exceeded);
        assert!(!count(1, 1000).is_exceeded);
        assert!(!count(1000, 1001).is_exceeded);
    }

    #[test]
    fn memory_stays_bounded() {
        let limits = RateLimits::default();
        let flood = u64::try_from(MAX_COUNTED).expect("few") + 100;
        for id in 1..=flood {
            limits.count((account(id), Requester::Programs), 1, at(id * 1000));
        }
        assert!(limits.full_at.lock().expect("free").len() <= MAX_COUNTED);
    }
}
