//! Message IDs that were used before.

use std::sync::Arc;

use domain::MessageState;
use domain::ports::{AcceptResult, StoreError, WorkStore};

use super::sample::{accept, account, message, submission};
use super::steps::{due, held, join, state};

on_every_store!(a_batch_with_a_used_id_stores_nothing);

async fn a_batch_with_a_used_id_stores_nothing(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![due(1)]).await;
    for (case, batch) in [
        ("alone", vec![held(1, node)]),
        ("among others", vec![due(2), held(1, node), due(3)]),
        (
            "one of several recipients",
            vec![submission(0xffff_0000, 1), submission(1, 2)],
        ),
    ] {
        let refused = store.accept(Arc::new(batch)).await;
        let is_refused = |result: &AcceptResult| matches!(result, Err(error) if matches!(**error, StoreError::IdTaken { .. }));
        assert!(refused.iter().all(is_refused), "{case}: {refused:?}");
        for id in [2, 3, 0xffff_0000] {
            let found = store.find_message(account(1), message(id)).await;
            assert!(found.expect("answers").is_none(), "{case}: {id} is stored");
        }
    }
    accept(&store, vec![due(2)]).await;
    assert_eq!(
        state(&store, 2).await,
        MessageState::Queued,
        "the store still works"
    );
}
