//! Exporting messages, and adding up the ledger of a period.

use std::sync::Arc;

use domain::delivery::{SendResult, Settlement};
use domain::message::Submission;
use domain::ports::{ExportFilter, ExportRange, ExportedMessage, LedgerTotals, Store};
use domain::{AccountId, Code, Money, Outcome, Timestamp};
use jiff::SignedDuration;

use super::money::{START, balance, priced};
use super::sample::{accept, account, at, create_account, message, scheduled, submission};
use super::steps::{deliver, due, first_result, held, join, past, receipt, report, settle, taken};

on_both_stores!(
    every_message_is_exported_once_in_order,
    an_export_continues_after_a_message,
    an_exported_message_has_its_carrier_cost_and_price,
    messages_that_have_not_ended_are_exported,
    the_ledger_of_a_period_adds_up,
    folded_entries_add_up_to_the_same,
);

fn all(of: Option<AccountId>) -> ExportFilter {
    ExportFilter {
        account: of,
        since: Timestamp::UNIX_EPOCH,
        until: at(1_000_000_000),
    }
}

/// Everything, page by page.
async fn export(store: &Arc<dyn Store>, filter: &ExportFilter) -> Vec<ExportedMessage> {
    let mut found = Vec::new();
    let mut range = store.find_export_range(filter).await.expect("answers");
    loop {
        let page = store.export_messages(filter, range).await.expect("answers");
        found.extend(page.messages);
        if page.next.is_none() {
            return found;
        }
        assert!(page.next > range.after, "it moves on");
        range.after = page.next;
    }
}

fn ids(messages: &[ExportedMessage]) -> Vec<u64> {
    messages.iter().map(|message| message.id.get()).collect()
}

/// Messages of two accounts, accepted a minute after each other, over several segments and days.
async fn fill(store: &Arc<dyn Store>) -> Vec<(u64, u64, Timestamp)> {
    let near = (0..5_000_u64).map(|n| 1 + n * 3);
    let days = (0..60).map(|n| ((1 + n / 20) << 32) + n * 700);
    let mut known = Vec::new();
    let mut batch = Vec::new();
    for (n, id) in (0_u64..).zip(near.chain(days)) {
        let owner = if n % 100 == 7 { 2 } else { 1 };
        let accepted_at = at(60 * i64::try_from(n).expect("small"));
        batch.push(Submission {
            account: account(owner),
            accepted_at,
            ..submission(id, 1)
        });
        known.push((id, owner, accepted_at));
    }
    accept(store, batch).await;
    known
}

async fn every_message_is_exported_once_in_order(store: Arc<dyn Store>) {
    let known = fill(&store).await;
    assert_eq!(export(&store, &all(Some(account(9)))).await, []);
    let (since, until) = (at(60 * 1_000), at(60 * 4_020));
    for of in [None, Some(1), Some(2)] {
        for (since, until) in [(Timestamp::UNIX_EPOCH, at(1_000_000_000)), (since, until)] {
            let filter = ExportFilter {
                account: of.map(account),
                since,
                until,
            };
            let matching = known.iter().filter(|(_, owner, accepted_at)| {
                of.is_none_or(|of| of == *owner) && (since..until).contains(accepted_at)
            });
            let expected: Vec<u64> = matching.map(|(id, ..)| *id).collect();
            assert_eq!(ids(&export(&store, &filter).await), expected, "{filter:?}");
        }
    }
}

async fn an_export_continues_after_a_message(store: Arc<dyn Store>) {
    let known = fill(&store).await;
    for of in [None, Some(account(2))] {
        let every = ids(&export(&store, &all(of)).await);
        let (middle, _, _) = known[2_507];
        let range = ExportRange {
            after: Some(message(middle)),
            before: None,
        };
        let page = store.export_messages(&all(of), range).await;
        let first = page.expect("answers").messages.first().map(|m| m.id.get());
        let expected = every.iter().find(|id| **id > middle);
        assert_eq!(first.as_ref(), expected);
    }
}

/// A result whose carrier charges this much.
fn costing(settlement: Settlement, micros: i64) -> Settlement {
    Settlement {
        cost: Some(Money::from_micros(micros)),
        ..settlement
    }
}

