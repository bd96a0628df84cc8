//! A balance is that of the newest ledger entry.

use std::sync::Arc;

use domain::Money;
use domain::billing::{NotPaid, SpendingRules};
use domain::ports::{Accepted, Store};

use super::days::undo_partitions;
use super::fixture::Database;
use super::handshake::UNDO_NODE_INFO;
use super::money::{assert_balanced, balance, priced};
use super::people::{UNDO_CARRIER_WINDOW, UNDO_PEOPLE};
use super::sample::{accept, at, create_account, submission};
use super::traffic::UNDO_DASHBOARD;

on_both_databases!(
    balances_and_daily_spending_are_migrated,
    a_free_message_writes_no_ledger_entry,
    a_charge_replaces_no_row,
    a_tampered_balance_is_found,
);

const START: i64 = 12_345_678;
const PRICE: i64 = 50_000;

async fn count_entries(database: &Database) -> i64 {
    let counted = database.numbers("SELECT count(*) FROM ledger", 1).await;
    counted[0][0].expect("a number")
}

async fn set_daily_cap(store: &Arc<dyn Store>, owner: domain::AccountId, cap: i64) {
    let rules = SpendingRules {
        daily_cap: Some(Money::from_micros(cap)),
        ..SpendingRules::default()
    };
    let set = store.set_rules(owner, None, &rules).await;
    assert!(set.expect("answers"));
}

async fn balances_and_daily_spending_are_migrated(database: Database) {
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    set_daily_cap(&store, owner, 2 * PRICE).await;
    let spent = priced(submission(1, 1), owner, PRICE);
    assert_eq!(accept(&store, vec![spent]).await, [Accepted::Stored]);
    drop(store);
    undo_partitions(&database).await;
    database.execute(UNDO_NODE_INFO).await;
    database.execute(UNDO_CARRIER_WINDOW).await;
    database.execute(UNDO_DASHBOARD).await;
    database.execute(UNDO_PEOPLE).await;

    let store = database.open().await;
    assert_eq!(balance(&store, owner).await, START - PRICE);
    assert_eq!(balance(&store, other).await, START);
    let too_much = priced(submission(2, 2), owner, PRICE);
    let left = Money::from_micros(PRICE);
    let cost = Money::from_micros(2 * PRICE);
    assert_eq!(
        accept(&store, vec![too_much]).await,
        [Accepted::NotPaid(NotPaid::DailyCap { cost, left })]
    );
    let rest = priced(submission(4, 1), owner, PRICE);
    assert_eq!(accept(&store, vec![rest]).await, [Accepted::Stored]);
    assert_balanced(&store).await;
}

async fn a_free_message_writes_no_ledger_entry(database: Database) {
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let before = count_entries(&database).await;
    let free = priced(submission(1, 3), owner, 0);
    assert_eq!(accept(&store, vec![free]).await, [Accepted::Stored]);
    assert_eq!(count_entries(&database).await, before);
    assert_eq!(balance(&store, owner).await, START);
}

/// A refund or a credit repeats the day's spending of the charge before it.
async fn a_charge_replaces_no_row(database: Database) {
    const ACCOUNTS: &str = "SELECT id, created_us FROM account ORDER BY id";
    const ENTRIES: &str = "
        SELECT id, amount_micros, balance_micros, CAST(spent_day AS BIGINT), spent_micros FROM ledger
        ORDER BY account_id, id";
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let accounts = database.numbers(ACCOUNTS, 2).await;
    let mut entries = database.numbers(ENTRIES, 5).await;
    for id in 1..=3 {
        let one = priced(submission(id, 1), owner, PRICE);
        assert_eq!(accept(&store, vec![one]).await, [Accepted::Stored]);
        let credited = store
            .credit(owner, Money::from_micros(1), None, at(0))
            .await;
        assert!(credited.expect("answers").is_some());
        let now = database.numbers(ENTRIES, 5).await;
        assert_eq!(
            now[..entries.len()],
            entries[..],
            "older entries are unchanged"
        );
        assert_eq!(now.len(), entries.len() + 2);
        let [charge, credit] = &now[entries.len()..] else {
            panic!("{now:?}")
        };
        assert_eq!(charge[0].map(|id| id + 1), credit[0], "IDs are consecutive");
        assert_eq!(charge[3..], credit[3..], "the day's spending is repeated");
        assert_eq!(charge[4], i64::try_from(id).ok().map(|id| id * PRICE));
        entries = now;
    }
    assert_eq!(database.numbers(ACCOUNTS, 2).await, accounts);
    assert_balanced(&store).await;
}

async fn a_tampered_balance_is_found(database: Database) {
    let store = database.open().await;
    create_account(&store, "acme").await;
    create_account(&store, "other").await;
    assert_balanced(&store).await;
    database
        .execute(
            "UPDATE ledger SET balance_micros = 7
            WHERE account_id = (SELECT id FROM account WHERE name = 'acme')",
        )
        .await;
    let found = store.check_ledger().await.expect("answers");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].account, "acme");
    assert_eq!(found[0].balance.micros(), 7);
    assert_eq!(found[0].entries.micros(), START);
}
