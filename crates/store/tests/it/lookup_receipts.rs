//! Lookups whose result comes later: before or after the carrier's answer is stored, twice, empty, or never.

use std::sync::Arc;

use domain::delivery::{Callback, CallbackKind, Receipt};
use domain::message::Submission;
use domain::message::lookup::{LookupRecord, Subscriber};
use domain::ports::{CallbackFilter, Ended, Matched, Settled, Store};
use domain::{AccountId, Code, MessageState, Network, NodeId, Outcome};

use super::lookups::lookup;
use super::money::{assert_balanced, balance, priced};
use super::sample::{EVERYTHING, accept, account, create_account, message};
use super::steps::{
    ABSENT, claim_callbacks, first_result, future, held, ids, join, kind, past, receipt, report,
    send, settle, state, taken,
};

on_both_stores!(
    a_receipt_has_the_result_of_a_lookup,
    a_result_before_the_answer_is_stored,
    a_lookup_result_counts_once,
    a_receipt_without_a_result_still_ends_the_lookup,
    a_lookup_that_is_never_answered_is_refunded,
    an_unheld_report_has_the_same_payload,
    a_reused_reference_has_no_old_report,
    a_report_of_a_message_shows_its_outcome,
);

const TIMEOUT: Outcome = Outcome::Failed(Code::HLR_TIMEOUT);

fn subscriber(code: u16) -> Subscriber {
    Subscriber {
        network: Network::new("247", "01"),
        ..Subscriber::unknown(Code::new(code).expect("a code"))
    }
}

/// A receipt with the result of a lookup, whose ID is its reference.
fn answer(id: u64, subscriber: &Subscriber) -> Receipt {
    Receipt {
        report: Some(subscriber.payload(message(id))),
        ..receipt(&id.to_string(), subscriber.outcome())
    }
}

/// Stores that a carrier accepted a lookup, with its ID as the reference.
async fn settle_accepted(store: &Arc<dyn Store>, node: NodeId, id: u64) -> Settled {
    let result = first_result(id, taken(&[&id.to_string()]));
    settle(store, node, vec![result]).await.remove(0)
}

async fn send_lookup(store: &Arc<dyn Store>, node: NodeId, id: u64) {
    accept(store, vec![lookup(id, node)]).await;
    assert_eq!(settle_accepted(store, node, id).await, Settled::Stored);
}

async fn read_back(store: &Arc<dyn Store>, owner: AccountId, id: u64) -> LookupRecord {
    let found = store.find_lookup(owner, message(id)).await;
    found.expect("answers").expect("it is there")
}

/// Checks that the callback of an ended lookup and its record have this outcome and payload.
async fn assert_reported(store: &Arc<dyn Store>, ended: &Ended, outcome: Outcome, payload: &str) {
    let callback = ended.callback.as_ref().expect("it is held");
    assert_eq!(
        (callback.kind, callback.payload.as_str()),
        (CallbackKind::Lookup, payload)
    );
    assert_eq!(callback.url.as_str(), "https://example.com/dlr");
    let record = read_back(store, account(1), ended.id.get()).await;
    assert_eq!(record.report.as_deref(), Some(payload));
    let MessageState::Ended { outcome: end, .. } = record.state else {
        panic!("{record:?}")
    };
    assert_eq!(end, outcome);
    let listed = store.list_callbacks(&only(callback), EVERYTHING).await;
    assert_eq!(listed.expect("answers")[0].payload, payload);
}

fn only(callback: &Callback) -> CallbackFilter {
    CallbackFilter {
        id: Some(callback.id),
        ..CallbackFilter::default()
    }
}

fn ended(matched: &Matched) -> &Ended {
    let Matched::Ended(ended) = matched else {
        panic!("{matched:?}")
    };
    ended
}

