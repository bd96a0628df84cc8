//! Receipts: before and after the answer, repeated, unmatched, or missing.

use std::sync::Arc;

use domain::message::Submission;
use domain::ports::{InTransit, Inbox, Matched, Settled, Store, WorkStore};
use domain::{MessageState, Outcome};
use tokio::task::JoinSet;

use super::sample::{accept, message};
use super::steps::{
    ABSENT, deliver, first_result, future, held, ids, join, kind, past, receipt, report, send,
    settle, state, taken,
};

on_every_store!(
    a_receipt_ends_its_message,
    an_early_receipt_waits_for_the_answer,
    a_repeated_receipt_changes_nothing,
    a_final_state_never_changes,
    concurrent_receipts_and_answers_are_always_matched,
    a_carrier_may_reuse_a_reference,
    a_message_without_a_receipt_expires;
    on_both_stores:
    parts_in_transit_are_listed_by_reference,
    an_inbox_shows_delivered_messages,
);

async fn a_receipt_ends_its_message(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let outcomes = [Outcome::Delivered, ABSENT, Outcome::Expired];
    for (outcome, id) in outcomes.into_iter().zip(1..) {
        let reference = format!("r{id}");
        send(&store, node, id, &[&reference]).await;
        assert_eq!(state(&store, id).await, MessageState::Sent);
        let matched = report(&store, node, vec![receipt(&reference, outcome)]).await;
        let [Matched::Ended(ended)] = &matched[..] else {
            panic!("{matched:?}")
        };
        let callback = ended.callback.as_ref().expect("it asked for a report");
        let payload = domain::delivery::report_payload(message(id), outcome, None);
        assert_eq!((ended.id, &callback.payload), (message(id), &payload));
        assert_eq!(callback.url.as_str(), "https://example.com/dlr");
        assert_eq!((callback.tries, callback.claim.attempt), (0, 1));
        let at = past(2);
        assert_eq!(state(&store, id).await, MessageState::Ended { outcome, at });
    }
    let expired = store.expire_sent(node, 10, true).await.expect("answers");
    assert_eq!(expired, []);
}

async fn an_early_receipt_waits_for_the_answer(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let early = report(&store, node, vec![receipt("b", ABSENT)]).await;
    assert_eq!(early, [Matched::Kept]);
    let again = report(&store, node, vec![receipt("b", Outcome::Delivered)]).await;
    assert_eq!(again, [Matched::Kept], "the first one counts");
    assert_eq!(state(&store, 2).await, MessageState::Queued);

    let batch = vec![
        first_result(1, taken(&["a"])),
        first_result(2, taken(&["b"])),
    ];
    let settled = settle(&store, node, batch).await;
    assert_eq!(settled[0], Settled::Stored);
    let Settled::Ended(ended) = &settled[1] else {
        panic!("{settled:?}")
    };
    assert!(ended.callback.is_some());
    let end = MessageState::Ended {
        outcome: ABSENT,
        at: past(2),
    };
    assert_eq!(state(&store, 2).await, end);
    let late = report(&store, node, vec![receipt("b", ABSENT)]).await;
    assert_eq!(late, [Matched::Repeated]);
}

async fn a_repeated_receipt_changes_nothing(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    send(&store, node, 2, &["b"]).await;
    let batch = ["a", "x", "a", "b", "x", "b"];
    let batch = batch.map(|name| receipt(name, Outcome::Delivered));
    let matched = report(&store, node, batch.to_vec()).await;
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["ended", "kept", "repeated", "ended", "kept", "repeated"]
    );
    let again = report(&store, node, batch.to_vec()).await;
    let kinds: Vec<_> = again.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "repeated", "kept", "repeated", "repeated", "kept", "repeated"
        ]
    );
    assert_eq!(report(&store, node, vec![]).await, []);
}

async fn a_final_state_never_changes(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let expiring = Submission {
        expires_at: past(9),
        ..held(1, node)
    };
    accept(&store, vec![expiring]).await;
    let mut result = first_result(1, taken(&["a"]));
    result.expires_at = past(9);
    settle(&store, node, vec![result]).await;
    let expired = store.expire_sent(node, 10, true).await.expect("answers");
    assert_eq!(ids(&expired), [1]);
    let before = state(&store, 1).await;
    let late = report(&store, node, vec![receipt("a", Outcome::Delivered)]).await;
    assert_eq!(late, [Matched::Repeated]);
    assert_eq!(state(&store, 1).await, before);
}

