//! Route pools: messages that only a node with a link to a carrier can send.

use std::sync::Arc;

use domain::delivery::SendResult;
use domain::message::{Holder, Submission};
use domain::ports::{Health, PoolClaim, Queue, Settled, Store, WorkStore};
use domain::{NodeId, PoolId, Priority};

use super::binds::{carrier_status, demand, share};
use super::sample::{accept, account, submission};
use super::steps::{claim, due, first_result, future, held, join, past, settle, taken};

on_every_store!(
    a_message_accepted_into_a_pool_is_claimed_from_it,
    a_message_in_a_pool_keeps_its_position_and_attempt,
    limits_hold_for_each_pool_and_lane,
    a_stale_claim_pools_nothing,
    a_pool_without_a_working_carrier_is_released;
    on_both_stores:
    messages_in_pools_are_shown_to_operators,
);

/// The pools of two carriers, with a node.
async fn pools<S: WorkStore + ?Sized>(store: &Arc<S>) -> (NodeId, PoolId, PoolId) {
    let node = join(store).await;
    let shared = share(store, node, &[demand("a", 1), demand("b", 0)]).await;
    (node, shared.shares[0].pool, shared.shares[1].pool)
}

fn pooled(id: u64, pool: PoolId) -> Submission {
    Submission {
        holder: Holder::Pool(pool),
        ..due(id)
    }
}

async fn claim_pool<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    pool: PoolId,
) -> Vec<domain::delivery::QueuedMessage> {
    let claimed = store.claim_due(node, [0; 3], &[all_of(pool)]).await;
    claimed.expect("answers").messages
}

/// A claim with a limit for each lane.
fn some_of(pool: PoolId, limits: [u32; 3]) -> PoolClaim {
    PoolClaim {
        pool,
        limits,
        after: [None; 3],
    }
}

fn all_of(pool: PoolId) -> PoolClaim {
    some_of(pool, [100; 3])
}

fn in_pool(pool: PoolId) -> SendResult {
    SendResult::Pooled {
        pool,
        account: account(1),
    }
}

async fn a_message_accepted_into_a_pool_is_claimed_from_it(store: Arc<dyn WorkStore>) {
    let (node, a, b) = pools(&store).await;
    accept(&store, vec![pooled(1, a), pooled(2, b), due(3)]).await;
    let [free] = &claim(&store, node).await[..] else {
        panic!("one is in no pool");
    };
    assert_eq!((free.id.get(), free.pool), (3, None));
    let [queued] = &claim_pool(&store, node, a).await[..] else {
        panic!("one is in the pool");
    };
    assert_eq!((queued.id.get(), queued.pool), (1, Some(a)));
    assert_eq!(queued.claim.attempt, 1);
    assert!(claim_pool(&store, node, a).await.is_empty());
    assert_eq!(claim_pool(&store, node, b).await.len(), 1);
    let settled = settle(&store, node, vec![first_result(1, taken(&["x"]))]).await;
    assert_eq!(settled, [Settled::Stored]);
}

