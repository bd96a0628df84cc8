//! Route pools: shares of accounts, expiry, new routes, and unreadable rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::delivery::{QueuedMessage, SendResult};
use domain::message::{Holder, Submission};
use domain::ports::{Claimed, Health, PoolClaim, Queue, RoutePool, Settled, WorkStore};
use domain::{AccountId, Code, MessageState, NodeId, Outcome, PoolId, Priority};

use super::binds::carrier_status;
use super::fixture::Database;
use super::sample::{accept, account, message, submission};
use super::steps::{
    HOUR, claim, due, first_result, future, held, join, past, result, settle, state,
};

on_every_store!(
    accounts_share_what_is_claimed_from_a_pool,
    claims_take_turns_where_there_are_many_accounts,
    one_account_alone_is_claimed_in_order,
    attempts_are_counted_but_moves_are_not,
    a_message_that_expires_in_a_pool_has_failed,
    the_pool_of_a_route_is_created_once,
    pools_of_unknown_carriers_are_released,
    a_pool_is_released_in_steps;
    on_both_databases:
    an_unreadable_row_is_set_aside,
);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

async fn pool<S: WorkStore + ?Sized>(store: &Arc<S>, carriers: &[&str]) -> PoolId {
    let pools = store.list_route_pools(&[names(carriers)]).await;
    let pools = pools.expect("answers");
    let found = pools.iter().find(|pool| pool.carriers == names(carriers));
    found.expect("created").id
}

/// Messages of an account that wait in a pool, each due one second after the other.
fn waiting(pool: PoolId, owner: u64, first: u64, count: u64) -> Vec<Submission> {
    let submission = |number: u64| Submission {
        account: account(owner),
        accepted_at: past(i64::try_from(number).expect("small")),
        holder: Holder::Pool(pool),
        ..due(first + number)
    };
    (0..count).map(submission).collect()
}

async fn claim_some<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    pool: PoolId,
    limit: u32,
    after: Option<AccountId>,
) -> Claimed {
    let claim = PoolClaim {
        pool,
        limits: [limit; 3],
        after: [after; 3],
    };
    store
        .claim_due(node, [0; 3], &[claim])
        .await
        .expect("answers")
}

/// The IDs of claimed messages, by account.
fn by_account(messages: &[QueuedMessage]) -> BTreeMap<u64, Vec<u64>> {
    let mut ids: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for queued in messages {
        let of_account = ids.entry(queued.account.get()).or_default();
        of_account.push(queued.id.get());
    }
    ids
}

async fn accounts_share_what_is_claimed_from_a_pool(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a", "b"]).await);
    let older = waiting(pool, 1, 1000, 100).into_iter();
    let older = older.map(|one| Submission {
        accepted_at: one.accepted_at - HOUR,
        ..one
    });
    accept(&store, older.collect()).await;
    accept(&store, waiting(pool, 2, 2000, 3)).await;
    accept(&store, waiting(pool, 3, 3000, 50)).await;
    let claimed = claim_some(&store, node, pool, 30, None).await;
    let range = |first: u64, count: u64| (first..first + count).collect::<Vec<_>>();
    let expected = [
        (1, range(1000, 14)),
        (2, range(2000, 3)),
        (3, range(3000, 13)),
    ];
    assert_eq!(by_account(&claimed.messages), expected.into());
    assert_eq!(claimed.more, [(pool, Priority::Normal)]);
    assert!(
        claimed
            .messages
            .iter()
            .all(|queued| queued.pool == Some(pool))
    );

    let rest = claim_some(&store, node, pool, 500, None).await;
    let expected = [(1, range(1014, 86)), (3, range(3013, 37))];
    assert_eq!(by_account(&rest.messages), expected.into());
    assert!(rest.more.is_empty(), "{:?}", rest.more);
    let nothing = claim_some(&store, node, pool, 500, None).await;
    assert_eq!(nothing, Claimed::default());
}

