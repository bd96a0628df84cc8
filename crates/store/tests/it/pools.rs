//! Route pools: messages that only a node with a link to a carrier can send.

use std::sync::Arc;

use domain::delivery::SendResult;
use domain::message::{Holder, Submission};
use domain::ports::{Health, PoolClaim, Queue, Settled, Store};
use domain::{NodeId, PoolId, Priority};

use super::binds::{demand, noted, share};
use super::sample::{accept, account, submission};
use super::steps::{claim, due, first_result, future, held, join, past, settle, taken};

on_both_stores!(
    what_is_accepted_into_a_pool_is_taken_by_who_asks_for_it,
    what_is_handed_on_keeps_its_place_and_counts_as_a_claim,
    limits_hold_for_each_pool_and_lane,
    a_claim_that_is_over_hands_nothing_on,
    a_pool_that_nobody_serves_is_given_back,
    what_waits_in_a_pool_is_seen_by_operators,
);

/// The pools of two carriers, with a node.
async fn pools(store: &Arc<dyn Store>) -> (NodeId, PoolId, PoolId) {
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

async fn claim_pool(
    store: &Arc<dyn Store>,
    node: NodeId,
    pool: PoolId,
) -> Vec<domain::delivery::QueuedMessage> {
    let claimed = store.claim_due(node, [0; 3], &[all_of(pool)]).await;
    claimed.expect("answers").messages
}

/// A claim of so many of each lane.
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

async fn what_is_accepted_into_a_pool_is_taken_by_who_asks_for_it(store: Arc<dyn Store>) {
    let (node, a, b) = pools(&store).await;
    accept(&store, vec![pooled(1, a), pooled(2, b), due(3)]).await;
    let [free] = &claim(&store, node).await[..] else {
        panic!("one is nobody's");
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

async fn what_is_handed_on_keeps_its_place_and_counts_as_a_claim(store: Arc<dyn Store>) {
    let (node, pool, _) = pools(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let handed_on = settle(&store, node, vec![first_result(1, in_pool(pool))]).await;
    assert_eq!(handed_on, [Settled::Stored]);
    assert!(claim(&store, node).await.is_empty());
    let claimed = claim_pool(&store, node, pool).await;
    assert_eq!(claimed[0].claim.attempt, 2);
    assert_eq!(claimed[0].claim.due_at, past(0));
}

async fn limits_hold_for_each_pool_and_lane(store: Arc<dyn Store>) {
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
    assert!(lanes.is_sorted(), "the most urgent first");
}

async fn a_claim_that_is_over_hands_nothing_on(store: Arc<dyn Store>) {
    let (node, pool, _) = pools(&store).await;
    let other = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let stale = settle(&store, other, vec![first_result(1, in_pool(pool))]).await;
    assert_eq!(stale, [Settled::Stale]);
    assert!(claim_pool(&store, other, pool).await.is_empty());
}

async fn a_pool_that_nobody_serves_is_given_back(store: Arc<dyn Store>) {
    let (node, pool, _) = pools(&store).await;
    let other = join(&store).await;
    let write_down = async |who, name, health| {
        let notes = [noted(name, health)];
        store.note_carriers(who, &notes).await.expect("noted");
    };
    for (id, mine, others, expected) in [
        (1, Health::Up, Health::Up, 0),
        (2, Health::Down, Health::Strained, 0),
        (3, Health::Down, Health::Down, 1),
    ] {
        write_down(node, "a", mine).await;
        write_down(other, "a", others).await;
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
    write_down(other, "b", Health::Up).await;
    accept(&store, vec![pooled(4, pool), pooled(5, pool)]).await;
    let released = store.release_pools(node, &[], 1).await.expect("answers");
    assert_eq!(released, 1, "no more than was asked for");
    write_down(node, "a", Health::Up).await;
    store.leave(other).await.expect("answers");
    let released = store.release_pools(node, &[], 100).await.expect("answers");
    assert_eq!(released, 1, "one node alone needs no pool");
}

async fn what_waits_in_a_pool_is_seen_by_operators(store: Arc<dyn Store>) {
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
    let told = store
        .find_story(None, overdue[0].id)
        .await
        .expect("answers")
        .expect("there");
    assert_eq!(told.due_at, Some(past(0)));
}
