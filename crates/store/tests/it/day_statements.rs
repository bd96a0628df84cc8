//! Statements that name the partitions of a day, on `PostgreSQL`.

use std::sync::Arc;

use domain::delivery::{CallbackNext, CallbackSettlement};
use domain::message::MessageState;
use domain::ports::{CallbackFilter, Matched, Store};
use domain::{NodeId, Outcome};

use super::days::id;
use super::fixture::Database;
use super::sample::{EVERYTHING, accept};
use super::steps::{
    attempted, first_result, held, join, receipt, release_all, report, settle, state, taken,
};

/// Delivers messages in one batch of each kind, and returns which of their callbacks were settled.
async fn deliver_together(store: &Arc<dyn Store>, node: NodeId, ids: &[u64]) -> Vec<bool> {
    let settlements = end_together(store, node, ids).await;
    let settled = store.settle_callbacks(node, Arc::new(settlements)).await;
    settled.expect("answers")
}

/// Ends messages in one batch of each kind, and returns the results of their callbacks, which are not stored yet.
async fn end_together(
    store: &Arc<dyn Store>,
    node: NodeId,
    ids: &[u64],
) -> Vec<CallbackSettlement> {
    let reference = |id: &u64| format!("ref-{id}");
    accept(store, ids.iter().map(|id| held(*id, node)).collect()).await;
    let sent = ids
        .iter()
        .map(|id| first_result(*id, taken(&[&reference(id)])));
    settle(store, node, sent.collect()).await;
    let receipts = ids
        .iter()
        .map(|id| receipt(&reference(id), Outcome::Delivered));
    let matched = report(store, node, receipts.collect()).await;
    let settlements = matched.into_iter().map(|matched| match matched {
        Matched::Ended(ended) => attempted(&ended.callback.expect("held"), CallbackNext::Done, 3),
        other => panic!("not ended: {other:?}"),
    });
    settlements.collect()
}

/// The second store has not seen any day yet, so it learns of later days while it handles the batch.
#[tokio::test]
async fn callbacks_of_many_days_are_settled_in_one_batch() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    let ids: Vec<u64> = (0..60).map(|n| id(1 + n * 7 % 11, n)).collect();
    let settlements = end_together(&store, node, &ids).await;
    let other = database.open().await;
    let settled = other.settle_callbacks(node, Arc::new(settlements)).await;
    assert_eq!(settled.expect("answers"), [true; 60]);
    assert_eq!(release_all(&store, node).await, 0);
}

#[tokio::test]
async fn messages_of_several_days_end_in_one_batch() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    let ids = [
        id(7, 1),
        id(5, 1),
        7,
        id(6, 1),
        id(7, 2),
        id(4, 1),
        id(6, 2),
    ];
    assert_eq!(deliver_together(&store, node, &ids).await, [true; 7]);
    for id in ids {
        assert!(
            matches!(state(&store, id).await, MessageState::Ended { .. }),
            "{id}"
        );
    }
    let open = store
        .list_callbacks(&CallbackFilter::default(), EVERYTHING)
        .await;
    assert_eq!(open.expect("answers"), []);
    assert_eq!(release_all(&store, node).await, 0);
}

/// The partitions of a day may belong to another user, or be gone.
#[tokio::test]
async fn a_day_that_cannot_be_named_is_used_through_its_table() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    assert_eq!(deliver_together(&store, node, &[id(1, 1)]).await, [true]);
    for table in ["message", "callback", "callback_attempt"] {
        let rename = format!("ALTER TABLE {table}_20260102 RENAME TO other_{table}");
        database.execute(&rename).await;
    }
    assert_eq!(
        deliver_together(&store, node, &[id(1, 2), id(1, 3)]).await,
        [true; 2]
    );
}
