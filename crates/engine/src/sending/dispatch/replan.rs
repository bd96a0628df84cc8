//! Routes messages in pools again after a change of the plan.
//!
//! A message is routed when it is claimed, so a pool with a working carrier empties by itself, by the current rules. If
//! none of its carriers works, changed rules may name another carrier. So some time after a change of rules or
//! carriers, and after a start, such pools are released once, step by step: messages that still belong there come back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::PoolId;
use domain::ports::{PoolCursor, StoreError};
use tokio::time::Instant;

use super::Dispatch;

/// How long carriers have to connect.
const DELAY: Duration = Duration::from_secs(30);
/// Maximum number of messages released in one step.
const STEP: u32 = 5_000;

/// The pools that are still to be released.
#[derive(Default)]
pub(super) struct Replan(Mutex<State>);

#[derive(Default)]
struct State {
    /// The carriers and rules in force.
    plan: Option<(Vec<String>, String)>,
    begins_at: Option<Instant>,
    /// The remaining pools, and how far the last one has been released.
    left: Vec<PoolId>,
    cursor: Option<PoolCursor>,
}

impl Replan {
    /// Sets the plan in force. If it has changed, pools are released after a while.
    pub(super) fn set_plan(&self, carriers: Vec<String>, rules: String) {
        let mut state = self.lock();
        let plan = Some((carriers, rules));
        if state.plan != plan {
            state.plan = plan;
            state.begins_at = Some(Instant::now() + DELAY);
        }
    }

    /// The next step. `list` lists the pools when it is time to begin.
    fn next(&self, list: impl FnOnce() -> Vec<PoolId>) -> Option<(PoolId, Option<PoolCursor>)> {
        let mut state = self.lock();
        if state.begins_at.is_some_and(|at| at <= Instant::now()) {
            state.begins_at = None;
            state.left = list();
            state.cursor = None;
        }
        Some((*state.left.last()?, state.cursor))
    }

    /// Records how far a step went; `None` if the pool is finished.
    fn record_step(&self, pool: PoolId, cursor: Option<PoolCursor>) {
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
    /// Releases one step of the messages that must be routed again.
    pub(super) async fn reroute_stuck(&self) -> Result<(), StoreError> {
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
        self.replan.record_step(pool, last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::{MessageId, Timestamp};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_pool_is_released_once_after_each_change() {
        let pool = |id| PoolId::new(id).expect("not zero");
        let cursor = (
            1,
            Timestamp::UNIX_EPOCH,
            MessageId::new(5).expect("not zero"),
        );
        let replan = Replan::default();
        let next = || replan.next(|| vec![pool(1), pool(2)]);
        assert_eq!(next(), None, "no plan yet");
        replan.set_plan(vec!["a".to_owned()], String::new());
        assert_eq!(next(), None, "carriers may still connect");
        tokio::time::advance(DELAY).await;
        assert_eq!(next(), Some((pool(2), None)));
        replan.record_step(pool(2), Some(cursor));
        assert_eq!(next(), Some((pool(2), Some(cursor))));
        replan.record_step(pool(2), None);
        assert_eq!(next(), Some((pool(1), None)));
        replan.record_step(pool(1), None);
        assert_eq!(next(), None);
        replan.set_plan(vec!["a".to_owned()], String::new());
        tokio::time::advance(DELAY).await;
        assert_eq!(next(), None, "the same plan");
        replan.set_plan(vec!["a".to_owned()], "other".to_owned());
        tokio::time::advance(DELAY).await;
        assert_eq!(next(), Some((pool(2), None)));
    }
}
