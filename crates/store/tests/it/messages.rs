//! Accepting messages, finding them, reserving their IDs.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::Channel;
use domain::message::text::{Coding, Shape};
use domain::message::{MessageRecord, MessageState, SendTime, Submission};
use domain::ports::{Accepted, Store, StoreError, WorkStore};
use tokio::task::JoinSet;

use super::sample::{EVERYTHING, accept, account, at, message, scheduled, submission, try_accept};

on_every_store!(
    a_message_is_found_by_its_account_only,
    a_big_batch_is_stored_whole,
    a_batch_with_an_existing_id_is_refused,
    an_empty_batch_is_accepted,
    reserved_ids_never_overlap,
    batches_from_many_tasks_are_all_stored;
    on_both_stores:
    each_recipient_has_a_message,
    texts_are_stored_exactly,
);

async fn a_message_is_found_by_its_account_only(store: Arc<dyn WorkStore>) {
    let shape = Shape {
        coding: Coding::Ucs2,
        parts: 255,
    };
    assert_eq!(
        accept(
            &store,
            vec![Submission {
                shape,
                ..submission(7, 1)
            }]
        )
        .await,
        [Accepted::Stored]
    );

    let expected = MessageRecord {
        id: message(7),
        channel: Channel::Sms,
        state: MessageState::Queued,
        parts: 255,
        network: None,
    };
    for (name, owner, id, found) in [
        ("its own", 1, 7, Some(expected)),
        ("another account's", 2, 7, None),
        ("unknown", 1, 8, None),
    ] {
        let record = store
            .find_message(account(owner), message(id))
            .await
            .expect("the store answers");
        assert_eq!(record, found, "{name}");
    }
}

async fn each_recipient_has_a_message(store: Arc<dyn Store>) {
    let later = Submission {
        send: SendTime::At(at(60)),
        ..submission(10, 3)
    };
    let outcomes = accept(
        &store,
        vec![
            submission(1, 1000),
            Submission {
                text: "x".into(),
                ..submission(1001, 1)
            },
        ],
    )
    .await;
    assert_eq!(outcomes, [Accepted::Stored, Accepted::Stored]);
    for id in [1, 500, 1000, 1001] {
        assert!(
            store
                .find_message(account(1), message(id))
                .await
                .expect("answers")
                .is_some(),
            "{id}"
        );
    }

    let shifted = Submission {
        recipients: submission(2001, 3).recipients,
        ..later
    };
    accept(
        &store,
        vec![submission(1002, 2), shifted.clone(), submission(1004, 2)],
    )
    .await;
    let listed = store
        .list_scheduled(account(1), EVERYTHING)
        .await
        .expect("answers");
    let listed: Vec<_> = listed
        .into_iter()
        .map(|record| (record.id, record.to))
        .collect();
    let expected: Vec<_> = shifted
        .recipients
        .iter()
        .map(|recipient| (recipient.id, recipient.to))
        .collect();
    assert_eq!(listed, expected);
}

async fn a_big_batch_is_stored_whole(store: Arc<dyn WorkStore>) {
    let batch: Vec<_> = (0..2_000).map(|n| submission(1 + 2 * n, 2)).collect();
    assert_eq!(accept(&store, batch).await, vec![Accepted::Stored; 2_000]);
    for id in [1, 1_999, 4_000] {
        assert!(
            store
                .find_message(account(1), message(id))
                .await
                .expect("answers")
                .is_some(),
            "{id}"
        );
    }
}

async fn a_batch_with_an_existing_id_is_refused(store: Arc<dyn WorkStore>) {
    accept(&store, vec![submission(5, 1)]).await;
    let error = try_accept(&store, vec![submission(4, 1), submission(5, 1)])
        .await
        .expect_err("an ID is used twice");
    assert!(matches!(&*error, StoreError::IdTaken { .. }), "{error:?}");
    assert_eq!(
        store
            .find_message(account(1), message(4))
            .await
            .expect("answers"),
        None
    );
    accept(&store, vec![submission(4, 1)]).await;
}

async fn an_empty_batch_is_accepted(store: Arc<dyn WorkStore>) {
    assert_eq!(accept(&store, vec![]).await, []);
}

async fn texts_are_stored_exactly(store: Arc<dyn Store>) {
    let long = "ä".repeat(39_999) + "!";
    let texts = [
        "",
        "\0",
        "a\0b\0",
        "👩‍👩‍👧 flag 🏳️‍🌈",
        "'; DROP TABLE message; --",
        "\u{feff}x\r\n\t",
        "\u{10FFFF}",
        &long,
    ];
    let with_text = |(text, id): (&&str, u64)| Submission {
        text: (*text).to_owned(),
        ..scheduled(id, 60)
    };
    accept(&store, texts.iter().zip(1..).map(with_text).collect()).await;
    let listed = store
        .list_scheduled(account(1), EVERYTHING)
        .await
        .expect("answers");
    let listed: Vec<_> = listed.iter().map(|record| record.text.as_str()).collect();
    assert!(listed == texts, "a text has changed");
}

async fn reserved_ids_never_overlap(store: Arc<dyn WorkStore>) {
    let mut tasks = JoinSet::new();
    for count in (1..=3).cycle().take(50) {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let first = store.reserve_ids(count).await.expect("IDs are left").get();
            first..first + count
        });
    }
    let ids: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len());
}

async fn batches_from_many_tasks_are_all_stored(store: Arc<dyn WorkStore>) {
    let mut tasks = JoinSet::new();
    for n in 0..50 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { accept(&store, vec![submission(1 + n * 10, 10)]).await });
    }
    assert!(
        tasks
            .join_all()
            .await
            .iter()
            .all(|outcomes| *outcomes == [Accepted::Stored])
    );
    for n in 0..50 {
        assert!(
            store
                .find_message(account(1), message(1 + n * 10))
                .await
                .expect("answers")
                .is_some()
        );
    }
}
