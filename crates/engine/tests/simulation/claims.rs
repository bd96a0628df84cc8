//! Claiming messages: due ones that no node holds, and those in pools.

use domain::delivery::{Claim, QueuedMessage};
use domain::ports::{Claimed, PoolClaim};
use domain::{NodeId, PoolId, Timestamp};

use super::model::{Model, NOBODY, Owner};

impl Model {
    pub(super) fn claim_due(
        &mut self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
        now: Timestamp,
    ) -> Claimed {
        let mut claimed = Claimed::default();
        let mut due: Vec<_> = self
            .queue
            .iter()
            .map(|(id, row)| (row.due_at, *id))
            .collect();
        due.sort_unstable();
        let nobody = (Owner::Node(NOBODY), None, limits);
        let pools = pools.iter();
        let pools = pools.map(|claim| {
            (
                Owner::Pool(claim.pool.get()),
                Some(claim.pool),
                claim.limits,
            )
        });
        for (owner, pool, mut left) in std::iter::once(nobody).chain(pools) {
            for (due_at, id) in &due {
                let priority = self.messages[id].queued.priority;
                let lane = usize::try_from(priority.lane()).expect("a lane");
                let is_due = pool.is_some() || *due_at <= now;
                if self.queue[id].owner != owner || !is_due {
                    continue;
                }
                if left[lane] > 0 {
                    left[lane] -= 1;
                    claimed.messages.push(self.claim(node, *id, pool));
                } else if let Some(pool) = pool
                    && !claimed.more.contains(&(pool, priority))
                {
                    claimed.more.push((pool, priority));
                }
            }
        }
        claimed
    }

    fn claim(&mut self, node: NodeId, id: u64, pool: Option<PoolId>) -> QueuedMessage {
        let entry = self.queue.get_mut(&id).expect("queued");
        entry.owner = Owner::Node(node.get());
        entry.attempt += 1;
        QueuedMessage {
            claim: Claim {
                due_at: entry.due_at,
                attempt: entry.attempt,
            },
            pool,
            ..self.messages[&id].queued.clone()
        }
    }
}
