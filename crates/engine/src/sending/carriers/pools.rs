//! What this node knows about the route pools, in which messages wait in the database for a carrier with capacity.
//!
//! If messages of an account wait in the pool of a route, a new message of the account goes there as well, so that it
//! does not overtake them. A node knows about those that it put there or claimed from: [`Pools::has_backlog`].

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::ports::{PoolClaim, RoutePool};
use domain::{AccountId, PoolId, Priority};
use tokio::time::Instant;

use super::lanes::{LANES, lane};

/// Maximum number of pools created at once.
const MAX_MISSING: usize = 1_000;
/// Maximum number of accounts with a known backlog in one lane; beyond that, all accounts count as having one.
const MAX_ACCOUNTS: usize = 10_000;
/// A claim that finds nothing may have begun before a message that is known to wait was stored.
const COMMIT_DELAY: Duration = Duration::from_secs(2);

/// The names of a route's carriers, in order.
pub(in crate::sending) type RouteNames = Vec<String>;

#[derive(Default)]
pub(in crate::sending) struct Pools {
    state: Mutex<State>,
    /// Whether any backlog is known. Read for every message, so it takes no lock.
    any_backlog: AtomicBool,
}

#[derive(Default)]
struct State {
    ids: HashMap<RouteNames, PoolId>,
    list: Arc<Vec<RoutePool>>,
    /// Routes that have no pool yet.
    missing: HashSet<RouteNames>,
    backlog: HashMap<(PoolId, usize), Backlog>,
    /// The last account that each lane's last claim served.
    last: HashMap<(PoolId, usize), AccountId>,
}

/// The accounts with messages that are known to wait in a lane of a pool.
struct Backlog {
    /// When a message of the account was last put there.
    accounts: HashMap<AccountId, Instant>,
    /// Set when there are more accounts than are listed.
    all_since: Option<Instant>,
}

impl Pools {
    /// The pool of a route. If it does not exist yet, it will be created after the next [`Self::take_missing`].
    pub(in crate::sending) fn find(&self, route: &[String]) -> Option<PoolId> {
        let mut state = self.lock();
        let found = state.ids.get(route).copied();
        if found.is_none() && state.missing.len() < MAX_MISSING {
            state.missing.insert(route.to_vec());
        }
        found
    }

    /// The routes whose pools must be created, in a fixed order.
    pub(in crate::sending) fn take_missing(&self) -> Vec<RouteNames> {
        let mut missing: Vec<_> = std::mem::take(&mut self.lock().missing)
            .into_iter()
            .collect();
        missing.sort();
        missing
    }

    /// Returns routes whose pools could not be created.
    pub(in crate::sending) fn add_missing(&self, routes: Vec<RouteNames>) {
        self.lock().missing.extend(routes);
    }

    /// Sets which pools exist.
    pub(in crate::sending) fn set(&self, pools: Vec<RoutePool>) {
        let ids = pools.iter().map(|pool| (pool.carriers.clone(), pool.id));
        let ids = ids.collect();
        let mut state = self.lock();
        state.ids = ids;
        state.list = Arc::new(pools);
    }

    pub(in crate::sending) fn list(&self) -> Arc<Vec<RoutePool>> {
        self.lock().list.clone()
    }

    /// Whether messages of any account are known to wait.
    pub(in crate::sending) fn has_any_backlog(&self) -> bool {
        self.any_backlog.load(Ordering::Relaxed)
    }

    /// Whether messages of an account are known to wait in a lane of a pool.
    pub(in crate::sending) fn has_backlog(
        &self,
        pool: PoolId,
        priority: Priority,
        account: AccountId,
    ) -> bool {
        let state = self.lock();
        let backlog = state.backlog.get(&(pool, lane(priority)));
        backlog.is_some_and(|backlog| {
            backlog.all_since.is_some() || backlog.accounts.contains_key(&account)
        })
    }

    /// Whether anything is known to wait in a lane of a pool.
    pub(in crate::sending) fn is_active(&self, pool: PoolId, lane: usize) -> bool {
        self.lock().backlog.contains_key(&(pool, lane))
    }

    /// Records that a message of an account waits in a lane of a pool.
    pub(in crate::sending) fn add_backlog(
        &self,
        pool: PoolId,
        priority: Priority,
        account: AccountId,
    ) {
        let now = Instant::now();
        let mut state = self.lock();
        let backlog = state.backlog.entry((pool, lane(priority)));
        let backlog = backlog.or_insert_with(|| Backlog {
            accounts: HashMap::new(),
            all_since: None,
        });
        if backlog.accounts.len() < MAX_ACCOUNTS || backlog.accounts.contains_key(&account) {
            backlog.accounts.insert(account, now);
        } else {
            backlog.all_since = Some(now);
        }
        self.any_backlog.store(true, Ordering::Relaxed);
    }