pub(super) async fn concurrent_receipts_and_answers_are_always_matched(store: Arc<dyn WorkStore>) {
    const MESSAGES: u64 = 60;
    let node = join(&store).await;
    let batch = (1..=MESSAGES).map(|id| held(id, node));
    accept(&store, batch.collect()).await;
    let mut tasks = JoinSet::new();
    for id in 1..=MESSAGES {
        let reference = format!("r{}", id % 50 + 100 * id);
        let (answering, reporting) = (Arc::clone(&store), Arc::clone(&store));
        let answer = first_result(id, taken(&[&reference]));
        tasks.spawn(async move {
            let settled = settle(&answering, node, vec![answer]).await;
            matches!(settled[..], [Settled::Ended(_)])
        });
        tasks.spawn(async move {
            let batch = vec![receipt(&reference, Outcome::Delivered)];
            let matched = report(&reporting, node, batch).await;
            matches!(matched[..], [Matched::Ended(_)])
        });
    }
    let ended = tasks.join_all().await.into_iter().filter(|ended| *ended);
    assert_eq!(ended.count() as u64, MESSAGES, "each ends exactly once");
}

async fn a_carrier_may_reuse_a_reference(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    report(&store, node, vec![receipt("a", Outcome::Delivered)]).await;
    send(&store, node, 2, &["a"]).await;
    assert_eq!(state(&store, 2).await, MessageState::Sent);
    send(&store, node, 3, &["a"]).await;
    let matched = report(&store, node, vec![receipt("a", ABSENT)]).await;
    let [Matched::Ended(ended)] = &matched[..] else {
        panic!("{matched:?}")
    };
    assert_eq!(ended.id.get(), 3, "the newest open part is matched");
    assert_eq!(state(&store, 2).await, MessageState::Sent);
}

async fn a_message_without_a_receipt_expires(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for (id, expires_at) in [(1, past(30)), (2, past(20)), (3, future(1)), (4, past(10))] {
        let submission = Submission {
            expires_at,
            ..held(id, node)
        };
        accept(&store, vec![submission]).await;
        let mut result = first_result(id, taken(&[&format!("r{id}")]));
        result.expires_at = expires_at;
        settle(&store, node, vec![result]).await;
    }
    let expire = async |limit, hold| store.expire_sent(node, limit, hold).await;
    let first = expire(2, true).await.expect("answers");
    assert_eq!(ids(&first), [4, 2], "the earliest first");
    assert!(first.iter().all(|ended| ended.callback.is_some()));
    let second = expire(2, false).await.expect("answers");
    assert_eq!(ids(&second), [1]);
    assert_eq!(second[0].callback, None, "no node holds it");
    assert_eq!(expire(2, true).await.expect("answers"), []);
    let ended = state(&store, 1).await;
    assert_eq!(ended.name(), "expired");
    assert_eq!(state(&store, 3).await, MessageState::Sent);
}

async fn parts_in_transit_are_listed_by_reference(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for (id, reference) in [(1, "b"), (2, "a"), (3, "Z"), (4, "ä"), (5, "c")] {
        send(&store, node, id, &[reference]).await;
    }
    report(
        &store,
        node,
        vec![receipt("c", ABSENT), receipt("x", ABSENT)],
    )
    .await;
    let list = async |carrier, after, limit| {
        let listed = store.list_in_transit(carrier, after, limit).await;
        let listed = listed.expect("answers").into_iter();
        listed.map(|part| part.reference).collect::<Vec<_>>()
    };
    assert_eq!(list("alpha", "", 9).await, ["Z", "a", "b", "ä"]);
    assert_eq!(list("alpha", "a", 1).await, ["b"]);
    assert_eq!(list("beta", "", 9).await, [""; 0]);
    let first = store.list_in_transit("alpha", "", 1).await;
    let expected = InTransit {
        reference: "Z".to_owned(),
        to: held(3, node).recipients[0].to,
        taken_at: past(1),
    };
    assert_eq!(first.expect("answers"), [expected]);
}

async fn an_inbox_shows_delivered_messages(store: Arc<dyn Store>) {
    let node = join(&store).await;
    deliver(&store, node, 1).await;
    send(&store, node, 2, &["failed"]).await;
    report(&store, node, vec![receipt("failed", ABSENT)]).await;
    let inbox = async |id| {
        let to = held(id, node).recipients[0].to;
        let listed = store.list_inbox("alpha", &to, 10).await;
        listed.expect("answers")
    };
    let expected = Inbox {
        from: "Acme".to_owned(),
        text: "Your code is 1234".to_owned(),
        at: past(2),
    };
    assert_eq!(inbox(1).await, [expected]);
    assert_eq!(inbox(2).await, [], "it failed");
}
