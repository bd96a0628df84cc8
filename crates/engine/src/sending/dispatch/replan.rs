//! Messages that wait in pools and have to be routed anew.
//!
//! A message is routed when it is claimed, so a pool whose carriers work empties by itself, by the rules of today. Where
//! none of them works, the rules may have changed so that another carrier could take its messages. So some time after a
//! change of rules or carriers, and after a start, such pools are released to nobody, once and a step at a time: what still
//! belongs there comes back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::PoolId;
use domain::ports::{PoolCursor, StoreError};
use tokio::time::Instant;

use super::Dispatch;

/// How long carriers have to connect.
const AFTER: Duration = Duration::from_secs(30);
/// The most messages that are released in one step.
const STEP: u32 = 5_000;

/// Pools that are still to be released.
#[derive(Default)]
pub(super) struct Replan(Mutex<State>);

#[derive(Default)]
struct State {
    /// The carriers and rules that messages are routed by.
    plan: Option<(Vec<String>, String)>,
    begins_at: Option<Instant>,
    /// The pools that are left, and how far the last of them has been released.
    left: Vec<PoolId>,
    cursor: Option<PoolCursor>,
}

impl Replan {
    /// Notes the carriers and rules of a plan. Where they are others than before, pools are released after a while.
    pub(super) fn note(&self, carriers: Vec<String>, rules: String) {
        let mut state = self.lock();
        let plan = Some((carriers, rules));
        if state.plan != plan {
            state.plan = plan;
            state.begins_at = Some(Instant::now() + AFTER);
        }
    }

    /// The next step; `list` lists the pools when it is time to begin.
    fn next(&self, list: impl FnOnce() -> Vec<PoolId>) -> Option<(PoolId, Option<PoolCursor>)> {
        let mut state = self.lock();
        if state.begins_at.is_some_and(|at| at <= Instant::now()) {
            state.begins_at = None;
            state.left = list();
            state.cursor = None;
        }
        Some((*state.left.last()?, state.cursor))
    }

    /// Notes how far a step went: `None`, the pool is through.
    fn stepped(&self, pool: PoolId, cursor: Option<PoolCursor>) {
        let mut state = self.lock();
        if state.left.last() == Some(&pool) {
            state.cursor = cursor;
            if cursor.is_none() {
                state.left.pop();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatch {
    /// Releases one step of what has to be routed anew.
    pub(super) async fn route_anew(&self) -> Result<(), StoreError> {
        let stuck = || {
            let (carriers, pools) = (self.routing.carriers(), self.pools.list());
            let is_stuck = |names: &[String]| !names.iter().any(|name| carriers.works(name));
            let stuck = pools.iter().filter(|pool| is_stuck(&pool.carriers));
            stuck.map(|pool| pool.id).collect()
        };
        let Some((pool, after)) = self.replan.next(stuck) else {
            return Ok(());
        };
        let last = self.store.release_pool(pool, after, STEP).await?;
        self.replan.stepped(pool, last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::{MessageId, Timestamp};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_pool_is_gone_through_once_after_each_change() {
        let pool = |id| PoolId::new(id).expect("not zero");
        let cursor = (
            1,
            Timestamp::UNIX_EPOCH,
            MessageId::new(5).expect("not zero"),
        );
        let replan = Replan::default();
        let next = || replan.next(|| vec![pool(1), pool(2)]);
        assert_eq!(next(), None, "no plan yet");
        replan.note(vec!["a".to_owned()], String::new());
        assert_eq!(next(), None, "carriers may still connect");
        tokio::time::advance(AFTER).await;
        assert_eq!(next(), Some((pool(2), None)));
        replan.stepped(pool(2), Some(cursor));
        assert_eq!(next(), Some((pool(2), Some(cursor))));
        replan.stepped(pool(2), None);
        assert_eq!(next(), Some((pool(1), None)));
        replan.stepped(pool(1), None);
        assert_eq!(next(), None);
        replan.note(vec!["a".to_owned()], String::new());
        tokio::time::advance(AFTER).await;
        assert_eq!(next(), None, "the same plan");
        replan.note(vec!["a".to_owned()], "other".to_owned());
        tokio::time::advance(AFTER).await;
        assert_eq!(next(), Some((pool(2), None)));
    }
}
