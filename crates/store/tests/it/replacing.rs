//! Replacing scheduled messages.

use std::collections::HashMap;
use std::sync::Arc;

use domain::billing::{EntryKind, NotPaid, SpendingRules};
use domain::message::text::{Coding, Shape};
use domain::message::{MessageState, SendTime, Submission, WaitingMessage};
use domain::ports::{Cancel, Replace, Store};
use domain::{AccountId, Channel, Money, Network};
use tokio::task::JoinSet;

use super::fixture::Database;
use super::money::{START, assert_balanced, balance, entries, priced};
use super::sample::{accept, create_account, message};
use super::steps::{claim, due, due_at, future, join, past, url};

mod one_store {
    on_both_stores!(
        a_replacement_is_what_is_sent_and_charged,
        only_what_waits_is_replaced,
        a_replacement_that_is_not_paid_changes_nothing,
    );
    use super::{
        a_replacement_is_what_is_sent_and_charged, a_replacement_that_is_not_paid_changes_nothing,
        only_what_waits_is_replaced,
    };
}

on_both_databases!(each_message_is_sent_as_it_is_charged_or_cancelled);
on_a_serializable_database!(each_message_is_sent_as_it_is_charged_or_cancelled);

/// Replaces message `id` by a text at this price, to be sent far ahead.
fn replacement(owner: AccountId, id: u64, text: &str, price: i64) -> Submission {
    Submission {
        text: text.to_owned(),
        accepted_at: past(1),
        ..priced(due_at(id, future(20)), owner, price)
    }
}

async fn replace(store: &Arc<dyn Store>, by: Submission) -> Result<Replace, NotPaid> {
    store.replace(by).await.expect("the store answers")
}

async fn find(store: &Arc<dyn Store>, owner: AccountId, id: u64) -> Option<WaitingMessage> {
    let found = store.find_waiting(owner, message(id)).await;
    found.expect("the store answers")
}

async fn a_replacement_is_what_is_sent_and_charged(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    accept(&store, vec![priced(due_at(1, future(9)), acme, 1_000)]).await;
    let mut by = Submission {
        shape: Shape {
            coding: Coding::Ucs2,
            parts: 3,
        },
        coding_given: true,
        dlr_url: Some(url("https://example.com/other")),
        expires_at: future(50),
        ..replacement(acme, 1, "Three ж", 3_000)
    };
    by.recipients[0].network = Network::new("247", "01");
    for _ in 0..2 {
        assert_eq!(replace(&store, by.clone()).await, Ok(Replace::Done));
        assert_eq!(balance(&store, acme).await, START - 3_000, "charged once");
    }
    let expected = WaitingMessage {
        from: "Acme".to_owned(),
        to: by.recipients[0].to,
        text: by.text.clone(),
        coding: Coding::Ucs2,
        coding_given: true,
        has_udh: false,
        dlr_url: by.dlr_url.clone(),
        priority: by.priority,
        test_mode: None,
        at: future(20),
        expires_at: future(50),
    };
    assert_eq!(find(&store, acme, 1).await, Some(expected));
    assert_eq!(claim(&store, node).await, []);

    let sooner = Submission {
        send: SendTime::At(past(3)),
        ..replacement(acme, 1, "one", 900)
    };
    assert_eq!(replace(&store, sooner.clone()).await, Ok(Replace::Done));
    assert_eq!(balance(&store, acme).await, START - 900);
    let claimed = claim(&store, node).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(
        (
            claimed[0].text.as_str(),
            claimed[0].shape,
            claimed[0].claim.due_at
        ),
        ("one", sooner.shape, past(3))
    );
    let late = Ok(Replace::NotWaiting(MessageState::Queued));
    assert_eq!(replace(&store, by).await, late);
    assert_eq!(find(&store, acme, 1).await, None);
    assert_eq!(claim(&store, node).await, []);
    assert_eq!(
        entries(&store, acme).await,
        [
            (EntryKind::Refund, 2_100, 0),
            (EntryKind::Charge, -2_000, 0),
            (EntryKind::Charge, -1_000, 1),
            (EntryKind::Credit, START, 0)
        ]
    );
    assert_balanced(&store).await;
}

