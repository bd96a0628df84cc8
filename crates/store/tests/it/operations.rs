//! What operators see.

use std::sync::Arc;

use domain::delivery::CallbackNext;
use domain::message::{Priority, Submission};
use domain::ports::{Queue, Store};
use jiff::SignedDuration;

use super::sample::{accept, account, message};
use super::steps::{
    ABSENT, HOUR, attempted, deliver, due, due_at, future, held, info, join, receipt, report, send,
    settle_callback, url,
};

on_both_stores!(
    nodes_and_what_they_hold_are_listed,
    nodes_are_described,
    every_queue_is_counted,
    overdue_messages_are_listed,
    unmatched_receipts_are_listed,
    callbacks_are_counted_by_host,
);

async fn nodes_and_what_they_hold_are_listed(store: Arc<dyn Store>) {
    let (node, idle) = (join(&store).await, join(&store).await);
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let nodes = store.list_nodes().await.expect("answers");
    let nodes: Vec<_> = nodes
        .iter()
        .map(|status| (status.node, status.is_dead, status.holds.0))
        .collect();
    assert_eq!(nodes, [(node, false, 2), (idle, false, 0)]);
}

/// The schema version is that of the program that joined, and the time is that of the database.
async fn nodes_are_described(store: Arc<dyn Store>) {
    let joined = store
        .join(&info(), SignedDuration::from_mins(5), HOUR)
        .await
        .expect("joins");
    let nodes = store.list_nodes().await.expect("answers");
    let [node] = &nodes[..] else {
        panic!("{nodes:?}")
    };
    let facts = node.facts.as_ref().expect("it is described");
    assert_eq!((node.node, &facts.info), (joined, &info()));
    assert_eq!(i64::from(facts.schema), store::Schema::current().level());
    // Its lifetime is an hour, and it joined five minutes after its start.
    let between = node.alive_until.duration_since(facts.started_at);
    assert_eq!(between, SignedDuration::from_mins(65));
}

async fn every_queue_is_counted(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let urgent = Submission {
        priority: Priority::High,
        ..due(1)
    };
    accept(
        &store,
        vec![urgent, due(2), due(3), due_at(4, future(9)), held(5, node)],
    )
    .await;
    send(&store, node, 6, &["six"]).await;
    deliver(&store, node, 7).await;
    let parked = deliver(&store, node, 8).await;
    settle_callback(&store, node, attempted(&parked, CallbackNext::Parked, 3)).await;
    let later = deliver(&store, node, 9).await;
    let postponed = CallbackNext::Later(future(5));
    settle_callback(&store, node, attempted(&later, postponed, 3)).await;

    let depths = store.list_queues().await.expect("answers");
    let expected = [
        (Queue::Due(Priority::High), 1),
        (Queue::Due(Priority::Normal), 2),
        (Queue::Due(Priority::Low), 0),
        (Queue::Later(Priority::Normal), 1),
        (Queue::Held, 1),
        (Queue::Sent, 1),
        (Queue::CallbacksDue, 1),
        (Queue::CallbacksLater, 1),
        (Queue::CallbacksParked, 1),
    ];
    for (queue, count) in expected {
        let depth = depths.iter().find(|depth| depth.queue == queue);
        let depth = depth.expect("every queue is listed");
        assert_eq!(depth.count.0, count, "{queue:?}");
    }
    let first_at = |queue| {
        let depth = depths.iter().find(|depth| depth.queue == queue);
        depth.and_then(|depth| depth.first_at)
    };
    assert_eq!(first_at(Queue::Later(Priority::Normal)), Some(future(9)));
    assert_eq!(first_at(Queue::CallbacksLater), Some(future(5)));
    assert_eq!(first_at(Queue::Due(Priority::Low)), None);
}

async fn overdue_messages_are_listed(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![due(1), due_at(2, future(1)), held(3, node)]).await;
    let overdue = store.list_overdue(SignedDuration::from_mins(5), 10).await;
    let overdue = overdue.expect("answers");
    let listed: Vec<_> = overdue
        .iter()
        .map(|row| (row.id, row.account, row.node, row.attempts))
        .collect();
    let expected = [
        (message(1), account(1), None, 0),
        (message(3), account(1), Some(node), 0),
    ];
    assert_eq!(listed, expected);
    let few = store.list_overdue(SignedDuration::from_mins(5), 1).await;
    assert_eq!(few.expect("answers").len(), 1);
}

async fn unmatched_receipts_are_listed(store: Arc<dyn Store>) {
    let node = join(&store).await;
    send(&store, node, 1, &["known"]).await;
    let mut late = receipt("later", ABSENT);
    late.at += SignedDuration::from_secs(1);
    let receipts = vec![receipt("unknown", ABSENT), late, receipt("known", ABSENT)];
    report(&store, node, receipts).await;
    let unmatched = store.list_unmatched(10).await.expect("answers");
    let listed: Vec<_> = unmatched
        .iter()
        .map(|row| (row.carrier.as_str(), row.reference.as_str(), row.outcome))
        .collect();
    let expected = [
        ("alpha", "later", Some(ABSENT)),
        ("alpha", "unknown", Some(ABSENT)),
    ];
    assert_eq!(listed, expected);
    assert_eq!(store.list_unmatched(1).await.expect("answers").len(), 1);
}

async fn callbacks_are_counted_by_host(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for (id, to) in [(1, "https://A.example/x"), (2, "https://a.example/y")] {
        let parked = reported_to(&store, node, id, to).await;
        settle_callback(&store, node, attempted(&parked, CallbackNext::Parked, 3)).await;
    }
    reported_to(&store, node, 3, "http://b.example:8080?z").await;
    let receivers = store.list_receivers(None).await.expect("answers");
    let listed: Vec<_> = receivers
        .iter()
        .map(|row| {
            (
                row.address.as_str(),
                row.host.as_str(),
                row.waiting.0,
                row.parked.0,
            )
        })
        .collect();
    let expected = [
        ("https://a.example", "a.example", 0, 2),
        ("http://b.example:8080", "b.example:8080", 1, 0),
    ];
    assert_eq!(listed, expected);
    assert!(receivers[0].last_reason.is_some() && receivers[1].last_reason.is_none());
    let mine = store.list_receivers(Some(account(1))).await;
    assert_eq!(mine.expect("answers"), receivers);
    let theirs = store.list_receivers(Some(account(2))).await;
    assert_eq!(theirs.expect("answers"), []);
}

/// Ends a message whose report goes to this URL.
async fn reported_to(
    store: &Arc<dyn Store>,
    node: domain::NodeId,
    id: u64,
    to: &str,
) -> domain::delivery::Callback {
    let one = Submission {
        dlr_url: Some(url(to)),
        ..held(id, node)
    };
    accept(store, vec![one]).await;
    let name = format!("ref-{id}");
    let taken = super::steps::first_result(id, super::steps::taken(&[&name]));
    super::steps::settle(store, node, vec![taken]).await;
    let ended = report(store, node, vec![receipt(&name, ABSENT)]).await;
    let [domain::ports::Matched::Ended(ended)] = &ended[..] else {
        panic!("{ended:?}")
    };
    ended.callback.clone().expect("it is held")
}