async fn an_exported_message_has_its_carrier_cost_and_price(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let mut long = priced(held(5, node), acme, 3_000);
    long.shape.parts = 3;
    let mut batch: Vec<Submission> = (1..=4)
        .map(|id| priced(held(id, node), acme, 1_000))
        .collect();
    batch.push(long);
    batch.push(priced(scheduled(6, 500), acme, 1_000));
    accept(&store, batch).await;
    let absent = Outcome::Failed(Code::ABSENT);
    let partly = SendResult::PartlyTaken {
        carrier: "beta".to_owned(),
        references: vec!["p1".to_owned(), "p2".to_owned()],
        outcome: absent,
    };
    let results = vec![
        costing(first_result(1, taken(&["r1"])), 400),
        first_result(2, taken(&["r2"])),
        first_result(3, SendResult::Over(absent)),
        costing(first_result(5, partly), 900),
    ];
    settle(&store, node, results).await;
    report(&store, node, vec![receipt("r1", Outcome::Delivered)]).await;
    let refunded = Outcome::Failed(Code::new(53).expect("a code"));
    report(&store, node, vec![receipt("r2", refunded)]).await;
    store
        .cancel(acme, message(6), at(9))
        .await
        .expect("answers");

    let found = export(&store, &all(Some(acme))).await;
    let short = |message: &ExportedMessage| {
        (
            message.id.get(),
            message.state.name(),
            message.price.micros(),
            message.cost.map(Money::micros),
            message.carrier.clone(),
            message.sent_at,
        )
    };
    let found: Vec<_> = found.iter().map(short).collect();
    let (alpha, beta) = (Some("alpha".to_owned()), Some("beta".to_owned()));
    let expected = [
        (
            1,
            "delivered",
            1_000,
            Some(400),
            alpha.clone(),
            Some(past(1)),
        ),
        (2, "failed", 0, None, alpha, Some(past(1))),
        (3, "failed", 0, None, None, None),
        (4, "queued", 1_000, None, None, None),
        (5, "failed", 2_000, Some(900), beta, Some(past(1))),
        (6, "cancelled", 0, None, None, None),
    ];
    assert_eq!(found, expected);
    let paid: i64 = expected.iter().map(|(_, _, price, ..)| price).sum();
    assert_eq!(balance(&store, acme).await, START - paid);
}

async fn messages_that_have_not_ended_are_exported(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let sent = costing(first_result(1, taken(&["r1"])), 70);
    settle(&store, node, vec![sent]).await;
    let found = export(&store, &all(None)).await;
    let [sent] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(sent.state.name(), "sent");
    assert_eq!(sent.carrier.as_deref(), Some("alpha"));
    assert_eq!(sent.cost, Some(Money::from_micros(70)));
    assert_eq!(sent.sent_at, Some(past(1)));
    assert_eq!(sent.to, Some(due(1).recipients[0].to));
    deliver(&store, node, 2).await;
    let found = export(&store, &all(None)).await;
    assert_eq!(found[1].state.name(), "delivered");
}

const DAY: i64 = 86_400;

/// Charges, refunds, credits and corrections over three days.
async fn fill_ledger(store: &Arc<dyn Store>) -> AccountId {
    let acme = create_account(store, "acme").await;
    for day in 1..4 {
        for n in 0..5 {
            let id = u64::try_from(day * 10 + n).expect("small");
            let batch = vec![Submission {
                accepted_at: at(day * DAY + n),
                ..priced(scheduled(id, 10 * DAY), acme, 1_000)
            }];
            accept(store, batch).await;
            if n == 2 {
                let cancelled = store
                    .cancel(acme, message(id), at(day * DAY + 100 + n))
                    .await;
                cancelled.expect("answers");
            }
        }
        for amount in [50_000, -20_000] {
            let credit = store.credit(acme, Money::from_micros(amount), None, at(day * DAY + 200));
            credit.await.expect("answers");
        }
    }
    acme
}

async fn totals(store: &Arc<dyn Store>, acme: AccountId, from: i64, until: i64) -> LedgerTotals {
    let totals = store.ledger_totals(acme, at(from), at(until)).await;
    totals.expect("answers")
}

async fn check_totals(store: &Arc<dyn Store>, acme: AccountId) {
    let money = Money::from_micros;
    let before = totals(store, acme, -DAY, DAY).await;
    assert_eq!(before.closing(), money(START), "the first credit");
    let mut opening = before.closing();
    for day in 1..4 {
        let found = totals(store, acme, day * DAY, (day + 1) * DAY).await;
        let expected = LedgerTotals {
            opening,
            credits: money(50_000),
            corrections: money(-20_000),
            charges: money(-5_000),
            charged_messages: 5,
            refunds: money(1_000),
            refunded_messages: 1,
            ..LedgerTotals::default()
        };
        assert_eq!(found, expected, "day {day}");
        opening = found.closing();
    }
    assert_eq!(opening.micros(), balance(store, acme).await);
    let whole = totals(store, acme, -DAY, 100 * DAY).await;
    assert_eq!((whole.opening, whole.closing()), (Money::ZERO, opening));
    let none = totals(store, account(99), -DAY, DAY).await;
    assert_eq!(none, LedgerTotals::default());
}

async fn the_ledger_of_a_period_adds_up(store: Arc<dyn Store>) {
    let acme = fill_ledger(&store).await;
    check_totals(&store, acme).await;
}

async fn folded_entries_add_up_to_the_same(store: Arc<dyn Store>) {
    let acme = fill_ledger(&store).await;
    // The entries are in the future, so that only an age below zero makes them old.
    let age = SignedDuration::from_hours(-24 * 3_650);
    while store.fold_ledger(age, 1_000).await.expect("answers") {}
    let entries = store.list_ledger(acme, None, 100).await.expect("answers");
    assert!(entries.len() < 24, "folded: {}", entries.len());
    check_totals(&store, acme).await;
}