async fn claims_take_turns_where_there_are_many_accounts(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    for owner in 1..=5 {
        accept(&store, waiting(pool, owner, owner * 100, 3)).await;
    }
    let mut after = None;
    for expected in [[1, 2], [3, 4], [1, 5], [2, 3]] {
        let claimed = claim_some(&store, node, pool, 2, after).await;
        let ids = by_account(&claimed.messages);
        let accounts: Vec<u64> = ids.keys().copied().collect();
        assert_eq!(accounts, expected);
        assert!(!claimed.more.is_empty());
        let last = accounts
            .iter()
            .max_by_key(|id| (Some(account(**id)) <= after, **id));
        after = last.map(|id| account(*id));
    }
}

async fn one_account_alone_is_claimed_in_order(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    accept(&store, waiting(pool, 7, 1, 25)).await;
    for (expected, more) in [((1..11), true), ((11..21), true), ((21..26), false)] {
        let claimed = claim_some(&store, node, pool, 10, Some(account(7))).await;
        let ids: Vec<u64> = claimed.messages.iter().map(|row| row.id.get()).collect();
        assert_eq!(ids, expected.collect::<Vec<_>>());
        assert_eq!(!claimed.more.is_empty(), more);
    }
}

async fn attempts_are_counted_but_moves_are_not(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    accept(&store, vec![held(1, node)]).await;
    let moved = SendResult::Pooled {
        pool,
        account: account(1),
    };
    let mut settled = first_result(1, moved.clone());
    for (sent, from_pool, tries) in [
        (moved.clone(), true, 0),
        (SendResult::Later(past(0)), false, 0),
        (SendResult::Retry(past(0)), false, 1),
        (moved, true, 1),
        (SendResult::Retry(past(0)), false, 2),
    ] {
        settled.sent = sent;
        let stored = settle(&store, node, vec![settled]).await;
        assert_eq!(stored, [Settled::Stored]);
        let claimed = if from_pool {
            claim_some(&store, node, pool, 5, None).await.messages
        } else {
            claim(&store, node).await
        };
        assert_eq!(claimed[0].tries, tries);
        settled = result(&claimed[0], SendResult::Later(past(0)));
    }
    assert_eq!(settled.claim.attempt, 6, "every claim is numbered");
}

async fn a_message_that_expires_in_a_pool_has_failed(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    let pooled = |id, expires_at| Submission {
        expires_at,
        holder: Holder::Pool(pool),
        ..due(id)
    };
    accept(&store, vec![pooled(1, past(9)), pooled(2, future(9))]).await;
    let in_pool = SendResult::Pooled {
        pool,
        account: account(1),
    };
    accept(&store, vec![held(3, node), held(4, node)]).await;
    let mut settlement = first_result(3, in_pool);
    settlement.expires_at = past(8);
    settle(&store, node, vec![settlement]).await;
    let first = store.expire_pooled(node, 1, true).await.expect("answers");
    assert_eq!(first.len(), 1, "no more than the limit");
    assert_eq!(first[0].id, message(3), "the earliest first");
    let report = first[0].callback.as_ref().expect("it is held");
    assert!(
        report.payload.contains("\"status\":2"),
        "{}",
        report.payload
    );
    let second = store.expire_pooled(node, 10, true).await.expect("answers");
    assert_eq!(super::steps::ids(&second), [1]);
    for id in [1, 3] {
        let MessageState::Ended { outcome, .. } = state(&store, id).await else {
            panic!("{id} has not ended");
        };
        assert_eq!(outcome, Outcome::Failed(Code::EXPIRED));
    }
    assert_eq!(state(&store, 2).await, MessageState::Queued);
    assert_eq!(
        claim_some(&store, node, pool, 9, None).await.messages.len(),
        1
    );
}

