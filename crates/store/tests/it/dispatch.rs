//! Claims, and the results of attempts to send.

use std::sync::Arc;

use domain::delivery::{Claim, QueuedMessage, SendResult, Settlement};
use domain::message::text::{Coding, Shape, Udh};
use domain::message::{Priority, Submission, TestMode};
use domain::ports::{Cancel, Settled, Store, WorkStore};
use domain::{MessageState, Originator, Outcome, Timestamp};
use jiff::SignedDuration;

use super::sample::{accept, account, message};
use super::steps::{
    ABSENT, claim, due, due_at, first_result, future, held, join, past, result, settle, state,
    taken,
};

on_every_store!(
    claims_take_the_most_urgent_and_the_earliest_first,
    each_lane_has_its_own_limit,
    nothing_is_claimed_before_its_time,
    a_queued_message_equals_its_submission,
    a_message_held_from_the_start_is_not_claimed,
    settling_with_another_claim_changes_nothing,
    a_later_attempt_gets_the_next_number,
    a_final_result_ends_the_message_at_once,
    a_result_counts_once;
    on_both_stores:
    a_claimed_message_cannot_be_cancelled,
);

fn in_lane(id: u64, priority: Priority, second: i64) -> Submission {
    Submission {
        priority,
        ..due_at(id, past(second))
    }
}

fn numbers(messages: &[QueuedMessage]) -> Vec<u64> {
    messages.iter().map(|queued| queued.id.get()).collect()
}

async fn claims_take_the_most_urgent_and_the_earliest_first(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let batch = vec![
        in_lane(1, Priority::Low, 1),
        in_lane(2, Priority::Normal, 9),
        in_lane(3, Priority::Normal, 2),
        in_lane(4, Priority::High, 5),
        in_lane(5, Priority::High, 5),
        due_at(6, future(1)),
    ];
    accept(&store, batch).await;
    let claimed = claim(&store, node).await;
    assert_eq!(numbers(&claimed), [4, 5, 3, 2, 1]);
    assert_eq!(claim(&store, node).await, [], "each is claimed once");
    assert_eq!(state(&store, 3).await, MessageState::Queued);
    let waiting = MessageState::Scheduled { at: future(1) };
    assert_eq!(state(&store, 6).await, waiting);
}

