//! The scheduled list, and cancelling.

use std::sync::Arc;

use domain::message::{MessageState, ScheduledRecord, Submission};
use domain::ports::{Cancel, ListRange, Store};
use domain::{CallbackUrl, Msisdn, Originator};
use tokio::task::JoinSet;

use super::sample::{EVERYTHING, accept, account, at, message, scheduled, submission};

on_both_stores!(
    a_record_shows_what_was_sent,
    the_list_is_sorted_by_time_and_id_and_has_pages,
    the_list_continues_after_a_time_and_an_id,
    only_waiting_messages_of_the_account_are_listed,
    cancelling_works_once,
    one_of_many_concurrent_cancellations_succeeds,
);

async fn a_record_shows_what_was_sent(store: Arc<dyn Store>) {
    let url = CallbackUrl::parse("https://example.com/dlr?a=ä%00b").expect("a URL");
    let sent = Submission {
        from: Originator::parse("+37120000001").ok(),
        dlr_url: Some(url.clone()),
        ..scheduled(3, 90)
    };
    accept(
        &store,
        vec![
            sent.clone(),
            Submission {
                text: "second".into(),
                ..scheduled(4, 91)
            },
        ],
    )
    .await;
    let first = ScheduledRecord {
        id: message(3),
        at: at(90),
        from: "+37120000001".to_owned(),
        to: sent.recipients[0].to,
        text: sent.text,
        dlr_url: Some(url.as_str().to_owned()),
    };
    let second = ScheduledRecord {
        id: message(4),
        at: at(91),
        from: "Acme".to_owned(),
        to: Msisdn::parse("+37120000004").expect("a number"),
        text: "second".to_owned(),
        dlr_url: None,
    };
    assert_eq!(
        store
            .list_scheduled(account(1), EVERYTHING)
            .await
            .expect("answers"),
        [first, second]
    );
    let found = store
        .find_message(account(1), message(3))
        .await
        .expect("answers")
        .expect("it is there");
    assert_eq!(found.state, MessageState::Scheduled { at: at(90) });
}

async fn the_list_is_sorted_by_time_and_id_and_has_pages(store: Arc<dyn Store>) {
    let batch = [(1, 90), (2, 30), (3, 60), (4, 30), (5, 60)];
    accept(
        &store,
        batch
            .into_iter()
            .map(|(id, second)| scheduled(id, second))
            .collect(),
    )
    .await;
    for (name, limit, offset, expected) in [
        ("all", 1_000, 0, &[2, 4, 3, 5, 1][..]),
        ("first page", 2, 0, &[2, 4]),
        ("second page", 2, 2, &[3, 5]),
        ("last page", 2, 4, &[1]),
        ("after the end", 2, 5, &[]),
        ("far after the end", 2, u64::MAX, &[]),
        ("none", 0, 0, &[]),
    ] {
        let listed = store
            .list_scheduled(account(1), ListRange { limit, offset })
            .await
            .expect("answers");
        let listed: Vec<_> = listed.iter().map(|record| record.id.get()).collect();
        assert_eq!(listed, expected, "{name}");
    }
}

async fn the_list_continues_after_a_time_and_an_id(store: Arc<dyn Store>) {
    let batch = [(1, 90), (2, 30), (3, 60), (4, 30), (5, 60)];
    let mut all: Vec<_> = batch.map(|(id, second)| scheduled(id, second)).into();
    all.push(Submission {
        account: account(2),
        ..scheduled(6, 60)
    });
    accept(&store, all).await;
    for (name, after, limit, expected) in [
        ("from the start", None, 1_000, &[2, 4, 3, 5, 1][..]),
        ("a first page", None, 2, &[2, 4]),
        ("within one time", Some((30, 2)), 2, &[4, 3]),
        ("at the end of one time", Some((30, 4)), 2, &[3, 5]),
        ("after a time without messages", Some((45, 9)), 1, &[3]),
        ("after the end", Some((90, 1)), 2, &[]),
    ] {
        let after = after.map(|(second, id)| (at(second), message(id)));
        let listed = store
            .list_scheduled_after(account(1), after, limit)
            .await
            .expect("answers");
        let listed: Vec<_> = listed.iter().map(|record| record.id.get()).collect();
        assert_eq!(listed, expected, "{name}");
    }
}

async fn only_waiting_messages_of_the_account_are_listed(store: Arc<dyn Store>) {
    let others = Submission {
        account: account(2),
        ..scheduled(3, 60)
    };
    accept(&store, vec![submission(1, 1), scheduled(2, 60), others]).await;
    for (owner, expected) in [(1, vec![2]), (2, vec![3]), (3, vec![])] {
        let listed = store
            .list_scheduled(account(owner), EVERYTHING)
            .await
            .expect("answers");
        assert_eq!(
            listed
                .iter()
                .map(|record| record.id.get())
                .collect::<Vec<_>>(),
            expected,
            "account {owner}"
        );
    }
    assert_eq!(
        store
            .cancel(account(1), message(2), at(5))
            .await
            .expect("answers"),
        Cancel::Done
    );
    assert_eq!(
        store
            .list_scheduled(account(1), EVERYTHING)
            .await
            .expect("answers"),
        []
    );
}

async fn cancelling_works_once(store: Arc<dyn Store>) {
    accept(
        &store,
        vec![submission(1, 1), scheduled(2, 60), scheduled(3, 60)],
    )
    .await;
    let cancelled = MessageState::Cancelled { at: at(5) };
    for (name, owner, id, second, expected) in [
        (
            "not scheduled",
            1,
            1,
            4,
            Cancel::NotWaiting(MessageState::Queued),
        ),
        ("another account", 2, 2, 4, Cancel::Unknown),
        ("unknown", 1, 9, 4, Cancel::Unknown),
        ("waiting", 1, 2, 5, Cancel::Done),
        ("again", 1, 2, 6, Cancel::NotWaiting(cancelled)),
    ] {
        let outcome = store
            .cancel(account(owner), message(id), at(second))
            .await
            .expect("answers");
        assert_eq!(outcome, expected, "{name}");
    }
    for (id, state) in [(2, cancelled), (3, MessageState::Scheduled { at: at(60) })] {
        let found = store
            .find_message(account(1), message(id))
            .await
            .expect("answers");
        assert_eq!(found.map(|record| record.state), Some(state), "{id}");
    }
}

async fn one_of_many_concurrent_cancellations_succeeds(store: Arc<dyn Store>) {
    accept(&store, vec![scheduled(1, 60)]).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            store
                .cancel(account(1), message(1), at(5))
                .await
                .expect("answers")
        });
    }
    let outcomes = tasks.join_all().await;
    let done = outcomes
        .iter()
        .filter(|outcome| **outcome == Cancel::Done)
        .count();
    let late = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Cancel::NotWaiting(_)))
        .count();
    assert_eq!((done, late), (1, 19));
}