    /// Adds to each lane's limit the account after which its claim begins.
    pub(in crate::sending) fn claims(&self, limits: Vec<(PoolId, [u32; LANES])>) -> Vec<PoolClaim> {
        let state = self.lock();
        let claim = |(pool, limits): (PoolId, [u32; LANES])| PoolClaim {
            pool,
            limits,
            after: std::array::from_fn(|lane| state.last.get(&(pool, lane)).copied()),
        };
        limits.into_iter().map(claim).collect()
    }

    /// Records what a claim found in a lane of a pool: the accounts, and whether more may wait. `began` is when the
    /// claim began.
    pub(in crate::sending) fn record_claim(
        &self,
        claim: &PoolClaim,
        priority: Priority,
        accounts: &[AccountId],
        more: bool,
        began: Instant,
    ) {
        let lane = lane(priority);
        let key = (claim.pool, lane);
        let after = claim.after[lane];
        if let Some(last) = accounts.iter().max_by_key(|id| (Some(**id) <= after, **id)) {
            self.lock().last.insert(key, *last);
        }
        if more {
            for account in accounts {
                self.add_backlog(claim.pool, priority, *account);
            }
            return;
        }
        let mut state = self.lock();
        if let Some(backlog) = state.backlog.get_mut(&key) {
            let is_new =
                |added_at: Instant| began.saturating_duration_since(added_at) < COMMIT_DELAY;
            backlog.accounts.retain(|_, added_at| is_new(*added_at));
            backlog.all_since = backlog.all_since.filter(|added_at| is_new(*added_at));
            if backlog.accounts.is_empty() && backlog.all_since.is_none() {
                state.backlog.remove(&key);
            }
        }
        let any = !state.backlog.is_empty();
        self.any_backlog.store(any, Ordering::Relaxed);
    }

    /// This knowledge only saves work, so it stays usable after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(id: u64) -> PoolId {
        PoolId::new(id).expect("not zero")
    }

    fn account(id: u64) -> AccountId {
        AccountId::new(id).expect("not zero")
    }

    fn route(names: &[&str]) -> RouteNames {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn claim(pools: &Pools) -> PoolClaim {
        let claims = pools.claims(vec![(pool(1), [10; LANES])]);
        claims.into_iter().next().expect("one")
    }

    #[test]
    fn a_missing_pool_is_requested_once() {
        let pools = Pools::default();
        assert_eq!(pools.find(&route(&["a", "b"])), None);
        assert_eq!(pools.find(&route(&["a", "b"])), None);
        assert_eq!(pools.take_missing(), [route(&["a", "b"])]);
        assert!(pools.take_missing().is_empty());
        pools.set(vec![RoutePool {
            id: pool(1),
            carriers: route(&["a", "b"]),
        }]);
        assert_eq!(pools.find(&route(&["a", "b"])), Some(pool(1)));
        assert_eq!(pools.find(&route(&["b"])), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_backlog_is_known_until_a_claim_finds_no_more() {
        let pools = Pools::default();
        let normal = Priority::Normal;
        assert!(!pools.has_any_backlog());
        pools.add_backlog(pool(1), normal, account(7));
        assert!(pools.has_backlog(pool(1), normal, account(7)));
        assert!(!pools.has_backlog(pool(1), normal, account(8)));
        assert!(!pools.has_backlog(pool(1), Priority::High, account(7)));

        let claim = claim(&pools);
        pools.record_claim(&claim, normal, &[], false, Instant::now());
        assert!(pools.has_any_backlog(), "it may not be stored yet");
        tokio::time::advance(COMMIT_DELAY).await;
        pools.record_claim(&claim, normal, &[account(8)], true, Instant::now());
        assert!(pools.has_backlog(pool(1), normal, account(7)));
        assert!(
            pools.has_backlog(pool(1), normal, account(8)),
            "it has more"
        );
        tokio::time::advance(COMMIT_DELAY).await;
        pools.record_claim(&claim, normal, &[account(8)], false, Instant::now());
        assert!(!pools.has_any_backlog());
    }

    #[test]
    fn claims_take_turns_among_accounts() {
        let pools = Pools::default();
        let normal = Priority::Normal;
        for (found, last) in [(&[3, 5, 9][..], 9), (&[3, 5], 5), (&[9, 3], 3), (&[], 3)] {
            let found: Vec<_> = found.iter().copied().map(account).collect();
            pools.record_claim(&claim(&pools), normal, &found, true, Instant::now());
            assert_eq!(claim(&pools).after, [None, Some(account(last)), None]);
        }
    }
}