async fn a_message_in_a_pool_keeps_its_position_and_attempt(store: Arc<dyn WorkStore>) {
    let (node, pool, _) = pools(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let settled = settle(&store, node, vec![first_result(1, in_pool(pool))]).await;
    assert_eq!(settled, [Settled::Stored]);
    assert!(claim(&store, node).await.is_empty());
    let claimed = claim_pool(&store, node, pool).await;
    assert_eq!(claimed[0].claim.attempt, 2);
    assert_eq!(claimed[0].claim.due_at, past(0));
}

async fn limits_hold_for_each_pool_and_lane(store: Arc<dyn WorkStore>) {
    let (node, a, b) = pools(&store).await;
    for (first, holder) in [
        (1, Holder::Nobody),
        (101, Holder::Pool(a)),
        (201, Holder::Pool(b)),
    ] {
        for (lane, priority) in (0..).zip(Priority::ALL) {
            let batch = Submission {
                accepted_at: past(0),
                expires_at: future(0),
                holder,
                priority,
                ..submission(first + lane * 10, 5)
            };
            accept(&store, vec![batch]).await;
        }
    }
    let limits = [some_of(a, [1, 2, 3]), some_of(b, [0, 0, 4])];
    let claimed = store.claim_due(node, [3, 0, 1], &limits).await;
    let claimed = claimed.expect("answers").messages;
    let mut counts = std::collections::BTreeMap::new();
    for queued in &claimed {
        *counts
            .entry((queued.pool, queued.priority.lane()))
            .or_insert(0) += 1;
    }
    let expected = [
        ((None, 0), 3),
        ((None, 2), 1),
        ((Some(a), 0), 1),
        ((Some(a), 1), 2),
        ((Some(a), 2), 3),
        ((Some(b), 2), 4),
    ];
    assert_eq!(counts, expected.into());
    let lanes = claimed.iter().map(|queued| queued.priority.lane());
    assert!(lanes.is_sorted(), "the most urgent are first");
}

async fn a_stale_claim_pools_nothing(store: Arc<dyn WorkStore>) {
    let (node, pool, _) = pools(&store).await;
    let other = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let stale = settle(&store, other, vec![first_result(1, in_pool(pool))]).await;
    assert_eq!(stale, [Settled::Stale]);
    assert!(claim_pool(&store, other, pool).await.is_empty());
}

async fn a_pool_without_a_working_carrier_is_released(store: Arc<dyn WorkStore>) {
    let (node, pool, _) = pools(&store).await;
    let other = join(&store).await;
    let store_status = async |who, name, health| {
        let statuses = [carrier_status(name, health)];
        store
            .replace_carrier_statuses(who, &statuses)
            .await
            .expect("stored");
    };
    for (id, mine, others, expected) in [
        (1, Health::Up, Health::Up, 0),
        (2, Health::Down, Health::Strained, 0),
        (3, Health::Down, Health::Down, 1),
    ] {
        store_status(node, "a", mine).await;
        store_status(other, "a", others).await;
        accept(&store, vec![pooled(id, pool)]).await;
        let released = store.release_pools(node, &[], 100).await.expect("answers");
        assert_eq!(released, expected, "{mine:?} {others:?}");
        let (from_pool, free) = (
            claim_pool(&store, node, pool).await,
            claim(&store, node).await,
        );
        assert_eq!(
            (from_pool.len() as u64, free.len() as u64),
            (1 - expected, expected)
        );
    }
    store_status(other, "b", Health::Up).await;
    accept(&store, vec![pooled(4, pool), pooled(5, pool)]).await;
    let released = store.release_pools(node, &[], 1).await.expect("answers");
    assert_eq!(released, 1, "no more than the limit");
    store_status(node, "a", Health::Up).await;
    store.leave(other).await.expect("answers");
    let released = store.release_pools(node, &[], 100).await.expect("answers");
    assert_eq!(released, 1, "a single node needs no pool");
}

async fn messages_in_pools_are_shown_to_operators(store: Arc<dyn Store>) {
    let (_, pool, _) = pools(&store).await;
    accept(&store, vec![pooled(1, pool), due(2)]).await;
    let queues = store.list_queues().await.expect("answers");
    let normal = queues
        .iter()
        .find(|depth| depth.queue == Queue::Due(Priority::Normal))
        .expect("listed");
    assert_eq!((normal.count.0, normal.first_at), (2, Some(past(0))));
    let overdue = store.list_overdue(super::steps::HOUR, 10).await;
    let overdue = overdue.expect("answers");
    assert_eq!(overdue.len(), 2);
    assert!(overdue.iter().all(|overdue| overdue.node.is_none()));
    let detail = store
        .find_message_detail(None, overdue[0].id)
        .await
        .expect("answers")
        .expect("it is there");
    assert_eq!(detail.due_at, Some(past(0)));
}
