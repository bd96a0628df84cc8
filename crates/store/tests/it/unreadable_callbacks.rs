//! Callbacks with unreadable rows: they are set aside, and the others are processed.

use std::sync::Arc;

use domain::delivery::{CallbackNext, CallbackSettlement};
use domain::ports::{CallbackFilter, CallbackState, ClaimedCallbacks, Store};
use domain::{NodeId, ReceiverId};

use super::fixture::Database;
use super::receiver_queues::{deliver_to, ids, queue_up, receiver_of};
use super::sample::EVERYTHING;
use super::steps::{attempt, attempted, claim_from, join, past, settle_callback};

on_both_databases!(
    a_callback_that_cannot_be_read_is_set_aside,
    a_row_without_its_callback_is_set_aside,
);

/// Claims callbacks that are due or in the queue, parks the unreadable ones, and returns the IDs of the others.
async fn claim_and_park(store: &Arc<dyn Store>, node: NodeId, queue: ReceiverId) -> Vec<u64> {
    let claimed = claim_from(store, node, &[(queue, 10)]).await;
    for unreadable in &claimed.unreadable {
        let settlement = CallbackSettlement {
            id: unreadable.held.id,
            message: None,
            claim: unreadable.held.claim,
            attempt: Some(attempt(3)),
            next: CallbackNext::Parked,
        };
        let batch = Arc::new(vec![settlement]);
        store.settle_callbacks(node, batch).await.expect("answers");
    }
    assert!(!claimed.unreadable.is_empty());
    let mut readable = [ids(&claimed.due), ids(&claimed.queued)].concat();
    readable.sort_unstable();
    readable
}

/// Creates three reports in a queue and three that are due.
async fn create_six_callbacks(store: &Arc<dyn Store>, node: NodeId) -> (ReceiverId, Vec<u64>) {
    let queued = queue_up(store, node, 1..=3, "https://one.example/dlr").await;
    let mut all = ids(&queued);
    for id in 4..=6 {
        let callback = deliver_to(store, node, id, "https://one.example/dlr").await;
        let later = attempted(&callback, CallbackNext::Later(past(5)), 3);
        assert!(settle_callback(store, node, later).await);
        all.push(callback.id.get());
    }
    (receiver_of(&queued[0]), all)
}

async fn a_callback_that_cannot_be_read_is_set_aside(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    let (queue, all) = create_six_callbacks(&store, node).await;
    let nonsense = match &database {
        Database::Sqlite(_) => "x'6e6f6e73656e7365'",
        Database::Postgres(_) => "'nonsense'",
    };
    let (one, other) = (all[1], all[4]);
    let damage = format!(
        "UPDATE callback SET url = {nonsense} WHERE id = {one}; UPDATE callback SET kind = 99 WHERE id = {other}"
    );
    database.execute(&damage).await;
    let readable = claim_and_park(&store, node, queue).await;
    assert_eq!(readable, [all[0], all[2], all[3], all[5]]);
    let again = claim_from(&store, node, &[(queue, 10)]).await;
    assert_eq!(
        again,
        ClaimedCallbacks::default(),
        "they are not claimed again"
    );
    let listed = store
        .list_callbacks(&CallbackFilter::default(), EVERYTHING)
        .await;
    let listed = listed.expect("they can be listed");
    let parked = listed
        .iter()
        .filter(|record| record.state == CallbackState::Parked);
    let parked: Vec<u64> = parked.map(|record| record.id.get()).collect();
    assert_eq!(parked, [other, one]);
}

async fn a_row_without_its_callback_is_set_aside(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    let (queue, all) = create_six_callbacks(&store, node).await;
    let (one, other) = (all[1], all[4]);
    let damage = format!("DELETE FROM callback WHERE id IN ({one}, {other})");
    database.execute(&damage).await;
    let readable = claim_and_park(&store, node, queue).await;
    assert_eq!(readable, [all[0], all[2], all[3], all[5]]);
    let again = claim_from(&store, node, &[(queue, 10)]).await;
    assert_eq!(
        again,
        ClaimedCallbacks::default(),
        "they are not claimed again"
    );
}
