//! The queues of receivers: how callbacks are found and claimed, and which of them a node holds.

use std::sync::Arc;

use domain::delivery::{Callback, CallbackNext, CallbackSettlement};
use domain::message::Submission;
use domain::ports::{
    CallbackFilter, CallbackState, ClaimedCallbacks, HeldCallback, Matched, Queue, ReplayRequest,
    Store, WorkStore,
};
use domain::{NodeId, Origin, Outcome, ReceiverId};
use jiff::SignedDuration;

use super::sample::{EVERYTHING, accept, account};
use super::steps::{
    attempted, claim_callbacks, claim_from, first_result, future, held, join, join_for, past,
    receipt, replay_all, report, settle, settle_callback, taken, url,
};

on_every_store!(
    a_requeued_callback_keeps_its_position,
    a_claim_is_limited_to_its_queues_and_their_limits,
    queues_are_listed_step_by_step,
    a_queue_outlives_its_node,
    held_callbacks_are_listed_page_by_page,
    a_callback_claimed_again_is_not_released;
    on_both_stores:
    queued_callbacks_cost_no_attempt_and_count_as_due,
    a_replay_counts_queued_callbacks_and_keeps_their_position,
    a_replay_tells_the_nodes_which_receivers_to_retry,
);

/// An age that even callbacks due in the future have.
const ANY_AGE: SignedDuration = SignedDuration::from_hours(-1_000_000);

/// Creates a held report to this address.
pub(super) async fn deliver_to<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    id: u64,
    address: &str,
) -> Callback {
    let submission = Submission {
        dlr_url: Some(url(address)),
        ..held(id, node)
    };
    accept(store, vec![submission]).await;
    let reference = format!("ref-{id}");
    let answer = first_result(id, taken(&[&reference]));
    settle(store, node, vec![answer]).await;
    let matched = report(store, node, vec![receipt(&reference, Outcome::Delivered)]).await;
    match matched.into_iter().next() {
        Some(Matched::Ended(ended)) => ended.callback.expect("it is held"),
        other => panic!("{other:?}"),
    }
}

pub(super) fn receiver_of(callback: &Callback) -> ReceiverId {
    ReceiverId::new(callback.account, &Origin::from_url(&callback.url))
}

/// Puts a callback into the queue of its receiver, without an attempt.
async fn requeue<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId, callback: &Callback) -> bool {
    let settlement = CallbackSettlement {
        id: callback.id,
        message: callback.message,
        claim: callback.claim,
        attempt: None,
        next: CallbackNext::Queued(receiver_of(callback)),
    };
    settle_callback(store, node, settlement).await
}

/// Puts new reports into the queue of one receiver.
pub(super) async fn queue_up<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    ids: std::ops::RangeInclusive<u64>,
    address: &str,
) -> Vec<Callback> {
    let mut callbacks = Vec::new();
    for id in ids {
        let callback = deliver_to(store, node, id, address).await;
        assert!(requeue(store, node, &callback).await);
        callbacks.push(callback);
    }
    callbacks
}

pub(super) fn ids(callbacks: &[Callback]) -> Vec<u64> {
    callbacks.iter().map(|callback| callback.id.get()).collect()
}

async fn list_queues<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    after: Option<ReceiverId>,
    limit: u32,
) -> Vec<ReceiverId> {
    let listed = store.list_receiver_queues(after, limit).await;
    listed.expect("answers")
}

async fn a_requeued_callback_keeps_its_position(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let queued = queue_up(&store, node, 1..=3, "https://one.example/dlr").await;
    assert!(!requeue(&store, node, &queued[0]).await, "it is not held");
    assert_eq!(claim_callbacks(&store, node).await, [], "it is not due");
    let receiver = receiver_of(&queued[0]);
    let first = claim_from(&store, other, &[(receiver, 1)]).await;
    assert_eq!(ids(&first.queued), ids(&queued[..1]), "the oldest first");
    let again = &first.queued[0];
    assert_eq!((again.tries, again.claim.attempt), (0, 2));
    assert_eq!(again.claim.due_at, queued[0].claim.due_at);
    assert!(requeue(&store, other, again).await);
    let all = claim_from(&store, node, &[(receiver, 10)]).await;
    assert_eq!(
        ids(&all.queued),
        ids(&queued),
        "in the same order as before"
    );
    assert_eq!(list_queues(&store, None, 10).await, []);
}

