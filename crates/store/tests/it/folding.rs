//! The ledger, folded into daily sums.

use std::sync::Arc;

use domain::billing::{EntryKind, LedgerEntry, NotPaid, SpendingRules};
use domain::message::Submission;
use domain::ports::{Accepted, Cancel, Store};
use domain::{AccountId, Money};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::fixture::Database;
use super::money::{assert_balanced, balance, priced};
use super::sample::{accept, at, create_account, message, scheduled, submission};

on_both_databases!(
    charges_and_refunds_of_a_day_become_one_entry_each,
    recent_entries_are_not_folded,
    a_daily_cap_counts_what_was_spent_before_folding,
    concurrent_folding_and_charging_keeps_the_ledger_consistent,
);

on_a_serializable_database!(concurrent_folding_and_charging_keeps_the_ledger_consistent);

/// The balance of a new account of [`create_account`].
const START: i64 = 12_345_678;
const DAY: i64 = 86_400;
/// An age that even entries of the future have.
const ANY_AGE: SignedDuration = SignedDuration::from_hours(-24 * 365 * 50);

/// Folds everything in small steps.
async fn fold(store: &Arc<dyn Store>) {
    while store.fold_ledger(ANY_AGE, 4).await.expect("answers") {}
}

async fn entries(store: &Arc<dyn Store>, owner: AccountId) -> Vec<LedgerEntry> {
    let entries = store.list_ledger(owner, None, 1_000).await;
    entries.expect("the store answers")
}

/// Kind, amount and messages of each entry, the newest first.
fn short(entries: &[LedgerEntry]) -> Vec<(EntryKind, i64, u32)> {
    let short = |entry: &LedgerEntry| (entry.kind, entry.amount.micros(), entry.messages);
    entries.iter().map(short).collect()
}

/// A message that is charged at this time.
fn charged(id: u64, owner: AccountId, price: i64, second: i64) -> Submission {
    Submission {
        accepted_at: at(second),
        ..priced(submission(id, 1), owner, price)
    }
}

async fn charge(store: &Arc<dyn Store>, submission: Submission) {
    assert_eq!(accept(store, vec![submission]).await, [Accepted::Stored]);
}

/// Makes two days of charges, refunds and a credit. Returns the balance.
async fn fill(store: &Arc<dyn Store>, owner: AccountId) -> i64 {
    for id in 1..=4_u64 {
        charge(store, charged(id, owner, 100, 10 + id.cast_signed())).await;
    }
    for id in 11..=12 {
        charge(store, priced(scheduled(id, 9_000_000), owner, 7)).await;
        let cancelled = store.cancel(owner, message(id), at(100)).await;
        assert_eq!(cancelled.expect("answers"), Cancel::Done);
    }
    let credit = store.credit(owner, Money::from_micros(5_000), Some("invoice 7"), at(200));
    credit.await.expect("answers").expect("the account exists");
    charge(store, charged(21, owner, 30, 300)).await;
    charge(store, charged(22, owner, 30, 301)).await;
    for id in 31..=33 {
        charge(store, charged(id, owner, 1, DAY + 1)).await;
    }
    balance(store, owner).await
}

async fn charges_and_refunds_of_a_day_become_one_entry_each(database: Database) {
    let store = database.open().await;
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let before = fill(&store, acme).await;
    assert_eq!(before, START - 400 + 5_000 - 60 - 3);
    let all = entries(&store, acme).await;
    assert_eq!(all.len(), 15);
    fold(&store).await;
    let expected = [
        (EntryKind::Charge, -1, 1),
        (EntryKind::Charge, -2, 2),
        (EntryKind::Charge, -60, 2),
        (EntryKind::Credit, 5_000, 0),
        (EntryKind::Refund, 14, 2),
        (EntryKind::Charge, -414, 6),
        (EntryKind::Credit, START, 0),
    ];
    let folded = entries(&store, acme).await;
    assert_eq!(short(&folded), expected, "the newest entry is unchanged");
    assert_eq!(folded[0], all[0]);
    let credit = all.iter().find(|entry| entry.note.is_some());
    assert_eq!(
        Some(&folded[3]),
        credit,
        "a credit keeps its note and its balance"
    );
    assert_eq!(balance(&store, acme).await, before);
    assert_eq!(entries(&store, other).await.len(), 1);
    assert_balanced(&store).await;

    let page = store.list_ledger(acme, Some(folded[2].id), 2).await;
    assert_eq!(page.expect("answers"), folded[3..5], "the next page");
    let again = database.open().await;
    fold(&again).await;
    assert_eq!(
        entries(&again, acme).await,
        folded,
        "folding again changes nothing"
    );

    charge(&store, charged(41, acme, 5, DAY + 2)).await;
    fold(&store).await;
    let newest = [(EntryKind::Charge, -5, 1), (EntryKind::Charge, -3, 3)];
    assert_eq!(
        short(&entries(&store, acme).await)[..2],
        newest,
        "later entries of the day are folded into it"
    );
    assert_balanced(&store).await;
}

async fn recent_entries_are_not_folded(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    fill(&store, acme).await;
    let all = entries(&store, acme).await;
    let age = SignedDuration::from_hours(24);
    while store.fold_ledger(age, 1_000).await.expect("answers") {}
    assert_eq!(entries(&store, acme).await, all);
}

async fn a_daily_cap_counts_what_was_spent_before_folding(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    fill(&store, acme).await;
    fold(&store).await;
    let rules = SpendingRules {
        daily_cap: Some(Money::from_micros(10)),
        ..SpendingRules::default()
    };
    store.set_rules(acme, None, &rules).await.expect("answers");
    let last = charged(51, acme, 7, DAY + 5);
    assert_eq!(accept(&store, vec![last]).await, [Accepted::Stored]);
    let beyond = accept(&store, vec![charged(52, acme, 1, DAY + 6)]).await;
    assert!(
        matches!(beyond[..], [Accepted::NotPaid(NotPaid::DailyCap { .. })]),
        "{beyond:?}"
    );
}

async fn concurrent_folding_and_charging_keeps_the_ledger_consistent(database: Database) {
    const EACH: u64 = 30;
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let before = fill(&store, acme).await;
    let mut tasks = JoinSet::new();
    for node in 0..3_u64 {
        let store = database.open().await;
        tasks.spawn(async move {
            for n in 0..EACH {
                let id = 1_000 * (node + 1) + n;
                let second = DAY * (n / 10).cast_signed() + n.cast_signed();
                charge(&store, charged(id, acme, 3, second)).await;
                let folded = store.fold_ledger(ANY_AGE, 5).await;
                folded.expect("the store answers");
            }
        });
    }
    tasks.join_all().await;
    fold(&store).await;
    let spent = 3 * 3 * EACH.cast_signed();
    assert_eq!(balance(&store, acme).await, before - spent);
    assert_balanced(&store).await;
    let left = entries(&store, acme).await;
    let charged: i64 = left
        .iter()
        .filter(|entry| entry.kind == EntryKind::Charge)
        .map(|entry| entry.amount.micros())
        .sum();
    assert_eq!(charged, -(414 + 60 + 3 + spent));
}
