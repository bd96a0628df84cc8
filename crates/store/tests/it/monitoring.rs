//! What monitoring reads.

use std::sync::Arc;

use domain::Money;
use domain::ports::{Store, WaitingMessages};

use super::sample::{accept, create_account, submission};

on_both_stores!(
    waiting_messages_are_counted_by_lane,
    balances_are_listed_in_pages,
    the_database_has_a_size_and_connections,
);

async fn waiting(store: &Arc<dyn Store>) -> Vec<WaitingMessages> {
    let mut waiting = store.list_waiting().await.expect("the store answers");
    waiting.sort_by_key(|one| one.priority.lane());
    waiting
}

async fn waiting_messages_are_counted_by_lane(store: Arc<dyn Store>) {
    create_account(&store, "acme").await;
    let counts =
        |waiting: &[WaitingMessages]| -> Vec<u32> { waiting.iter().map(|one| one.count).collect() };
    assert_eq!(counts(&waiting(&store).await), [0, 0, 0]);
    let due_at = super::steps::past(0);
    let mut submission = submission(1, 1);
    submission.accepted_at = due_at;
    accept(&store, vec![submission]).await;
    let found = waiting(&store).await;
    assert_eq!(counts(&found).iter().sum::<u32>(), 1);
    let oldest = found.iter().find_map(|one| one.oldest_due_at);
    assert_eq!(oldest, Some(due_at));
    assert_eq!(store.list_pooled().await.expect("the store answers"), []);
}

async fn balances_are_listed_in_pages(store: Arc<dyn Store>) {
    let (first, second) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let now = super::steps::past(1);
    let amount = Money::from_micros(5_000_000);
    let credited = store.credit(second, amount, None, now).await;
    credited.expect("the store answers");
    let rules = domain::billing::SpendingRules {
        low_balance: Some(amount),
        ..domain::billing::SpendingRules::default()
    };
    assert!(store.set_rules(first, None, &rules).await.expect("answers"));
    let page = store.list_balances(None, 1).await.expect("answers");
    assert_eq!((page.len(), page[0].id), (1, first));
    assert_eq!(page[0].low_balance, Some(amount));
    let page = store.list_balances(Some(first), 9).await.expect("answers");
    assert_eq!(
        (page.len(), page[0].id, &*page[0].name),
        (1, second, "other")
    );
    assert_eq!((page[0].low_balance, page[0].spent), (None, Money::ZERO));
    assert!(page[0].balance >= amount);
    assert!(store.set_suspended("acme", true).await.expect("answers"));
    let page = store.list_balances(None, 9).await.expect("answers");
    assert_eq!(page.len(), 1, "a suspended account spends nothing");
}

async fn the_database_has_a_size_and_connections(store: Arc<dyn Store>) {
    let health = store.database_health().await.expect("the store answers");
    assert!(health.bytes > 0, "{health:?}");
    let connections = health.connections;
    assert!(
        connections.most > 0 && connections.busy <= connections.most,
        "{health:?}"
    );
}