async fn a_claim_is_limited_to_its_queues_and_their_limits(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let one = queue_up(&store, node, 1..=3, "https://one.example/dlr").await;
    let two = queue_up(&store, node, 4..=6, "https://two.example/dlr").await;
    queue_up(&store, node, 7..=9, "https://three.example/dlr").await;
    let due = deliver_to(&store, node, 10, "https://one.example/dlr").await;
    let later = attempted(&due, CallbackNext::Later(past(5)), 3);
    assert!(settle_callback(&store, node, later).await);
    let queues = [(receiver_of(&one[0]), 2), (receiver_of(&two[0]), 5)];
    let claimed = claim_from(&store, node, &queues).await;
    assert_eq!(ids(&claimed.due), [due.id.get()]);
    let mut waiting = ids(&claimed.queued);
    waiting.sort_unstable();
    assert_eq!(waiting, [ids(&one[..2]), ids(&two)].concat());
    let nothing = store.claim_callbacks(node, 0, &[]).await;
    assert_eq!(nothing.expect("answers"), ClaimedCallbacks::default());
}

async fn queues_are_listed_step_by_step(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    assert_eq!(list_queues(&store, None, 10).await, []);
    let mut expected = Vec::new();
    for host in 0..5 {
        let address = format!("https://host{host}.example/dlr");
        let first = host * 10 + 1;
        let queued = queue_up(&store, node, first..=first + 2, &address).await;
        expected.push(receiver_of(&queued[0]));
    }
    let all = list_queues(&store, None, 10).await;
    let mut sorted = all.clone();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected, "each once");
    let (first, rest) = (list_queues(&store, None, 2).await, all[2..].to_vec());
    assert_eq!(first, all[..2]);
    assert_eq!(list_queues(&store, Some(first[1]), 10).await, rest);
    assert_eq!(list_queues(&store, all.last().copied(), 10).await, []);
}

async fn queued_callbacks_cost_no_attempt_and_count_as_due(store: Arc<dyn Store>) {
    let node = join(&store).await;
    queue_up(&store, node, 1..=3, "https://one.example/dlr").await;
    let listed = store
        .list_callbacks(&CallbackFilter::default(), EVERYTHING)
        .await;
    let listed = listed.expect("answers");
    assert_eq!(listed.len(), 3);
    for record in &listed {
        assert!(matches!(record.state, CallbackState::Waiting { .. }));
        assert_eq!((record.tries, &record.last), (0, &None));
    }
    let queues = store.list_queues().await.expect("answers");
    let due = queues
        .iter()
        .find(|depth| depth.queue == Queue::CallbacksDue);
    let due = due.expect("every queue is listed");
    assert_eq!(due.count.0, 3);
    assert!(due.first_at.is_some());
    let receivers = store.list_receivers(None).await.expect("answers");
    assert_eq!(receivers.len(), 1);
    assert_eq!(receivers[0].address, "https://one.example");
    assert_eq!(receivers[0].waiting.0, 3);
}

async fn a_queue_outlives_its_node(store: Arc<dyn WorkStore>) {
    let dead = join_for(&store, SignedDuration::from_secs(-1)).await;
    let queued = queue_up(&store, dead, 1..=1, "https://one.example/dlr").await;
    let held = deliver_to(&store, dead, 2, "https://one.example/dlr").await;
    let node = join(&store).await;
    store.remove_dead_nodes(node).await.expect("answers");
    let claimed = claim_from(&store, node, &[(receiver_of(&held), 10)]).await;
    assert_eq!(ids(&claimed.due), [held.id.get()], "the dead node held it");
    assert_eq!(ids(&claimed.queued), ids(&queued), "no node held it");
}

