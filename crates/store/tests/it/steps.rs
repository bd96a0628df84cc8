//! The steps of a message, for tests about sending.

use std::sync::Arc;

use domain::delivery::{
    Callback, CallbackAttempt, CallbackNext, CallbackSettlement, CarrierRef, Claim, QueuedMessage,
    Receipt, SendResult, Settlement,
};
use domain::message::{Holder, SendTime, Submission};
use domain::ports::{
    CallbackFilter, ClaimedCallbacks, Ended, HeartbeatResult, Matched, NodeInfo, ReplayCursor,
    Settled, StoreError, WorkStore,
};
use domain::{CallbackUrl, Code, MessageState, NodeId, Outcome, ReceiverId, Timestamp};
use jiff::SignedDuration;

use super::sample::{accept, account, message, submission};

pub(crate) const ABSENT: Outcome = Outcome::Failed(Code::ABSENT);
pub(crate) const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A time long ago, by the clock of every database, plus a number of seconds.
pub(crate) fn past(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).expect("within range")
}

/// A time far ahead plus a number of seconds.
pub(crate) fn future(second: i64) -> Timestamp {
    Timestamp::from_second(4_000_000_000 + second).expect("within range")
}

/// A carrier got a message and did not answer. It is sent again at this time.
pub(crate) fn unanswered(again: Timestamp) -> SendResult {
    SendResult::Unknown {
        carrier: "alpha".to_owned(),
        again,
    }
}

pub(crate) async fn join<S: WorkStore + ?Sized>(store: &Arc<S>) -> NodeId {
    join_for(store, HOUR).await
}

/// A node with this lifetime.
pub(crate) async fn join_for<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    lifetime: SignedDuration,
) -> NodeId {
    let joined = store.join(&info(), SignedDuration::ZERO, lifetime).await;
    joined.expect("a node joins")
}

pub(crate) async fn renew_heartbeat<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
) -> HeartbeatResult {
    store.renew_heartbeat(node, HOUR).await.expect("answers")
}

/// The description of a node.
pub(crate) fn info() -> NodeInfo {
    NodeInfo {
        roles: vec!["api".to_owned(), "worker".to_owned()],
        works: true,
        version: "1.2.3".to_owned(),
        host: "machine".to_owned(),
        listen: "127.0.0.1:8080".to_owned(),
    }
}

/// A message that was due long ago, expires far ahead, and asks for a delivery report.
pub(crate) fn due(id: u64) -> Submission {
    Submission {
        accepted_at: past(0),
        expires_at: future(0),
        dlr_url: Some(url("https://example.com/dlr")),
        ..submission(id, 1)
    }
}

/// A message that this node holds from the start.
pub(crate) fn held(id: u64, node: NodeId) -> Submission {
    Submission {
        holder: Holder::Node(node),
        ..due(id)
    }
}

/// A message that is scheduled for a time.
pub(crate) fn due_at(id: u64, time: Timestamp) -> Submission {
    Submission {
        send: SendTime::At(time),
        ..due(id)
    }
}

pub(crate) fn url(text: &str) -> CallbackUrl {
    CallbackUrl::parse(text).expect("a URL")
}

/// The result of the first attempt of a message that was held from the start.
pub(crate) fn first_result(id: u64, sent: SendResult) -> Settlement {
    let submission = due(id);
    Settlement {
        id: message(id),
        priority: submission.priority,
        claim: Claim {
            due_at: submission.due_at(),
            attempt: 1,
        },
        to: submission.recipients[0].to,
        expires_at: submission.expires_at,
        sent,
        cost: None,
        at: past(1),
    }
}

/// The result of an attempt of a claimed message.
pub(crate) fn result(queued: &QueuedMessage, sent: SendResult) -> Settlement {
    Settlement {
        id: queued.id,
        priority: queued.priority,
        claim: queued.claim,
        to: queued.to,
        expires_at: queued.expires_at,
        sent,
        cost: None,
        at: past(1),
    }
}

pub(crate) fn taken(references: &[&str]) -> SendResult {
    SendResult::Taken {
        carrier: "alpha".to_owned(),
        references: references.iter().map(|&name| name.to_owned()).collect(),
    }
}

pub(crate) fn receipt(reference: &str, outcome: Outcome) -> Receipt {
    Receipt {
        of: CarrierRef {
            carrier: "alpha".to_owned(),
            reference: reference.to_owned(),
        },
        to: None,
        outcome,
        report: None,
        network: None,
        at: past(2),
    }
}