async fn only_what_waits_is_replaced(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let viber = Submission {
        channel: Channel::Viber,
        ..due_at(4, future(9))
    };
    let batch = vec![due(1), due_at(2, future(9)), due_at(3, future(9)), viber];
    let batch = batch.into_iter().map(|sent| priced(sent, acme, 1_000));
    accept(&store, batch.collect()).await;
    let cancelled = store.cancel(acme, message(2), past(5)).await;
    assert_eq!(cancelled.expect("answers"), Cancel::Done);
    let cancelled = MessageState::Cancelled { at: past(5) };
    for (name, owner, id, expected) in [
        (
            "sent now",
            acme,
            1,
            Replace::NotWaiting(MessageState::Queued),
        ),
        ("cancelled", acme, 2, Replace::NotWaiting(cancelled)),
        ("of another account", other, 3, Replace::Unknown),
        ("no SMS", acme, 4, Replace::NotWaiting(MessageState::Queued)),
        ("unknown", acme, 5, Replace::Unknown),
    ] {
        let by = replacement(owner, id, "new", 5_000);
        assert_eq!(replace(&store, by).await, Ok(expected), "{name}");
        assert_eq!(find(&store, owner, id).await, None, "{name}");
    }
    let kept = find(&store, acme, 3).await.expect("it waits");
    assert_eq!((kept.text, kept.at), (due(3).text, future(9)));
    assert_eq!(balance(&store, acme).await, START - 3_000);
    assert_eq!(balance(&store, other).await, START);
    assert_balanced(&store).await;
}

async fn a_replacement_that_is_not_paid_changes_nothing(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    accept(&store, vec![priced(due_at(1, future(9)), acme, 1_000)]).await;
    let before = find(&store, acme, 1).await;
    let micros = Money::from_micros;
    let poor = NotPaid::Balance {
        cost: micros(START),
        available: micros(START - 1_000),
    };
    let by = replacement(acme, 1, "dear", START + 1_000);
    assert_eq!(replace(&store, by).await, Err(poor));
    let rules = SpendingRules {
        daily_cap: Some(micros(1_500)),
        ..SpendingRules::default()
    };
    store.set_rules(acme, None, &rules).await.expect("answers");
    let capped = NotPaid::DailyCap {
        cost: micros(501),
        left: micros(500),
    };
    let by = replacement(acme, 1, "dear", 1_501);
    assert_eq!(replace(&store, by).await, Err(capped));
    assert_eq!(find(&store, acme, 1).await, before);
    assert_eq!(balance(&store, acme).await, START - 1_000);
    let by = replacement(acme, 1, "within the cap", 1_500);
    assert_eq!(replace(&store, by).await, Ok(Replace::Done));
    assert_eq!(balance(&store, acme).await, START - 1_500);
    assert_balanced(&store).await;
}

/// Every message is due, and is replaced twice, cancelled and claimed at the same time.
async fn each_message_is_sent_as_it_is_charged_or_cancelled(database: Database) {
    const MESSAGES: u64 = 18;
    let prices = HashMap::from([("one", 1_000), ("two", 2_000), ("three", 3_000)]);
    let store = database.open().await;
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let with = move |id, text: &str, price| Submission {
        send: SendTime::At(past(3)),
        ..replacement(acme, id, text, price)
    };
    let batch = (1..=MESSAGES).map(|id| with(id, "one", 1_000));
    accept(&store, batch.collect()).await;

    let mut replacing = JoinSet::new();
    for (text, price) in [("two", 2_000), ("three", 3_000)] {
        let store = database.open().await;
        replacing.spawn(async move {
            for id in 1..=MESSAGES {
                let replaced = replace(&store, with(id, text, price)).await;
                let expected = matches!(replaced, Ok(Replace::Done | Replace::NotWaiting(_)));
                assert!(expected, "{replaced:?}");
            }
        });
    }
    let cancelling = database.open().await;
    let cancelling = tokio::spawn(async move {
        let mut done = Vec::new();
        for id in (1..=MESSAGES).rev().step_by(3) {
            let outcome = cancelling.cancel(acme, message(id), past(5)).await;
            if outcome.expect("answers") == Cancel::Done {
                done.push(id);
            }
        }
        done
    });
    let claiming = database.open().await;
    let claiming = tokio::spawn(async move {
        let mut claimed = Vec::new();
        for _ in 0..5 {
            let due = claiming.claim_due(node, [2; 3], &[]).await;
            claimed.extend(due.expect("answers").messages);
        }
        claimed
    });
    replacing.join_all().await;
    let cancelled = cancelling.await.expect("it ends");
    let mut claimed = claiming.await.expect("it ends");
    claimed.extend(claim(&store, node).await);

    let mut ids: Vec<u64> = claimed.iter().map(|queued| queued.id.get()).collect();
    ids.extend(cancelled);
    ids.sort_unstable();
    assert_eq!(ids, (1..=MESSAGES).collect::<Vec<_>>(), "each of them once");
    let cost: i64 = claimed.iter().map(|sent| prices[sent.text.as_str()]).sum();
    assert_eq!(balance(&store, acme).await, START - cost);
    assert_balanced(&store).await;
}
