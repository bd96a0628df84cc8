//! Listing the messages that a node holds, and releasing them.

use std::sync::Arc;

use domain::NodeId;
use domain::delivery::{Claim, QueuedMessage};
use domain::message::{Priority, Submission};
use domain::ports::{ClaimedRow, Settled, WorkStore};
use jiff::SignedDuration;

use super::sample::{accept, message};
use super::steps::{claim, due_at, first_result, held, join, past, settle, taken};

on_every_store!(
    held_messages_are_listed_page_by_page,
    recently_due_messages_are_not_listed,
    a_released_message_can_be_claimed_by_any_node,
    only_the_given_claim_is_released,
);

/// No minimum age.
const AT_ONCE: SignedDuration = SignedDuration::ZERO;

async fn list<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId) -> Vec<ClaimedRow> {
    let listed = store.list_held(node, AT_ONCE, None, 100).await;
    listed.expect("answers")
}

async fn release<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId, rows: &[ClaimedRow]) -> u64 {
    store.release_held(node, rows).await.expect("answers")
}

fn row(queued: &QueuedMessage) -> ClaimedRow {
    ClaimedRow {
        id: queued.id,
        priority: queued.priority,
        claim: queued.claim,
    }
}

fn in_lane(id: u64, priority: Priority, second: i64) -> Submission {
    Submission {
        priority,
        ..due_at(id, past(second))
    }
}

async fn held_messages_are_listed_page_by_page(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let batch = vec![
        in_lane(1, Priority::Low, 1),
        in_lane(2, Priority::Normal, 9),
        in_lane(3, Priority::Normal, 2),
        in_lane(4, Priority::High, 5),
        in_lane(5, Priority::High, 5),
        in_lane(6, Priority::Low, 1),
    ];
    accept(&store, batch).await;
    let claimed: Vec<_> = claim(&store, node).await.iter().map(row).collect();
    accept(&store, vec![held(7, other), due_at(8, past(3))]).await;
    assert_eq!(
        list(&store, node).await,
        claimed,
        "its own messages, in order"
    );
    for size in 1..=7 {
        let mut pages = Vec::new();
        loop {
            let after = pages.last().copied();
            let page = store.list_held(node, AT_ONCE, after, size).await;
            let page = page.expect("answers");
            assert!(page.len() <= size as usize, "{size}");
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, claimed, "in pages of {size}");
    }
}

async fn recently_due_messages_are_not_listed(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let now = store.now().await.expect("answers");
    let fresh = Submission {
        accepted_at: now,
        ..held(1, node)
    };
    accept(&store, vec![fresh, held(2, node)]).await;
    let hour = SignedDuration::from_hours(1);
    let listed = store.list_held(node, hour, None, 100).await;
    let listed = listed.expect("answers").into_iter().map(|row| row.id);
    assert_eq!(listed.collect::<Vec<_>>(), [message(2)]);
    assert_eq!(list(&store, node).await.len(), 2, "both are due");
}

async fn a_released_message_can_be_claimed_by_any_node(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let rows = list(&store, node).await;
    assert_eq!(
        rows.iter().map(|row| row.id.get()).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(release(&store, node, &rows[..1]).await, 1);
    assert_eq!(
        release(&store, node, &rows[..1]).await,
        0,
        "released before"
    );
    let claimed = claim(&store, other).await;
    let expected = ClaimedRow {
        claim: Claim {
            attempt: 2,
            ..rows[0].claim
        },
        ..rows[0]
    };
    assert_eq!(claimed.iter().map(row).collect::<Vec<_>>(), [expected]);
    assert_eq!(
        release(&store, node, &rows[..1]).await,
        0,
        "claimed by another node"
    );
    assert_eq!(list(&store, node).await, rows[1..]);
    let late = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(late, [Settled::Stale]);
}

async fn only_the_given_claim_is_released(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    accept(&store, vec![held(1, node)]).await;
    let right = list(&store, node).await[0];
    let with = |claim| ClaimedRow { claim, ..right };
    let second = SignedDuration::from_secs(1);
    let wrong = [
        ClaimedRow {
            id: message(2),
            ..right
        },
        ClaimedRow {
            priority: Priority::Low,
            ..right
        },
        with(Claim {
            attempt: 2,
            ..right.claim
        }),
        with(Claim {
            due_at: right.claim.due_at + second,
            ..right.claim
        }),
    ];
    assert_eq!(release(&store, node, &wrong).await, 0);
    assert_eq!(
        release(&store, other, &[right]).await,
        0,
        "held by another node"
    );
    assert_eq!(list(&store, node).await, [right]);
    let settled = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(settled, [Settled::Stored]);
    assert_eq!(release(&store, node, &[right]).await, 0, "settled already");
    assert_eq!(release(&store, node, &[]).await, 0);
}
