//! Limits how many things run at once: for each key, and in total.
//!
//! The keys are accounts, addresses, sessions or domains; the crate does not know what they mean. Rates (requests a
//! second) do not belong here.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Permits by key.
///
/// A key never holds more permits than are left for all others. So a few greedy keys together cannot take them all, and
/// the next key still gets one.
#[derive(Debug)]
pub struct Permits<K> {
    all: usize,
    /// Permits for keys that hold none.
    reserve: usize,
    each: fn(&K) -> usize,
    taken: Mutex<Counts<K>>,
    released: Notify,
}

#[derive(Debug)]
struct Counts<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

impl<K: Clone + Eq + Hash> Permits<K> {
    /// Allows `all` permits at once, and for each key as many as `each` returns.
    pub fn new(all: usize, each: fn(&K) -> usize) -> Arc<Self> {
        Self::with_reserve(all, each, 0)
    }

    /// The last `reserve` permits are only for keys that hold none.
    pub fn with_reserve(all: usize, each: fn(&K) -> usize, reserve: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            reserve,
            each,
            taken: Mutex::new(Counts {
                all: 0,
                by_key: HashMap::new(),
            }),
            released: Notify::new(),
        })
    }

    /// A permit that counts for all of these keys, or `None` if one of them has its share or none is left.
    pub fn try_acquire(self: &Arc<Self>, keys: &[K]) -> Option<Permit<K>> {
        let mut taken = self.lock();
        let free = self.all - taken.all;
        let share = free.saturating_sub(self.reserve).max(1);
        let has_share = |key: &K| {
            let held = taken.by_key.get(key).copied().unwrap_or(0);
            held >= (self.each)(key).min(share)
        };
        if free == 0 || keys.iter().any(has_share) {
            return None;
        }
        taken.all += 1;
        for key in keys {
            *taken.by_key.entry(key.clone()).or_default() += 1;
        }
        Some(Permit {
            permits: self.clone(),
            keys: keys.to_vec(),
        })
    }

    /// Waits for a permit. Drop the future to give up.
    pub async fn acquire(self: &Arc<Self>, keys: &[K]) -> Permit<K> {
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            // Enabled before the check, so that a release in between is not missed.
            released.as_mut().enable();
            if let Some(permit) = self.try_acquire(keys) {
                return permit;
            }
            released.await;
        }
    }

    pub fn taken(&self) -> usize {
        self.lock().all
    }
}

impl<K> Permits<K> {
    fn lock(&self) -> MutexGuard<'_, Counts<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts for its keys until it is dropped.
#[derive(Debug)]
pub struct Permit<K: Eq + Hash> {
    permits: Arc<Permits<K>>,
    keys: Vec<K>,
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
        taken.all -= 1;
        for key in &self.keys {
            if let Some(held) = taken.by_key.get_mut(key) {
                *held -= 1;
                if *held == 0 {
                    taken.by_key.remove(key);
                }
            }
        }
        drop(taken);
        self.permits.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gets_its_share_and_returns_it() {
        let permits = Permits::new(100, |_| 2);
        let held = [permits.try_acquire(&["a"]), permits.try_acquire(&["a"])];
        assert!(held.iter().all(Option::is_some));
        assert!(permits.try_acquire(&["a"]).is_none(), "it has its share");
        assert!(
            permits.try_acquire(&["b"]).is_some(),
            "another key holds none"
        );
        drop(held);
        assert!(
            permits.try_acquire(&["a"]).is_some(),
            "the permits were returned"
        );
        assert_eq!((permits.taken(), permits.lock().by_key.len()), (0, 0));
    }

    #[test]
    fn all_keys_of_a_permit_count() {
        let permits = Permits::new(100, |key: &&str| if key.starts_with('s') { 1 } else { 2 });
        let first = permits.try_acquire(&["session", "account"]);
        assert!(first.is_some());
        assert!(permits.try_acquire(&["session", "another"]).is_none());
        assert!(
            permits.try_acquire(&["another"]).is_some(),
            "a refusal holds no permit"
        );
        let second = permits.try_acquire(&["second", "account"]);
        assert!(second.is_some());
        assert!(permits.try_acquire(&["third", "account"]).is_none());
    }

    #[test]
    fn greedy_keys_leave_a_permit_for_the_next() {
        // Four keys with their full share would hold all permits.
        let permits = Permits::new(32, |_| 8);
        let mut held = Vec::new();
        for key in (0..6).cycle().take(60) {
            while let Some(permit) = permits.try_acquire(&[key]) {
                held.push(permit);
            }
        }
        assert_eq!(held.len(), 31, "six greedy keys");
        assert!(permits.try_acquire(&[1000]).is_some());
    }

    #[test]
    fn greedy_keys_leave_the_reserve_for_keys_that_hold_none() {
        let permits = Permits::with_reserve(1000, |_| 250, 100);
        let mut held = Vec::new();
        for key in (0..20).cycle().take(40) {
            while let Some(permit) = permits.try_acquire(&[key]) {
                held.push(permit);
            }
        }
        let free = 1000 - permits.taken();
        assert!((80..=100).contains(&free), "20 greedy keys left {free}");
        for key in 1000..1010 {
            let first = permits.try_acquire(&[key]);
            assert!(first.is_some(), "{key}");
            held.extend(first);
        }
    }

    #[tokio::test]
    async fn released_permits_go_to_waiting_tasks_and_cancelled_waits_hold_none() {
        let permits = Permits::new(10, |_| 1);
        let held = permits.acquire(&["a"]).await;
        let waiting = tokio::spawn({
            let permits = permits.clone();
            async move { permits.acquire(&["a"]).await }
        });
        let cancelled = tokio::spawn({
            let permits = permits.clone();
            async move { permits.acquire(&["a"]).await }
        });
        tokio::task::yield_now().await;
        cancelled.abort();
        assert!(cancelled.await.is_err());
        drop(held);
        drop(waiting.await.expect("it got the permit"));
        assert_eq!(permits.taken(), 0);
    }
}
