//! Retention: what is deleted, and what is not.

use std::sync::Arc;

use domain::Outcome;
use domain::delivery::{CallbackNext, Settlement};
use domain::message::Submission;
use domain::ports::{CallbackFilter, Matched, Store};
use jiff::SignedDuration;

use super::sample::{EVERYTHING, accept, account, message};
use super::steps::{
    HOUR, attempted, claim, deliver, due, due_at, first_result, future, held, join, kind, past,
    receipt, report, send, settle, settle_callback, taken,
};

on_both_stores!(
    old_receipts_are_deleted,
    a_part_stays_while_its_message_waits,
    a_reused_reference_is_as_recent_as_its_last_part,
    ended_messages_are_deleted_with_all_their_rows,
    recent_and_waiting_messages_stay,
    steps_continue_after_waiting_messages,
);

/// More than the age of any row in the tests.
const AGES: SignedDuration = SignedDuration::from_hours(24 * 365 * 500);

async fn old_receipts_are_deleted(store: Arc<dyn Store>) {
    let node = join(&store).await;
    deliver(&store, node, 1).await;
    let early = ["x", "y"].map(|name| receipt(name, Outcome::Delivered));
    report(&store, node, early.to_vec()).await;
    let prune = async |age, limit| store.prune_receipts(age, limit).await.expect("answers");
    assert_eq!(prune(AGES, 10).await, 0);
    assert_eq!(prune(HOUR, 2).await, 2);
    assert_eq!(prune(HOUR, 2).await, 1);
    assert_eq!(prune(HOUR, 2).await, 0);
    let again = report(&store, node, vec![receipt("ref-1", Outcome::Delivered)]).await;
    assert_eq!(again, [Matched::Kept], "its part is deleted");
}

async fn a_part_stays_while_its_message_waits(store: Arc<dyn Store>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a", "b"]).await;
    let prune = async || store.prune_receipts(HOUR, 10).await.expect("answers");
    assert_eq!(prune().await, 0);
    let failed = Outcome::Failed(domain::Code::ABSENT);
    report(&store, node, vec![receipt("b", failed)]).await;
    assert_eq!(prune().await, 2, "the other part is not needed any more");
}

/// A recent part does not keep other parts.
async fn a_reused_reference_is_as_recent_as_its_last_part(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for (id, reference) in [(1, "a"), (2, "b"), (3, "c")] {
        send(&store, node, id, &[reference]).await;
        report(&store, node, vec![receipt(reference, Outcome::Delivered)]).await;
    }
    accept(&store, vec![held(4, node)]).await;
    let recent = Settlement {
        at: future(0),
        ..first_result(4, taken(&["a"]))
    };
    settle(&store, node, vec![recent]).await;
    let pruned = store.prune_receipts(HOUR, 10).await;
    assert_eq!(
        pruned.expect("answers"),
        3,
        "also the former use of the reference"
    );
    let matched = ["a", "b", "c"].map(|name| receipt(name, Outcome::Delivered));
    let matched = report(&store, node, matched.to_vec()).await;
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(kinds, ["ended", "kept", "kept"]);
}

async fn exists(store: &Arc<dyn Store>, id: u64) -> bool {
    let found = store.find_message(account(1), message(id)).await;
    found.expect("answers").is_some()
}

async fn ended_messages_are_deleted_with_all_their_rows(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let mut callbacks = Vec::new();
    for id in 1..=4 {
        let callback = deliver(&store, node, id).await;
        let next = [CallbackNext::Done, CallbackNext::Parked][usize::from(id == 2)];
        assert!(settle_callback(&store, node, attempted(&callback, next, 3)).await);
        callbacks.push(callback);
    }
    accept(&store, vec![due_at(5, future(1))]).await;
    store
        .cancel(account(1), message(5), past(5))
        .await
        .expect("answers");
    let prune = async |limit| store.prune_messages(HOUR, limit).await.expect("answers");
    assert_eq!(prune(3).await, 3, "from the lowest ID");
    assert!(!exists(&store, 3).await && exists(&store, 4).await);
    assert_eq!(prune(3).await, 2);
    assert_eq!(prune(3).await, 0);
    assert!(!exists(&store, 5).await);
    let filter = CallbackFilter {
        with_done: true,
        ..CallbackFilter::default()
    };
    let listed = store.list_callbacks(&filter, EVERYTHING).await;
    assert_eq!(listed.expect("answers"), []);
    for callback in callbacks {
        let attempts = store.list_attempts(callback.id).await;
        assert_eq!(attempts.expect("answers"), []);
    }
}

async fn recent_and_waiting_messages_stay(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![due_at(1, future(1)), due(2), held(3, node)]).await;
    claim(&store, node).await;
    send(&store, node, 4, &["a"]).await;
    deliver(&store, node, 5).await;
    let done = deliver(&store, node, 6).await;
    assert!(settle_callback(&store, node, attempted(&done, CallbackNext::Done, 3)).await);
    let recent = Submission {
        accepted_at: future(0),
        ..due_at(7, future(1))
    };
    accept(&store, vec![recent]).await;
    let old = store.prune_messages(AGES, 10).await;
    assert_eq!(old.expect("answers"), 0);
    let old = store.prune_messages(HOUR, 10).await;
    assert_eq!(old.expect("answers"), 1);
    for id in 1..=7 {
        assert_eq!(exists(&store, id).await, id != 6, "{id}");
    }
}

async fn steps_continue_after_waiting_messages(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for id in 1..=10 {
        if id % 2 == 0 {
            let callback = deliver(&store, node, id).await;
            assert!(
                settle_callback(&store, node, attempted(&callback, CallbackNext::Done, 3)).await
            );
        } else {
            accept(&store, vec![due_at(id, future(1))]).await;
        }
    }
    let prune = async || store.prune_messages(HOUR, 2).await.expect("answers");
    for expected in [2, 2, 1, 0] {
        assert_eq!(prune().await, expected);
    }
    for id in 1..=10 {
        assert_eq!(exists(&store, id).await, id % 2 == 1, "{id}");
    }
    let cancelled = store.cancel(account(1), message(3), past(5)).await;
    cancelled.expect("answers");
    assert_eq!(
        prune().await,
        1,
        "after the last step, the next starts at the lowest ID"
    );
    assert!(!exists(&store, 3).await);
}
