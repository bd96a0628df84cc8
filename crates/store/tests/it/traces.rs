//! Traces: stored with a message, and read with its claims, its end and its reports.

use std::sync::Arc;

use domain::message::Submission;
use domain::ports::{Accepted, Matched, Store, WorkStore};
use domain::{Outcome, TraceContext};

use super::sample::{accept, keyed};
use super::steps::{
    claim, claim_callbacks, due, first_result, held, join, past, receipt, release_all, report,
    result, settle, taken,
};

on_every_store!(
    a_trace_stays_with_its_message,
    messages_of_one_batch_keep_their_own_traces,
    a_report_has_the_trace_of_its_message;
    on_both_stores:
    a_trace_is_stored_with_an_idempotency_key,
    a_message_that_was_seen_is_reported_with_its_trace,
);

fn trace(number: u8) -> TraceContext {
    let header = format!("00-{number:032x}-00f067aa0ba902b7-01");
    TraceContext::parse(header.as_bytes()).expect("a header")
}

fn traced(submission: Submission, number: u8) -> Submission {
    Submission {
        trace: Some(trace(number)),
        ..submission
    }
}

async fn a_trace_stays_with_its_message(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![traced(due(1), 1)]).await;
    let claimed = claim(&store, node).await;
    assert_eq!(claimed[0].trace, Some(trace(1)));
    settle(&store, node, vec![result(&claimed[0], taken(&["a"]))]).await;
    let ended = report(&store, node, vec![receipt("a", Outcome::Delivered)]).await;
    let [Matched::Ended(ended)] = &ended[..] else {
        panic!("{ended:?}");
    };
    assert_eq!(ended.trace.as_deref(), Some(&trace(1)));
    let callback = ended.callback.as_ref().expect("it is held");
    assert_eq!(callback.trace.as_deref(), Some(&trace(1)));
}

async fn messages_of_one_batch_keep_their_own_traces(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let batch = vec![due(1), traced(due(2), 2), due(3), traced(due(4), 4), due(5)];
    accept(&store, batch).await;
    let mut claimed: Vec<_> = claim(&store, node)
        .await
        .into_iter()
        .map(|queued| (queued.id.get(), queued.trace))
        .collect();
    claimed.sort_unstable_by_key(|(id, _)| *id);
    let expected = [
        (1, None),
        (2, Some(trace(2))),
        (3, None),
        (4, Some(trace(4))),
        (5, None),
    ];
    assert_eq!(claimed, expected);
}

async fn a_report_has_the_trace_of_its_message(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![traced(due(1), 1), due(2)]).await;
    let claimed = claim(&store, node).await;
    let results = claimed
        .iter()
        .map(|queued| result(queued, taken(&[&format!("ref-{}", queued.id)])));
    settle(&store, node, results.collect()).await;
    let receipts = ["ref-1", "ref-2"].map(|name| receipt(name, Outcome::Delivered));
    report(&store, node, receipts.to_vec()).await;
    // As after a restart: another node reads them from the database.
    assert_eq!(release_all(&store, node).await, 2);
    let mut traces: Vec<_> = claim_callbacks(&store, node)
        .await
        .iter()
        .map(|callback| {
            let message = callback.message.map(domain::MessageId::get);
            (message, callback.trace.as_deref().copied())
        })
        .collect();
    traces.sort_unstable_by_key(|(message, _)| *message);
    assert_eq!(traces, [(Some(1), Some(trace(1))), (Some(2), None)]);
}

/// Such batches are stored in another way on one of the databases.
async fn a_trace_is_stored_with_an_idempotency_key(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let with_key = |id: u8| Submission {
        idempotency: keyed(1, id, id).idempotency,
        ..due(id.into())
    };
    let batch = vec![with_key(1), traced(with_key(2), 2)];
    assert_eq!(accept(&store, batch).await, [Accepted::Stored; 2]);
    let mut claimed = claim(&store, node).await;
    claimed.sort_unstable_by_key(|queued| queued.id);
    let traces: Vec<_> = claimed.iter().map(|queued| queued.trace).collect();
    assert_eq!(traces, [None, Some(trace(2))]);
}

async fn a_message_that_was_seen_is_reported_with_its_trace(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![traced(held(1, node), 1)]).await;
    settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    let of = receipt("a", Outcome::Delivered);
    report(&store, node, vec![of.clone()]).await;
    assert!(store.mark_seen(&of.of, past(9)).await.expect("answers"));
    let seen = claim_callbacks(&store, node).await;
    let traces: Vec<_> = seen
        .iter()
        .map(|callback| callback.trace.as_deref().copied())
        .collect();
    assert_eq!(traces, [Some(trace(1))]);
}