async fn each_lane_has_its_own_limit(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let lanes = [Priority::High, Priority::Normal, Priority::Low];
    let batch = (1..=12).map(|id| in_lane(id, lanes[(id % 3) as usize], 0));
    accept(&store, batch.collect()).await;
    for (limits, expected) in [
        ([1, 0, 2], &[3, 2, 5][..]),
        ([0, 0, 0], &[]),
        ([9, 1, 0], &[6, 9, 12, 1]),
        ([9, 9, 9], &[4, 7, 10, 8, 11]),
    ] {
        let claimed = store.claim_due(node, limits, &[]).await;
        let claimed = claimed.expect("answers").messages;
        assert_eq!(numbers(&claimed), expected, "{limits:?}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the database's clock is the wall clock"
)]
async fn nothing_is_claimed_before_its_time(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let time = Timestamp::now() + SignedDuration::from_millis(300);
    accept(&store, vec![due_at(1, time)]).await;
    let mut claimed = Vec::new();
    while claimed.is_empty() {
        assert!(
            Timestamp::now() < time + SignedDuration::from_mins(1),
            "never claimed"
        );
        claimed = claim(&store, node).await;
    }
    assert!(Timestamp::now() >= time, "claimed too early");
}

async fn a_queued_message_equals_its_submission(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let rare = Submission {
        account: account(9),
        from: Originator::parse("+37120000001").ok(),
        text: "0\0ä".to_owned(),
        shape: Shape {
            coding: Coding::Binary,
            parts: 3,
        },
        udh: Some(Udh::from_bytes(&[5, 0, 3, 42, 2, 1]).expect("a header")),
        priority: Priority::Low,
        test_mode: Some(TestMode::Fail),
        expires_at: future(5),
        ..due_at(7, past(3))
    };
    accept(&store, vec![rare.clone(), due(8)]).await;
    let queued = |submission: Submission| QueuedMessage {
        channel: submission.channel,
        interactive: submission.interactive.clone(),
        id: submission.recipients[0].id,
        account: submission.account,
        to: submission.recipients[0].to,
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: submission.trace,
        claim: Claim {
            due_at: submission.due_at(),
            attempt: 1,
        },
        from: submission.from,
        text: submission.text,
        shape: submission.shape,
        udh: submission.udh,
        priority: submission.priority,
        test_mode: submission.test_mode,
        notice: submission.notice,
        expires_at: submission.expires_at,
    };
    assert_eq!(claim(&store, node).await, [queued(due(8)), queued(rare)]);
}

async fn a_message_held_from_the_start_is_not_claimed(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    assert_eq!(claim(&store, node).await, []);
    assert_eq!(state(&store, 1).await, MessageState::Queued);
    let settled = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(settled, [Settled::Stored]);
    assert_eq!(state(&store, 1).await, MessageState::Sent);
}

async fn settling_with_another_claim_changes_nothing(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    accept(&store, vec![held(1, node)]).await;
    let right = first_result(1, taken(&["a"]));
    let with = |claim| Settlement {
        claim,
        ..right.clone()
    };
    let claim = right.claim;
    let next = with(Claim {
        attempt: 2,
        ..claim
    });
    let elsewhere = with(Claim {
        due_at: past(5),
        ..claim
    });
    let lane = Settlement {
        priority: Priority::High,
        ..right.clone()
    };
    for (name, node, settlement, expected) in [
        ("another node", other, right.clone(), Settled::Stale),
        ("another number", node, next, Settled::Stale),
        ("another time", node, elsewhere, Settled::Stale),
        ("another lane", node, lane, Settled::Stale),
        ("the right one", node, right.clone(), Settled::Stored),
        ("again", node, right, Settled::Stale),
    ] {
        let is_right = expected == Settled::Stored || name == "again";
        let settled = settle(&store, node, vec![settlement]).await;
        assert_eq!(settled, [expected], "{name}");
        let now = state(&store, 1).await;
        let expected = [MessageState::Queued, MessageState::Sent][usize::from(is_right)];
        assert_eq!(now, expected, "{name}");
    }
}

async fn a_later_attempt_gets_the_next_number(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let batch = vec![
        first_result(1, SendResult::Later(past(7))),
        first_result(2, SendResult::Later(future(7))),
    ];
    let settled = settle(&store, node, batch).await;
    assert_eq!(settled, [Settled::Stored, Settled::Stored]);
    let claimed = claim(&store, node).await;
    assert_eq!(numbers(&claimed), [1]);
    let expected = Claim {
        due_at: past(7),
        attempt: 2,
    };
    assert_eq!(claimed[0].claim, expected);
    let again = settle(&store, node, vec![result(&claimed[0], taken(&["a"]))]).await;
    assert_eq!(again, [Settled::Stored]);
    assert_eq!(claim(&store, node).await, []);
}

async fn a_final_result_ends_the_message_at_once(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let silent = Submission {
        dlr_url: None,
        ..held(4, node)
    };
    let outcomes = [Outcome::Delivered, ABSENT, Outcome::Expired, ABSENT];
    let batch = vec![held(1, node), held(2, node), held(3, node), silent];
    accept(&store, batch).await;
    let results = outcomes.iter().zip(1..);
    let results = results.map(|(outcome, id)| first_result(id, SendResult::Over(*outcome)));
    let settled = settle(&store, node, results.collect()).await;
    for ((settled, outcome), id) in settled.into_iter().zip(outcomes).zip(1_u64..) {
        let Settled::Ended(ended) = settled else {
            panic!("{settled:?}")
        };
        assert_eq!(ended.id.get(), id);
        let payload = domain::delivery::report_payload(message(id), outcome, None);
        let expected = (id < 4).then_some(payload);
        assert_eq!(ended.callback.map(|callback| callback.payload), expected);
        let at = past(1);
        assert_eq!(state(&store, id).await, MessageState::Ended { outcome, at });
    }
}

async fn a_result_counts_once(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let over = first_result(1, SendResult::Over(ABSENT));
    let batch = vec![over.clone(), over, first_result(2, taken(&["x"]))];
    let settled = settle(&store, node, batch).await;
    assert!(matches!(settled[0], Settled::Ended(_)), "{settled:?}");
    assert_eq!(settled[1..], [Settled::Stale, Settled::Stored]);
    assert_eq!(settle(&store, node, vec![]).await, []);
}

async fn a_claimed_message_cannot_be_cancelled(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![due_at(1, past(3)), due_at(2, future(3))]).await;
    let claimed = claim(&store, node).await;
    let queued = Cancel::NotWaiting(MessageState::Queued);
    let sent = Cancel::NotWaiting(MessageState::Sent);
    let cancel = async |id| store.cancel(account(1), message(id), past(5)).await;
    assert_eq!(cancel(1).await.expect("answers"), queued);
    settle(&store, node, vec![result(&claimed[0], taken(&["a"]))]).await;
    assert_eq!(cancel(1).await.expect("answers"), sent);
    assert_eq!(cancel(2).await.expect("answers"), Cancel::Done);
}