async fn an_unreadable_row_is_set_aside(database: Database) {
    let store = database.open().await;
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    accept(&store, vec![due(1), due(2), due(3)]).await;
    accept(&store, waiting(pool, 1, 11, 3)).await;
    database
        .execute("UPDATE message SET coding = 99 WHERE id IN (2, 12)")
        .await;
    database.execute("DELETE FROM message WHERE id = 3").await;
    let all = PoolClaim {
        pool,
        limits: [9; 3],
        after: [None; 3],
    };
    let claimed = store
        .claim_due(node, [9; 3], &[all])
        .await
        .expect("answers");
    let ids: Vec<u64> = claimed.messages.iter().map(|row| row.id.get()).collect();
    assert_eq!(ids, [1, 11, 13]);
    let mut set_aside: Vec<i64> = claimed.set_aside.iter().map(|row| row.id).collect();
    set_aside.sort_unstable();
    assert_eq!(set_aside, [2, 3, 12]);
    assert!(claimed.set_aside[0].what.contains("coding"), "{claimed:?}");

    assert!(claim(&store, node).await.is_empty());
    let rest = claim_some(&store, node, pool, 9, None).await;
    assert_eq!(rest, Claimed::default());
    let queues = store.list_queues().await.expect("answers");
    let depth = queues.iter().find(|depth| depth.queue == Queue::SetAside);
    let depth = depth.expect("listed");
    assert_eq!((depth.count.0, depth.first_at), (3, Some(past(0))));
    let expired = store.expire_pooled(node, 9, true).await.expect("answers");
    assert!(expired.is_empty());
    let settled = settle(
        &store,
        node,
        vec![first_result(2, SendResult::Later(past(0)))],
    )
    .await;
    assert_eq!(settled, [Settled::Stale], "this node does not hold it");
}

async fn the_pool_of_a_route_is_created_once(store: Arc<dyn WorkStore>) {
    let (first, other) = (pool(&store, &["a", "b"]).await, pool(&store, &["b"]).await);
    assert_ne!(first, other);
    assert_eq!(pool(&store, &["a", "b"]).await, first);
    let node = join(&store).await;
    let carriers = super::binds::share(&store, node, &[super::binds::demand("b", 0)]).await;
    assert_ne!(carriers.shares[0].pool, other, "a carrier has its own pool");
    let listed = store.list_route_pools(&[]).await.expect("answers");
    let expected = [(first, &["a", "b"][..]), (other, &["b"])];
    let expected = expected.map(|(id, carriers)| RoutePool {
        id,
        carriers: names(carriers),
    });
    assert_eq!(listed, expected);
}

async fn pools_of_unknown_carriers_are_released(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let statuses = [carrier_status("theirs", Health::Down)];
    store
        .replace_carrier_statuses(other, &statuses)
        .await
        .expect("stored");
    let known = names(&["mine", "down"]);
    for (first, carriers, released) in [
        (100, &["mine", "theirs"][..], 0),
        (200, &["down"], 0),
        (300, &["mine", "gone"], 2),
    ] {
        let pool = pool(&store, carriers).await;
        accept(&store, waiting(pool, 1, first, 2)).await;
        let found = store.release_pools(node, &known, 100).await;
        assert_eq!(found.expect("answers"), released, "{carriers:?}");
        let waiting = claim_some(&store, node, pool, 9, None).await.messages.len();
        assert_eq!(waiting as u64, 2 - released);
    }
    assert_eq!(claim(&store, node).await.len(), 2);
}

async fn a_pool_is_released_in_steps(store: Arc<dyn WorkStore>) {
    let (node, pool) = (join(&store).await, pool(&store, &["a"]).await);
    for (priority, first) in Priority::ALL.into_iter().zip([1, 11, 21]) {
        let one = Submission {
            priority,
            accepted_at: past(0),
            expires_at: future(0),
            holder: Holder::Pool(pool),
            ..submission(first, 3)
        };
        accept(&store, vec![one]).await;
    }
    let mut after = None;
    for expected in [4, 8, 9] {
        let last = store.release_pool(pool, after, 4).await.expect("answers");
        assert!(last > after);
        after = last;
        let left = claim_some(&store, node, pool, 100, None).await.messages;
        assert_eq!(left.len(), 9 - expected);
        let again = left.iter().map(|queued| {
            let sent = SendResult::Pooled {
                pool,
                account: account(1),
            };
            result(queued, sent)
        });
        settle(&store, node, again.collect()).await;
    }
    let last = store.release_pool(pool, after, 4).await.expect("answers");
    assert_eq!(last, None);
    assert_eq!(claim(&store, node).await.len(), 9);
}