pub(crate) async fn claim<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
) -> Vec<QueuedMessage> {
    let claimed = store.claim_due(node, [1_000; 3], &[]).await;
    claimed.expect("the store answers").messages
}

/// Stores results; the node holds the delivery reports.
pub(crate) async fn settle<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    batch: Vec<Settlement>,
) -> Vec<Settled> {
    let settled = store.settle_sends(node, Arc::new(batch), true).await;
    settled.expect("the store accepts the batch")
}

/// Stores receipts; the node holds the delivery reports.
pub(crate) async fn report<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    batch: Vec<Receipt>,
) -> Vec<Matched> {
    let matched = store.settle_receipts(node, Arc::new(batch), true).await;
    matched.expect("the store accepts the batch")
}

/// Accepts a message that the node holds, and stores these carrier references.
pub(crate) async fn send<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    id: u64,
    references: &[&str],
) {
    accept(store, vec![held(id, node)]).await;
    let settled = settle(store, node, vec![first_result(id, taken(references))]).await;
    assert_eq!(settled, [Settled::Stored]);
}

/// Sends a message and stores its receipt; the node holds the delivery report.
pub(crate) async fn deliver<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    id: u64,
) -> Callback {
    let reference = format!("ref-{id}");
    send(store, node, id, &[&reference]).await;
    let mut matched = report(store, node, vec![receipt(&reference, Outcome::Delivered)]).await;
    match matched.pop() {
        Some(Matched::Ended(ended)) => ended.callback.expect("it is held"),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn state<S: WorkStore + ?Sized>(store: &Arc<S>, id: u64) -> MessageState {
    let found = store.find_message(account(1), message(id)).await;
    found.expect("answers").expect("it is there").state
}

/// The result of a receipt, as a short name for tables.
pub(crate) fn kind(matched: &Matched) -> &'static str {
    match matched {
        Matched::Ended(_) => "ended",
        Matched::Noted => "noted",
        Matched::Repeated => "repeated",
        Matched::Kept => "kept",
    }
}

pub(crate) fn ids(ended: &[Ended]) -> Vec<u64> {
    ended.iter().map(|ended| ended.id.get()).collect()
}

pub(crate) fn attempt(second: i64) -> CallbackAttempt {
    CallbackAttempt {
        at: past(second),
        status: Some(500),
        elapsed_ms: 12,
        body: b"no\0pe".to_vec(),
        address: Some("192.0.2.1:443".to_owned()),
        reason: "the answer's status was 500, not 2xx\0".to_owned(),
    }
}

pub(crate) fn attempted(
    callback: &Callback,
    next: CallbackNext,
    second: i64,
) -> CallbackSettlement {
    CallbackSettlement {
        id: callback.id,
        message: callback.message,
        claim: callback.claim,
        attempt: Some(attempt(second)),
        next,
    }
}

/// Stores the result of one attempt.
pub(crate) async fn settle_callback<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    settlement: CallbackSettlement,
) -> bool {
    let settled = store
        .settle_callbacks(node, Arc::new(vec![settlement]))
        .await;
    settled.expect("the store accepts the batch") == [true]
}

pub(crate) async fn claim_callbacks<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
) -> Vec<Callback> {
    claim_from(store, node, &[]).await.due
}

/// Claims callbacks that are due, and callbacks from the queues of these receivers.
pub(crate) async fn claim_from<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    queues: &[(ReceiverId, u32)],
) -> ClaimedCallbacks {
    let claimed = store.claim_callbacks(node, 1_000, queues).await;
    claimed.expect("the store answers")
}

/// Releases all callbacks that a node holds.
pub(crate) async fn release_all<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId) -> u64 {
    let age = SignedDuration::from_hours(-1);
    let held = store.list_held_callbacks(node, age, None, 1_000).await;
    let held = held.expect("answers");
    store.release_callbacks(node, held).await.expect("answers")
}

/// Replays callbacks step by step, and returns how many.
pub(crate) async fn replay_all<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    filter: &CallbackFilter,
) -> Result<u64, StoreError> {
    let (mut count, mut next) = (0, Some(ReplayCursor::START));
    while let Some(from) = next {
        let step = store.replay_callbacks(filter, from).await?;
        count += step.count;
        next = step.next;
    }
    Ok(count)
}
