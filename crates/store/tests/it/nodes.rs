//! The rows that nodes hold, and what happens to them when a node leaves or dies.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::clock::SystemClock;
use domain::message::Submission;
use domain::ports::{HeartbeatResult, NodeInfo, Settled, Store};
use domain::{Clock, NodeId};
use jiff::SignedDuration;

use super::fixture::Database;
use super::sample::{accept, submission};
use super::steps::{
    HOUR, card, claim, claim_callbacks, deliver, first_result, future, held, join, join_for, past,
    renew_heartbeat, settle, taken,
};

on_both_databases!(
    ids_are_never_given_out_twice,
    what_a_dead_node_held_is_given_back,
    what_a_node_holds_when_it_leaves_is_given_back,
    a_node_that_lives_keeps_what_it_holds,
    what_a_node_stored_after_it_was_given_up_is_given_back,
    two_nodes_that_claim_at_once_share_the_work,
    a_node_that_does_not_work_is_not_taken_for_dead_while_it_lives,
    the_database_tells_its_time,
);

on_a_serializable_database!(two_nodes_that_claim_at_once_share_the_work);

on_a_pooled_database!(
    what_a_dead_node_held_is_given_back,
    two_nodes_that_claim_at_once_share_the_work,
);

/// How long a node lives that has died already.
const OVER: SignedDuration = SignedDuration::from_secs(-1);

async fn ids_are_never_given_out_twice(database: Database) {
    let store = database.open().await;
    let (first, second) = (join(&store).await, join(&store).await);
    assert!(first < second);
    for node in [first, second] {
        store.leave(node).await.expect("answers");
    }
    drop(store);
    let third = join(&database.open().await).await;
    assert!(second < third, "{third}");
}

/// Here both clocks are this machine's.
async fn the_database_tells_its_time(database: Database) {
    let store = database.open().await;
    let before = SystemClock.now();
    let told = store.now().await.expect("answers");
    let after = SystemClock.now();
    let rounding = SignedDuration::from_millis(1);
    assert!(
        before - rounding <= told && told <= after,
        "{before} {told} {after}"
    );
}

/// Lets a node hold a message and a report.
async fn hold(store: &Arc<dyn Store>, node: NodeId, id: u64) {
    accept(store, vec![held(id, node)]).await;
    deliver(store, node, id + 1).await;
}

/// What a node can claim: how many messages, how many reports.
async fn claimable(store: &Arc<dyn Store>, node: NodeId) -> (usize, usize) {
    let messages = claim(store, node).await;
    let callbacks = claim_callbacks(store, node).await;
    (messages.len(), callbacks.len())
}

async fn what_a_dead_node_held_is_given_back(database: Database) {
    let store = database.open().await;
    let dead = join_for(&store, OVER).await;
    hold(&store, dead, 1).await;
    let node = join(&store).await;
    assert_eq!(claimable(&store, node).await, (0, 0));
    let given_back = store.give_up_dead(node).await.expect("answers");
    assert_eq!(given_back, 2);
    assert_eq!(store.give_up_dead(node).await.expect("answers"), 0);
    assert_eq!(
        renew_heartbeat(&store, dead).await,
        HeartbeatResult::GivenUp
    );
    assert_eq!(renew_heartbeat(&store, node).await, HeartbeatResult::Alive);
    let stale = settle(&store, dead, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(stale, [Settled::Stale]);
    let messages = claim(&store, node).await;
    assert_eq!(messages[0].claim.attempt, 2);
    assert_eq!(claim_callbacks(&store, node).await.len(), 1);
}

/// On `SQLite` nobody else lives.
#[tokio::test]
async fn the_dead_between_those_that_live_are_found() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let mut alive = Vec::new();
    for place in 0..7 {
        let lives = place % 3 == 2;
        let lifetime = if lives { HOUR } else { OVER };
        let node = join_for(&store, lifetime).await;
        hold(&store, node, 1 + place * 10).await;
        alive.extend(lives.then_some(node));
    }
    // A message and a report of each of five: two before the first that lives, two between, one behind.
    let given_back = store.give_up_dead(alive[0]).await.expect("answers");
    assert_eq!(given_back, 10);
    assert_eq!(claimable(&store, alive[1]).await, (5, 5));
    assert_eq!(store.give_up_dead(alive[1]).await.expect("answers"), 0);
}

