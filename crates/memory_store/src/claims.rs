//! Claiming messages: due ones that no node holds, and those in pools.

use std::collections::BTreeMap;

use domain::delivery::{Claim, QueuedMessage};
use domain::ports::{Claimed, PoolClaim};
use domain::{AccountId, NodeId, PoolId, Priority, Timestamp};

use crate::model::{Model, NOBODY, Owner};

impl Model {
    pub(crate) fn claim_due(
        &mut self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
        now: Timestamp,
    ) -> Claimed {
        let mut claimed = Claimed::default();
        for (lane, priority) in Priority::ALL.into_iter().enumerate() {
            let due = self.list_waiting(Owner::Node(NOBODY), priority, now);
            for id in due.into_iter().take(limits[lane] as usize) {
                claimed.messages.push(self.claim(node, id, None));
            }
            for one in pools {
                let limit = one.limits[lane] as usize;
                let owner = Owner::Pool(one.pool.get());
                let waiting = self.list_waiting(owner, priority, Timestamp::MAX);
                if waiting.len() > limit {
                    claimed.more.push((one.pool, priority));
                }
                let in_turn = self.take_turns(waiting, one.after[lane]);
                for id in in_turn.into_iter().take(limit) {
                    claimed.messages.push(self.claim(node, id, Some(one.pool)));
                }
            }
        }
        claimed
    }

    /// The messages of one owner and lane that are due, the earliest first.
    fn list_waiting(&self, owner: Owner, priority: Priority, until: Timestamp) -> Vec<u64> {
        let waiting = self.queue.iter().filter(|(id, entry)| {
            let is_in_lane = self.messages[id].queued.priority == priority;
            is_in_lane && entry.owner == owner && entry.due_at <= until
        });
        let mut waiting: Vec<_> = waiting.map(|(id, entry)| (entry.due_at, *id)).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, id)| id).collect()
    }

    /// Sorts messages so that accounts take turns, from the account after `after` on.
    fn take_turns(&self, waiting: Vec<u64>, after: Option<AccountId>) -> Vec<u64> {
        let mut turns: BTreeMap<AccountId, u32> = BTreeMap::new();
        let turn = |id: u64| {
            let account = self.messages[&id].queued.account;
            let turn = turns.entry(account).or_default();
            *turn += 1;
            (*turn, Some(account) <= after, account, id)
        };
        let mut order: Vec<_> = waiting.into_iter().map(turn).collect();
        order.sort_unstable();
        order.into_iter().map(|(.., id)| id).collect()
    }

    fn claim(&mut self, node: NodeId, id: u64, pool: Option<PoolId>) -> QueuedMessage {
        let entry = self.queue.get_mut(&id).expect("queued");
        entry.owner = Owner::Node(node.get());
        entry.attempt += 1;
        let claim = Claim {
            due_at: entry.due_at,
            attempt: entry.attempt,
        };
        let row = self.row(id);
        row.is_scheduled = false;
        QueuedMessage {
            claim,
            pool,
            ..row.queued.clone()
        }
    }
}
