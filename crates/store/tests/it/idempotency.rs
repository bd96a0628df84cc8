//! Idempotency keys.

use std::sync::Arc;

use domain::message::{IdempotencyClaim, Submission};
use domain::ports::{Accepted, Store, StoredAnswer, WorkStore};
use tokio::task::JoinSet;

use super::sample::{accept, account, at, keyed, message, submission};

on_every_store!(
    a_key_replays_its_answer_or_conflicts,
    a_key_belongs_to_its_account,
    an_expired_key_counts_as_absent,
    a_key_used_twice_in_one_batch,
    keyed_and_plain_submissions_mix,
    one_of_many_concurrent_uses_is_stored,
    batches_that_share_keys_do_not_deadlock;
    on_both_stores:
    expired_keys_are_pruned_up_to_the_limit,
);

/// Whether the first message of a submission was stored.
async fn is_stored<S: WorkStore + ?Sized>(store: &Arc<S>, submission: &Submission) -> bool {
    let found = store
        .find_message(submission.account, submission.recipients[0].id)
        .await;
    found.expect("the store answers").is_some()
}

async fn a_key_replays_its_answer_or_conflicts(store: Arc<dyn WorkStore>) {
    let first = keyed(1, 7, 7);
    assert_eq!(
        accept(&store, vec![first.clone()]).await,
        [Accepted::Stored]
    );
    for (name, repeated, expected) in [
        (
            "same body",
            keyed(11, 7, 7),
            Accepted::Replayed(first.receipt()),
        ),
        ("other body", keyed(21, 7, 8), Accepted::KeyConflict),
    ] {
        assert_eq!(
            accept(&store, vec![repeated.clone()]).await,
            [expected],
            "{name}"
        );
        assert!(!is_stored(&store, &repeated).await, "{name}");
    }
    let stored = StoredAnswer {
        body: [7; 32],
        receipt: first.receipt(),
    };
    for (name, owner, key, second, expected) in [
        ("within its lifetime", 1, 7, 99, Some(stored)),
        ("at its end", 1, 7, 100, None),
        ("another account's", 2, 7, 0, None),
        ("unknown", 1, 8, 0, None),
    ] {
        let found = store
            .find_answer(account(owner), &[key; 32], at(second))
            .await
            .expect("answers");
        assert_eq!(found, expected, "{name}");
    }
}

async fn a_key_belongs_to_its_account(store: Arc<dyn WorkStore>) {
    let others = Submission {
        account: account(2),
        ..keyed(11, 7, 8)
    };
    assert_eq!(
        accept(&store, vec![keyed(1, 7, 7)]).await,
        [Accepted::Stored]
    );
    assert_eq!(accept(&store, vec![others]).await, [Accepted::Stored]);
}

async fn an_expired_key_counts_as_absent(store: Arc<dyn WorkStore>) {
    accept(&store, vec![keyed(1, 7, 7)]).await;
    let claim = IdempotencyClaim {
        key: [7; 32],
        body: [8; 32],
        expires_at: at(200),
    };
    let later = Submission {
        accepted_at: at(100),
        idempotency: Some(claim),
        ..submission(11, 1)
    };
    assert_eq!(
        accept(&store, vec![later.clone()]).await,
        [Accepted::Stored]
    );
    let stored = store
        .find_answer(account(1), &[7; 32], at(150))
        .await
        .expect("answers");
    assert_eq!(
        stored,
        Some(StoredAnswer {
            body: [8; 32],
            receipt: later.receipt()
        })
    );
}

async fn a_key_used_twice_in_one_batch(store: Arc<dyn WorkStore>) {
    let batch = vec![
        keyed(1, 7, 7),
        keyed(11, 7, 7),
        keyed(21, 7, 8),
        keyed(31, 9, 9),
    ];
    let replayed = Accepted::Replayed(batch[0].receipt());
    let outcomes = accept(&store, batch.clone()).await;
    assert_eq!(
        outcomes,
        [
            Accepted::Stored,
            replayed,
            Accepted::KeyConflict,
            Accepted::Stored
        ]
    );
    for (submission, outcome) in batch.iter().zip(outcomes) {
        assert_eq!(
            is_stored(&store, submission).await,
            outcome == Accepted::Stored,
            "{outcome:?}"
        );
    }
}

async fn keyed_and_plain_submissions_mix(store: Arc<dyn WorkStore>) {
    accept(&store, vec![keyed(1, 7, 7)]).await;
    let batch = vec![
        submission(11, 3),
        keyed(21, 7, 7),
        submission(31, 1),
        keyed(41, 8, 8),
    ];
    let outcomes = accept(&store, batch.clone()).await;
    let replayed = Accepted::Replayed(keyed(1, 7, 7).receipt());
    assert_eq!(
        outcomes,
        [
            Accepted::Stored,
            replayed,
            Accepted::Stored,
            Accepted::Stored
        ]
    );
    for (submission, outcome) in batch.iter().zip(outcomes) {
        assert_eq!(
            is_stored(&store, submission).await,
            outcome == Accepted::Stored,
            "{outcome:?}"
        );
    }
}

async fn one_of_many_concurrent_uses_is_stored(store: Arc<dyn WorkStore>) {
    let mut tasks = JoinSet::new();
    for n in 0..50 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { (n, accept(&store, vec![keyed(1 + n * 10, 7, 7)]).await) });
    }
    let outcomes = tasks.join_all().await;
    let stored: Vec<_> = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == [Accepted::Stored])
        .collect();
    assert_eq!(stored.len(), 1);
    let winner = keyed(1 + stored[0].0 * 10, 7, 7).receipt();
    let replayed = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == [Accepted::Replayed(winner)])
        .count();
    assert_eq!(replayed, 49);
    for n in 0..50 {
        let found = store
            .find_message(account(1), message(1 + n * 10))
            .await
            .expect("answers");
        assert_eq!(found.is_some(), n == stored[0].0, "{n}");
    }
}

async fn batches_that_share_keys_do_not_deadlock(store: Arc<dyn WorkStore>) {
    let mut tasks = JoinSet::new();
    for n in 0..20_u64 {
        let store = Arc::clone(&store);
        let mut batch: Vec<_> = (0..10_u8)
            .map(|key| keyed(1 + n * 100 + u64::from(key) * 2, key, key))
            .collect();
        if n % 2 == 1 {
            batch.reverse();
        }
        tasks.spawn(async move { accept(&store, batch).await });
    }
    let outcomes = tasks.join_all().await.into_iter().flatten();
    assert_eq!(
        outcomes
            .filter(|outcome| *outcome == Accepted::Stored)
            .count(),
        10
    );
}

async fn expired_keys_are_pruned_up_to_the_limit(store: Arc<dyn Store>) {
    let claim = |key| IdempotencyClaim {
        key: [key; 32],
        body: [key; 32],
        expires_at: at(100 + i64::from(key)),
    };
    let with_key = |key| Submission {
        idempotency: Some(claim(key)),
        ..submission(1 + u64::from(key), 1)
    };
    accept(&store, (0..5).map(with_key).collect()).await;
    for (name, second, limit, expected) in [
        ("none has expired", 99, 10, 0),
        ("the first has", 100, 10, 1),
        ("up to the limit", 103, 2, 2),
        ("the last of those", 103, 2, 1),
        ("nothing left", 103, 2, 0),
    ] {
        assert_eq!(
            store
                .prune_answers(at(second), limit)
                .await
                .expect("answers"),
            expected,
            "{name}"
        );
    }
    assert!(
        store
            .find_answer(account(1), &[4; 32], at(0))
            .await
            .expect("answers")
            .is_some()
    );
}
