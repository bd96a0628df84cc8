//! What this node knows of the pools of routes, in which messages wait in the database until a carrier has room.
//!
//! A new message of an account that has messages waiting in the pool of its route goes there as well, so that it does not
//! overtake them. This is known as far as this node put them there or claimed some of them: [`Pools::has_backlog`].

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::ports::{PoolClaim, RoutePool};
use domain::{AccountId, PoolId, Priority};
use tokio::time::Instant;

use super::lanes::{LANES, lane};

/// The most routes whose pools are created at once.
const MOST_WANTED: usize = 1_000;
/// The most accounts of one lane whose backlog is known; beyond that, all accounts are taken to have one.
const MOST_ACCOUNTS: usize = 10_000;
/// A claim that finds nothing may have begun before the message was stored that is known to wait.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);

/// The names of the carriers of a route, in their order.
pub(in crate::sending) type RouteNames = Vec<String>;

/// The pools of routes.
#[derive(Default)]
pub(in crate::sending) struct Pools {
    state: Mutex<State>,
    /// Whether any backlog is known: asked for every message.
    any_backlog: AtomicBool,
}

#[derive(Default)]
struct State {
    ids: HashMap<RouteNames, PoolId>,
    list: Arc<Vec<RoutePool>>,
    /// Routes that have no pool yet.
    wanted: HashSet<RouteNames>,
    backlog: HashMap<(PoolId, usize), Backlog>,
    /// The account that each lane's last claim ended with.
    last: HashMap<(PoolId, usize), AccountId>,
}

/// What is known to wait in a lane of a pool.
struct Backlog {
    /// When an account's message was last put there.
    accounts: HashMap<AccountId, Instant>,
    /// There are more accounts than are listed.
    all_since: Option<Instant>,
}

impl Pools {
    /// The pool of a route. One that does not exist yet is created with the next [`Self::take_wanted`].
    pub(in crate::sending) fn find(&self, route: &[String]) -> Option<PoolId> {
        let mut state = self.lock();
        let found = state.ids.get(route).copied();
        if found.is_none() && state.wanted.len() < MOST_WANTED {
            state.wanted.insert(route.to_vec());
        }
        found
    }

    /// The routes whose pools are to be created, in a fixed order.
    pub(in crate::sending) fn take_wanted(&self) -> Vec<RouteNames> {
        let mut wanted: Vec<_> = std::mem::take(&mut self.lock().wanted)
            .into_iter()
            .collect();
        wanted.sort();
        wanted
    }

    /// Asks for these again.
    pub(in crate::sending) fn want(&self, routes: Vec<RouteNames>) {
        self.lock().wanted.extend(routes);
    }

    /// Notes which pools there are.
    pub(in crate::sending) fn set(&self, pools: Vec<RoutePool>) {
        let ids = pools.iter().map(|pool| (pool.carriers.clone(), pool.id));
        let ids = ids.collect();
        let mut state = self.lock();
        state.ids = ids;
        state.list = Arc::new(pools);
    }

    /// Every pool.
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

    /// Notes that a message of an account waits in a lane of a pool.
    pub(in crate::sending) fn note_backlog(
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
        if backlog.accounts.len() < MOST_ACCOUNTS || backlog.accounts.contains_key(&account) {
            backlog.accounts.insert(account, now);
        } else {
            backlog.all_since = Some(now);
        }
        self.any_backlog.store(true, Ordering::Relaxed);
    }

    /// Adds the accounts after which the claims of each lane begin.
    pub(in crate::sending) fn claims(&self, limits: Vec<(PoolId, [u32; LANES])>) -> Vec<PoolClaim> {
        let state = self.lock();
        let claim = |(pool, limits): (PoolId, [u32; LANES])| PoolClaim {
            pool,
            limits,
            after: std::array::from_fn(|lane| state.last.get(&(pool, lane)).copied()),
        };
        limits.into_iter().map(claim).collect()
    }

    /// Notes what a claim that began at this time found in a lane of a pool: the accounts in it, and whether more may wait.
    pub(in crate::sending) fn claimed(
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
                self.note_backlog(claim.pool, priority, *account);
            }
            return;
        }
        let mut state = self.lock();
        if let Some(backlog) = state.backlog.get_mut(&key) {
            let is_new = |noted: Instant| began.saturating_duration_since(noted) < SETTLES_WITHIN;
            backlog.accounts.retain(|_, noted| is_new(*noted));
            backlog.all_since = backlog.all_since.filter(|noted| is_new(*noted));
            if backlog.accounts.is_empty() && backlog.all_since.is_none() {
                state.backlog.remove(&key);
            }
        }
        let any = !state.backlog.is_empty();
        self.any_backlog.store(any, Ordering::Relaxed);
    }

    /// What is known only hurries: a panic elsewhere leaves it usable.
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
    fn a_pool_that_is_not_there_is_wanted_once() {
        let pools = Pools::default();
        assert_eq!(pools.find(&route(&["a", "b"])), None);
        assert_eq!(pools.find(&route(&["a", "b"])), None);
        assert_eq!(pools.take_wanted(), [route(&["a", "b"])]);
        assert!(pools.take_wanted().is_empty());
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
        pools.note_backlog(pool(1), normal, account(7));
        assert!(pools.has_backlog(pool(1), normal, account(7)));
        assert!(!pools.has_backlog(pool(1), normal, account(8)));
        assert!(!pools.has_backlog(pool(1), Priority::High, account(7)));

        let claim = claim(&pools);
        pools.claimed(&claim, normal, &[], false, Instant::now());
        assert!(pools.has_any_backlog(), "it may not have been stored yet");
        tokio::time::advance(SETTLES_WITHIN).await;
        pools.claimed(&claim, normal, &[account(8)], true, Instant::now());
        assert!(pools.has_backlog(pool(1), normal, account(7)));
        assert!(
            pools.has_backlog(pool(1), normal, account(8)),
            "it has more"
        );
        tokio::time::advance(SETTLES_WITHIN).await;
        pools.claimed(&claim, normal, &[account(8)], false, Instant::now());
        assert!(!pools.has_any_backlog());
    }

    #[test]
    fn claims_go_round_the_accounts() {
        let pools = Pools::default();
        let normal = Priority::Normal;
        for (found, last) in [(&[3, 5, 9][..], 9), (&[3, 5], 5), (&[9, 3], 3), (&[], 3)] {
            let found: Vec<_> = found.iter().copied().map(account).collect();
            pools.claimed(&claim(&pools), normal, &found, true, Instant::now());
            assert_eq!(claim(&pools).after, [None, Some(account(last)), None]);
        }
    }
}
