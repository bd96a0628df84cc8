//! Messages of several parts: every order of the answer and the receipts has the same result.

use std::sync::Arc;

use domain::ports::{Matched, Settled, WorkStore};
use domain::{MessageState, NodeId, Outcome};

use super::sample::accept;
use super::steps::{
    ABSENT, first_result, held, join, kind, past, receipt, report, send, settle, state, taken,
};

on_every_store!(
    a_message_is_delivered_with_its_last_part,
    a_message_fails_with_its_first_failed_part,
    several_parts_may_be_reported_in_one_batch,
    every_order_has_the_same_result,
    parts_with_one_reference_are_reported_together,
);

const D: Outcome = Outcome::Delivered;

async fn kinds<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    batch: &[(&str, Outcome)],
) -> Vec<&'static str> {
    let batch = batch.iter().map(|(name, outcome)| receipt(name, *outcome));
    let matched = report(store, node, batch.collect()).await;
    matched.iter().map(kind).collect()
}

fn ended(outcome: Outcome) -> MessageState {
    MessageState::Ended {
        outcome,
        at: past(2),
    }
}

async fn a_message_is_delivered_with_its_last_part(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a", "b", "c"]).await;
    for (name, expected) in [
        ("b", "noted"),
        ("b", "repeated"),
        ("a", "noted"),
        ("c", "ended"),
        ("a", "repeated"),
    ] {
        let kinds = kinds(&store, node, &[(name, D)]).await;
        assert_eq!(kinds, [expected], "{name}");
    }
    assert_eq!(state(&store, 1).await, ended(D));
}

async fn a_message_fails_with_its_first_failed_part(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a", "b", "c"]).await;
    for (name, outcome, expected) in [
        ("b", D, "noted"),
        ("c", ABSENT, "ended"),
        ("a", Outcome::Expired, "repeated"),
    ] {
        let kinds = kinds(&store, node, &[(name, outcome)]).await;
        assert_eq!(kinds, [expected], "{name}");
    }
    assert_eq!(state(&store, 1).await, ended(ABSENT));
}

async fn several_parts_may_be_reported_in_one_batch(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for id in 1..=3 {
        let names = ["a", "b", "c"].map(|name| format!("{id}{name}"));
        send(&store, node, id, &[&names[0], &names[1], &names[2]]).await;
    }
    let batch = [
        ("1a", D),
        ("2a", D),
        ("1b", D),
        ("2b", ABSENT),
        ("3c", D),
        ("1c", D),
        ("2c", D),
    ];
    let expected = [
        "noted", "noted", "noted", "ended", "noted", "ended", "repeated",
    ];
    assert_eq!(kinds(&store, node, &batch).await, expected);
    for (id, expected) in [(1, ended(D)), (2, ended(ABSENT)), (3, MessageState::Sent)] {
        assert_eq!(state(&store, id).await, expected, "{id}");
    }
    assert_eq!(
        kinds(&store, node, &[("3a", D), ("3b", D)]).await,
        ["noted", "ended"]
    );
}

/// Counts how often the events of one message, in this order, end it.
async fn ends<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    id: u64,
    events: &[usize],
    last: Outcome,
) -> u32 {
    let names = ["a", "b", "c"].map(|name| format!("{id}{name}"));
    accept(store, vec![held(id, node)]).await;
    let mut ends = 0;
    for &event in events {
        let ended = if event == 3 {
            let answer = taken(&[&names[0], &names[1], &names[2]]);
            let settled = settle(store, node, vec![first_result(id, answer)]).await;
            matches!(settled[..], [Settled::Ended(_)])
        } else {
            let outcome = if event == 2 { last } else { D };
            let matched = report(store, node, vec![receipt(&names[event], outcome)]).await;
            matches!(matched[..], [Matched::Ended(_)])
        };
        ends += u32::from(ended);
    }
    ends
}

/// The answer (3) and the receipts of three parts (0 to 2).
async fn every_order_has_the_same_result(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let mut id = 0;
    for order in (0..256).map(|n: usize| [n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6 & 3]) {
        if (0..4).any(|event| !order.contains(&event)) {
            continue;
        }
        for last in [D, ABSENT] {
            id += 1;
            let ends = ends(&store, node, id, &order, last).await;
            assert_eq!(ends, 1, "{order:?}, {last:?}");
            let outcome = state(&store, id).await;
            assert_eq!(outcome, ended(last), "{order:?}");
        }
    }
    assert_eq!(id, 48);
    let expired = store.expire_sent(node, 100, true).await;
    assert_eq!(expired.expect("answers"), []);
}

async fn parts_with_one_reference_are_reported_together(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a", "a"]).await;
    assert_eq!(kinds(&store, node, &[("a", D)]).await, ["ended"]);
    assert_eq!(state(&store, 1).await, ended(D));
}