async fn a_receipt_has_the_result_of_a_lookup(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let codes = [0, 43, 50];
    for id in 1..=3 {
        send_lookup(&store, node, id).await;
        assert_eq!(read_back(&store, account(1), id).await.report, None);
    }
    send(&store, node, 4, &["4"]).await;
    let mut batch: Vec<_> = codes
        .iter()
        .zip(1..)
        .map(|(code, id)| answer(id, &subscriber(*code)))
        .collect();
    batch.push(receipt("4", Outcome::Delivered));
    let matched = report(&store, node, batch).await;
    for ((code, id), matched) in codes.into_iter().zip(1..).zip(&matched) {
        let (outcome, payload) = (
            subscriber(code).outcome(),
            subscriber(code).payload(message(id)),
        );
        assert_reported(&store, ended(matched), outcome, &payload).await;
    }
    let callback = ended(&matched[3]).callback.as_ref().expect("it is held");
    assert_eq!(callback.kind, CallbackKind::Report);
    assert_eq!(callback.payload, r#"{"id":"4","status":1,"error":0}"#);
}

async fn a_result_before_the_answer_is_stored(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![lookup(1, node), lookup(2, node)]).await;
    for (code, name) in [(0, "stored"), (43, "the first one counts")] {
        let early = report(&store, node, vec![answer(1, &subscriber(code))]).await;
        assert_eq!(early, [Matched::Kept], "{name}");
    }
    let silent = report(&store, node, vec![receipt("2", ABSENT)]).await;
    assert_eq!(silent, [Matched::Kept]);
    for (id, outcome, payload) in [
        (1, Outcome::Delivered, subscriber(0).payload(message(1))),
        (2, ABSENT, r#"{"id":"2","error":43}"#.to_owned()),
    ] {
        let settled = settle_accepted(&store, node, id).await;
        let Settled::Ended(ended) = settled else {
            panic!("{settled:?}")
        };
        assert_reported(&store, &ended, outcome, &payload).await;
        let at = past(2);
        assert_eq!(state(&store, id).await, MessageState::Ended { outcome, at });
    }
}

async fn a_lookup_result_counts_once(store: Arc<dyn Store>) {
    let node = join(&store).await;
    send_lookup(&store, node, 1).await;
    let batch = vec![
        answer(1, &subscriber(0)),
        answer(1, &subscriber(43)),
        receipt("1", ABSENT),
    ];
    let matched = report(&store, node, batch).await;
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(kinds, ["ended", "repeated", "repeated"]);
    let again = report(&store, node, vec![answer(1, &subscriber(43))]).await;
    assert_eq!(again, [Matched::Repeated]);
    let payload = subscriber(0).payload(message(1));
    assert_reported(&store, ended(&matched[0]), Outcome::Delivered, &payload).await;
    let everything = CallbackFilter::default();
    let listed = store.list_callbacks(&everything, EVERYTHING).await;
    assert_eq!(listed.expect("answers").len(), 1);
}

async fn a_receipt_without_a_result_still_ends_the_lookup(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for (id, outcome, end, error) in [
        (1, ABSENT, ABSENT, 43),
        (2, Outcome::Delivered, Outcome::Delivered, 0),
        (3, Outcome::Expired, TIMEOUT, 50),
    ] {
        send_lookup(&store, node, id).await;
        let matched = report(&store, node, vec![receipt(&id.to_string(), outcome)]).await;
        let payload = format!(r#"{{"id":"{id}","error":{error}}}"#);
        assert_reported(&store, ended(&matched[0]), end, &payload).await;
    }
}

async fn a_lookup_that_is_never_answered_is_refunded(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let start = balance(&store, acme).await;
    for (id, submission, expires_at) in [
        (1, lookup(1, node), past(9)),
        (2, held(2, node), past(9)),
        (3, lookup(3, node), future(0)),
    ] {
        let submission = Submission {
            expires_at,
            ..priced(submission, acme, 500)
        };
        accept(&store, vec![submission]).await;
        let mut result = first_result(id, taken(&[&id.to_string()]));
        result.expires_at = expires_at;
        settle(&store, node, vec![result]).await;
    }
    let mut expired = store.expire_sent(node, 10, true).await.expect("answers");
    expired.sort_unstable_by_key(|ended| ended.id);
    assert_eq!(ids(&expired), [1, 2]);
    let payload = |ended: &Ended| ended.callback.clone().expect("it is held").payload;
    let timeout = r#"{"id":"1","error":50}"#;
    assert_eq!(payload(&expired[0]), timeout);
    assert_eq!(payload(&expired[1]), r#"{"id":"2","status":16,"error":2}"#);
    let record = read_back(&store, acme, 1).await;
    assert_eq!(record.report.as_deref(), Some(timeout));
    assert_eq!(record.state.name(), "failed");
    let lost = 2 * 500;
    assert_eq!(
        balance(&store, acme).await,
        start - lost,
        "the lookup is refunded"
    );
    let late = report(&store, node, vec![answer(1, &subscriber(0))]).await;
    assert_eq!(late, [Matched::Repeated]);
    assert_eq!(read_back(&store, acme, 1).await, record);
    let silent = report(&store, node, vec![receipt("3", Outcome::Expired)]).await;
    ended(&silent[0]);
    assert_eq!(balance(&store, acme).await, start - 500);
    assert_balanced(&store).await;
}

async fn an_unheld_report_has_the_same_payload(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for id in 1..=2 {
        send_lookup(&store, node, id).await;
    }
    let batch = vec![answer(1, &subscriber(43)), receipt("2", ABSENT)];
    let matched = store.settle_receipts(node, Arc::new(batch), false).await;
    let matched = matched.expect("answers");
    assert!(matched.iter().all(|it| ended(it).callback.is_none()));
    let claimed = claim_callbacks(&store, node).await;
    let payload: Vec<_> = claimed
        .iter()
        .map(|it| (it.kind, it.payload.as_str()))
        .collect();
    let first = subscriber(43).payload(message(1));
    let expected = [first.as_str(), r#"{"id":"2","error":43}"#];
    assert_eq!(
        payload,
        expected.map(|payload| (CallbackKind::Lookup, payload))
    );
}

async fn a_reused_reference_has_no_old_report(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![lookup(1, node), lookup(2, node)]).await;
    report(&store, node, vec![answer(1, &subscriber(0))]).await;
    assert!(matches!(
        settle_accepted(&store, node, 1).await,
        Settled::Ended(_)
    ));
    let again = settle(&store, node, vec![first_result(2, taken(&["1"]))]).await;
    assert_eq!(again, [Settled::Stored]);
    let matched = report(&store, node, vec![receipt("1", ABSENT)]).await;
    assert_reported(
        &store,
        ended(&matched[0]),
        ABSENT,
        r#"{"id":"2","error":43}"#,
    )
    .await;
}

async fn a_report_of_a_message_shows_its_outcome(store: Arc<dyn Store>) {
    let node = join(&store).await;
    send(&store, node, 1, &["1"]).await;
    let matched = report(&store, node, vec![answer(1, &subscriber(43))]).await;
    let callback = ended(&matched[0]).callback.as_ref().expect("it is held");
    let payload = r#"{"id":"1","status":2,"error":43}"#;
    assert_eq!(
        (callback.kind, callback.payload.as_str()),
        (CallbackKind::Report, payload)
    );
    let listed = store.list_callbacks(&only(callback), EVERYTHING).await;
    assert_eq!(listed.expect("answers")[0].payload, payload);
}