async fn a_replay_counts_queued_callbacks_and_keeps_their_position(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let queued = queue_up(&store, node, 1..=3, "https://one.example/dlr").await;
    let later = deliver_to(&store, node, 4, "https://one.example/dlr").await;
    let done = deliver_to(&store, node, 5, "https://one.example/dlr").await;
    let held = deliver_to(&store, node, 6, "https://one.example/dlr").await;
    let next = CallbackNext::Later(future(0));
    assert!(settle_callback(&store, node, attempted(&later, next, 3)).await);
    assert!(settle_callback(&store, node, attempted(&done, CallbackNext::Done, 3)).await);
    let everything = CallbackFilter::default();
    let replayed = replay_all(&store, &everything).await;
    assert_eq!(replayed.expect("answers"), 4, "three queued, one later");
    let with_done = CallbackFilter {
        with_done: true,
        ..everything
    };
    let replayed = replay_all(&store, &with_done).await;
    assert_eq!(replayed.expect("answers"), 5);
    let one = CallbackFilter {
        id: Some(queued[1].id),
        ..CallbackFilter::default()
    };
    let replayed = replay_all(&store, &one).await;
    assert_eq!(replayed.expect("answers"), 1);
    let claimed = claim_from(&store, node, &[(receiver_of(&held), 10)]).await;
    assert_eq!(claimed.due.len(), 2);
    assert_eq!(ids(&claimed.queued), ids(&queued));
}

async fn a_replay_tells_the_nodes_which_receivers_to_retry(store: Arc<dyn Store>) {
    let node = join(&store).await;
    assert_eq!(store.list_replay_requests(0).await.expect("answers"), []);
    let callback = deliver_to(&store, node, 1, "https://one.example/a").await;
    for filter in [
        CallbackFilter {
            url_prefix: Some("https://two.".to_owned()),
            account: Some(account(7)),
            ..CallbackFilter::default()
        },
        CallbackFilter {
            id: Some(callback.id),
            ..CallbackFilter::default()
        },
    ] {
        replay_all(&store, &filter).await.expect("answers");
    }
    let requests = store.list_replay_requests(0).await.expect("answers");
    let key = |request: &ReplayRequest| (request.account, request.url_prefix.clone());
    let expected = [
        (Some(account(7)), "https://two.".to_owned()),
        (Some(callback.account), "https://one.example/a".to_owned()),
    ];
    assert_eq!(requests.iter().map(key).collect::<Vec<_>>(), expected);
    assert!(requests[0].number < requests[1].number);
    let newer = store.list_replay_requests(requests[0].number).await;
    assert_eq!(newer.expect("answers"), requests[1..]);
}

fn row(callback: &Callback) -> HeldCallback {
    HeldCallback {
        id: callback.id,
        claim: callback.claim,
    }
}

async fn held_callbacks_are_listed_page_by_page(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let mut held = Vec::new();
    for id in 1..=5 {
        let callback = deliver_to(&store, node, id, "https://one.example/dlr").await;
        held.push(row(&callback));
    }
    deliver_to(&store, other, 6, "https://one.example/dlr").await;
    queue_up(&store, node, 7..=7, "https://one.example/dlr").await;
    let list = async |age, after, limit| {
        let listed = store.list_held_callbacks(node, age, after, limit).await;
        listed.expect("answers")
    };
    assert_eq!(list(ANY_AGE, None, 10).await, held);
    assert_eq!(list(ANY_AGE, None, 2).await, held[..2]);
    assert_eq!(list(ANY_AGE, Some(held[1]), 2).await, held[2..4]);
    assert_eq!(list(ANY_AGE, Some(held[4]), 2).await, []);
    let recent = list(SignedDuration::from_hours(1), None, 10).await;
    assert_eq!(recent, [], "all became due only recently");
}

async fn a_callback_claimed_again_is_not_released(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let callback = deliver_to(&store, node, 1, "https://one.example/dlr").await;
    let release = async |node, held| {
        let released = store.release_callbacks(node, vec![held]).await;
        released.expect("answers")
    };
    assert_eq!(release(other, row(&callback)).await, 0, "another node");
    assert_eq!(release(node, row(&callback)).await, 1);
    assert_eq!(release(node, row(&callback)).await, 0, "released before");
    let again = claim_callbacks(&store, node).await.remove(0);
    assert_eq!(release(node, row(&callback)).await, 0, "an older claim");
    assert!(settle_callback(&store, node, attempted(&again, CallbackNext::Done, 3)).await);
    assert_eq!(release(node, row(&again)).await, 0, "it is settled");
    let nothing = store.release_callbacks(node, Vec::new()).await;
    assert_eq!(nothing.expect("answers"), 0);
}
