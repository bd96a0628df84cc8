//! The rows that nodes hold, and what happens to them when a node leaves or dies.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::message::Submission;
use domain::ports::{HeartbeatResult, NodeInfo, Settled, Store, WorkStore};
use domain::{Clock, NodeId};
use engine::clock::SystemClock;
use jiff::SignedDuration;

use super::fixture::Database;
use super::sample::{accept, submission};
use super::steps::{
    HOUR, claim, claim_callbacks, deliver, first_result, future, held, info, join, join_for, past,
    renew_heartbeat, settle, taken,
};

on_every_store!(
    rows_of_a_dead_node_are_released,
    rows_of_a_leaving_node_are_released,
    rows_stored_after_removal_are_released,
    a_living_node_that_is_no_worker_is_not_removed,
    now_is_the_time_of_the_database;
    on_both_databases:
    node_ids_are_never_reused,
    a_living_node_keeps_its_rows,
    two_nodes_that_claim_at_once_share_the_work;
    not_on_sqlite:
    dead_nodes_between_living_ones_are_found,
);

on_a_serializable_database!(two_nodes_that_claim_at_once_share_the_work);

on_a_pooled_database!(
    two_nodes_that_claim_at_once_share_the_work;
    with_a_store: rows_of_a_dead_node_are_released
);

/// The lifetime of a node that is dead already.
const DEAD: SignedDuration = SignedDuration::from_secs(-1);

async fn node_ids_are_never_reused(database: Database) {
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

/// In the tests, both clocks are those of this machine.
async fn now_is_the_time_of_the_database(store: Arc<dyn WorkStore>) {
    let before = SystemClock.now();
    let now = store.now().await.expect("answers");
    let after = SystemClock.now();
    let rounding = SignedDuration::from_millis(1);
    assert!(
        before - rounding <= now && now <= after,
        "{before} {now} {after}"
    );
}

/// Lets a node hold a message and a report.
async fn hold<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId, id: u64) {
    accept(store, vec![held(id, node)]).await;
    deliver(store, node, id + 1).await;
}

/// How many messages and reports a node can claim.
async fn claimable<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId) -> (usize, usize) {
    let messages = claim(store, node).await;
    let callbacks = claim_callbacks(store, node).await;
    (messages.len(), callbacks.len())
}

async fn rows_of_a_dead_node_are_released(store: Arc<dyn WorkStore>) {
    let dead = join_for(&store, DEAD).await;
    hold(&store, dead, 1).await;
    let node = join(&store).await;
    assert_eq!(claimable(&store, node).await, (0, 0));
    let released = store.remove_dead_nodes(node).await.expect("answers");
    assert_eq!(released, 2);
    assert_eq!(store.remove_dead_nodes(node).await.expect("answers"), 0);
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

/// Not on `SQLite`, where every other node is dead.
async fn dead_nodes_between_living_ones_are_found(store: Arc<dyn WorkStore>) {
    let mut alive = Vec::new();
    for index in 0..7 {
        let is_alive = index % 3 == 2;
        let lifetime = if is_alive { HOUR } else { DEAD };
        let node = join_for(&store, lifetime).await;
        hold(&store, node, 1 + index * 10).await;
        alive.extend(is_alive.then_some(node));
    }
    // A message and a report of each of the five dead nodes: two before, two between and one after the living ones.
    let released = store.remove_dead_nodes(alive[0]).await.expect("answers");
    assert_eq!(released, 10);
    assert_eq!(claimable(&store, alive[1]).await, (5, 5));
    assert_eq!(store.remove_dead_nodes(alive[1]).await.expect("answers"), 0);
}

async fn rows_of_a_leaving_node_are_released(store: Arc<dyn WorkStore>) {
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
async fn a_living_node_keeps_its_rows(database: Database) {
    let store = database.open().await;
    let (other, node) = (join(&store).await, join(&store).await);
    hold(&store, other, 1).await;
    hold(&store, node, 11).await;
    let released = store.remove_dead_nodes(node).await.expect("answers");
    let expected = match &database {
        Database::Sqlite(_) => 2,
        Database::Postgres(_) => 0,
    };
    assert_eq!(released, expected);
    let each = usize::try_from(expected / 2).expect("small");
    assert_eq!(claimable(&store, node).await, (each, each));
}

async fn rows_stored_after_removal_are_released(store: Arc<dyn WorkStore>) {
    let stalled = join_for(&store, DEAD).await;
    let node = join(&store).await;
    assert_eq!(store.remove_dead_nodes(node).await.expect("answers"), 0);
    hold(&store, stalled, 1).await;
    assert_eq!(store.remove_dead_nodes(node).await.expect("answers"), 2);
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
    assert_eq!(first.len() + second.len(), 400, "none is claimed twice");
}

/// Also on `SQLite`: next to the one that works, there may be others that only serve requests.
async fn a_living_node_that_is_no_worker_is_not_removed(store: Arc<dyn WorkStore>) {
    let idle = NodeInfo {
        works: false,
        ..info()
    };
    let idle_for = async |lifetime| {
        let joined = store.join(&idle, SignedDuration::ZERO, lifetime).await;
        joined.expect("joins")
    };
    let (living, dead) = (idle_for(HOUR).await, idle_for(DEAD).await);
    let node = join(&store).await;
    store.remove_dead_nodes(node).await.expect("answers");
    for (id, expected) in [
        (living, HeartbeatResult::Alive),
        (dead, HeartbeatResult::GivenUp),
        (node, HeartbeatResult::Alive),
    ] {
        assert_eq!(renew_heartbeat(&store, id).await, expected, "{id}");
    }
}
