//! Refused recipients: their messages end in the transaction that stores them.

use std::sync::Arc;

use domain::message::{Holder, SendTime, Submission};
use domain::ports::{Store, WorkStore};
use domain::{Code, MessageState, Money, Outcome};

use super::money::{START, assert_balanced, balance, priced};
use super::sample::{EVERYTHING, accept, account, create_account, submission};
use super::steps::{claim, claim_callbacks, due, future, join, past, state};

on_every_store!(
    a_refused_recipient_ends_and_the_others_are_sent,
    a_refused_recipient_of_a_held_submission_is_not_held,
    a_notice_is_claimed_as_one;
    on_both_stores:
    a_refused_recipient_of_a_scheduled_submission_does_not_wait,
    a_refused_recipient_is_not_charged,
);

/// Three recipients. The second one is refused.
fn partly_refused() -> Submission {
    let mut partly = Submission {
        recipients: submission(1, 3).recipients,
        ..due(1)
    };
    partly.recipients[1].refused = Some(Code::OPTED_OUT);
    partly
}

fn is_refused(state: MessageState) -> bool {
    let refused = Outcome::Failed(Code::OPTED_OUT);
    matches!(state, MessageState::Ended { outcome, .. } if outcome == refused)
}

async fn a_refused_recipient_ends_and_the_others_are_sent(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![partly_refused(), due(9)]).await;
    assert!(is_refused(state(&store, 2).await));
    let reports = claim_callbacks(&store, node).await;
    assert_eq!(reports.len(), 1, "the report of the refused one is due");
    assert!(
        reports[0].payload.contains("27"),
        "it has the code: {}",
        reports[0].payload
    );
    let mut claimed: Vec<u64> = claim(&store, node)
        .await
        .iter()
        .map(|queued| queued.id.get())
        .collect();
    claimed.sort_unstable();
    assert_eq!(claimed, [1, 3, 9]);
}

async fn a_refused_recipient_of_a_held_submission_is_not_held(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let held = Submission {
        holder: Holder::Node(node),
        ..partly_refused()
    };
    accept(&store, vec![held]).await;
    let age = jiff::SignedDuration::ZERO;
    let rows = store.list_held(node, age, None, 100).await;
    let rows = rows.expect("the store answers");
    let ids: Vec<u64> = rows.iter().map(|row| row.id.get()).collect();
    assert_eq!(ids, [1, 3]);
    assert!(is_refused(state(&store, 2).await));
}

async fn a_notice_is_claimed_as_one(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let notice = Submission {
        notice: true,
        ..due(1)
    };
    accept(&store, vec![notice, due(2)]).await;
    let mut claimed: Vec<_> = claim(&store, node)
        .await
        .iter()
        .map(|queued| (queued.id.get(), queued.notice))
        .collect();
    claimed.sort_unstable();
    assert_eq!(claimed, [(1, true), (2, false)]);
}

async fn a_refused_recipient_of_a_scheduled_submission_does_not_wait(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let later = Submission {
        send: SendTime::At(future(-100)),
        accepted_at: past(0),
        ..partly_refused()
    };
    accept(&store, vec![later]).await;
    assert!(is_refused(state(&store, 2).await));
    let listed = store.list_scheduled(account(1), EVERYTHING).await;
    let listed = listed.expect("the store answers");
    let ids: Vec<u64> = listed.iter().map(|record| record.id.get()).collect();
    assert_eq!(ids, [1, 3]);
    assert_eq!(claim_callbacks(&store, node).await.len(), 1);
}

async fn a_refused_recipient_is_not_charged(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let mut partly = priced(partly_refused(), acme, 1_000);
    partly.recipients[1].price = Money::ZERO;
    let mut all = priced(submission(11, 2), acme, 0);
    for recipient in &mut all.recipients {
        recipient.refused = Some(Code::BLOCKED);
    }
    accept(&store, vec![partly, all]).await;
    assert_eq!(balance(&store, acme).await, START - 2_000);
    assert_balanced(&store).await;
    let found = store.find_message(acme, super::sample::message(12)).await;
    let found = found.expect("the store answers").expect("it is stored");
    let MessageState::Ended { outcome, .. } = found.state else {
        panic!("{:?}", found.state);
    };
    assert_eq!(outcome, Outcome::Failed(Code::BLOCKED));
}