async fn what_a_node_holds_when_it_leaves_is_given_back(database: Database) {
    let store = database.open().await;
    let (leaving, node) = (join(&store).await, join(&store).await);
    hold(&store, leaving, 1).await;
    hold(&store, node, 11).await;
    store.leave(leaving).await.expect("answers");
    assert_eq!(
        renew_heartbeat(&store, leaving).await,
        HeartbeatResult::GivenUp
    );
    assert_eq!(claimable(&store, node).await, (1, 1));
}

/// On `SQLite` only one service works at a time, so there every other node is dead.
async fn a_node_that_lives_keeps_what_it_holds(database: Database) {
    let store = database.open().await;
    let (other, node) = (join(&store).await, join(&store).await);
    hold(&store, other, 1).await;
    hold(&store, node, 11).await;
    let given_back = store.give_up_dead(node).await.expect("answers");
    let expected = match &database {
        Database::Sqlite(_) => 2,
        Database::Postgres(_) => 0,
    };
    assert_eq!(given_back, expected);
    let half = usize::try_from(expected / 2).expect("small");
    assert_eq!(claimable(&store, node).await, (half, half));
}

async fn what_a_node_stored_after_it_was_given_up_is_given_back(database: Database) {
    let store = database.open().await;
    let frozen = join_for(&store, OVER).await;
    let node = join(&store).await;
    assert_eq!(store.give_up_dead(node).await.expect("answers"), 0);
    hold(&store, frozen, 1).await;
    assert_eq!(store.give_up_dead(node).await.expect("answers"), 2);
    assert_eq!(claimable(&store, node).await, (1, 1));
}

async fn two_nodes_that_claim_at_once_share_the_work(database: Database) {
    let stores = [database.open().await, database.open().await];
    let batch = (0..40).map(|n| Submission {
        accepted_at: past(0),
        expires_at: future(0),
        ..submission(1 + n * 10, 10)
    });
    accept(&stores[0], batch.collect()).await;
    let work = |store: Arc<dyn Store>| async move {
        let node = join(&store).await;
        let mut mine = Vec::new();
        loop {
            let claimed = store.claim_due(node, [7; 3], &[]).await;
            let claimed = claimed.expect("answers").messages;
            if claimed.is_empty() {
                return mine;
            }
            mine.extend(claimed.iter().map(|queued| queued.id.get()));
        }
    };
    let [first, second] = stores;
    let (first, second) = tokio::join!(tokio::spawn(work(first)), tokio::spawn(work(second)));
    let (first, second) = (first.expect("no panic"), second.expect("no panic"));
    let all: BTreeSet<u64> = first.iter().chain(&second).copied().collect();
    assert_eq!(all.len(), 400, "each is claimed");
    assert_eq!(first.len() + second.len(), 400, "each is claimed once");
}

/// On `SQLite` too: beside the one that works there may be others that only answer.
async fn a_node_that_does_not_work_is_not_taken_for_dead_while_it_lives(database: Database) {
    let store = database.open().await;
    let idle = NodeInfo {
        works: false,
        ..card()
    };
    let idle_for = async |lifetime| {
        let joined = store.join(&idle, SignedDuration::ZERO, lifetime).await;
        joined.expect("joins")
    };
    let (living, dead) = (idle_for(HOUR).await, idle_for(OVER).await);
    let node = join(&store).await;
    store.give_up_dead(node).await.expect("answers");
    for (id, expected) in [
        (living, HeartbeatResult::Alive),
        (dead, HeartbeatResult::GivenUp),
        (node, HeartbeatResult::Alive),
    ] {
        assert_eq!(renew_heartbeat(&store, id).await, expected, "{id}");
    }
}
