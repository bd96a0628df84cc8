//! Ported numbers, and the networks that receipts name.

use std::sync::Arc;

use domain::billing::SpendingRules;
use domain::delivery::Receipt;
use domain::number::ported::PortedNumber;
use domain::ports::{Ended, Matched, PortedChange, PortedVersions, Settled, Store, WorkStore};
use domain::{Msisdn, Network, Outcome};
use tokio::task::JoinSet;

use super::sample::{accept, at, create_account, message};
use super::steps::{first_result, held, join, receipt, report, send, settle, taken};

on_every_store!(
    a_message_gets_the_network_that_its_receipt_names,
    an_early_receipt_names_the_network;
    on_both_stores:
    what_was_learned_last_is_known,
    changes_are_read_by_their_numbers,
    concurrent_changes_are_not_missed,
    an_erased_number_is_noticed,
    what_is_old_is_pruned_and_the_oldest_are_removed,
    accounts_that_go_by_ported_numbers_are_listed,
);

fn number(number: u64) -> Msisdn {
    Msisdn::parse(&format!("+3712{number:07}")).expect("a number")
}

fn network(code: &str) -> Network {
    code.parse().expect("a network")
}

fn ported(of: u64, code: &str, second: i64) -> PortedNumber {
    PortedNumber {
        number: number(of),
        network: network(code),
        learned_at: at(second),
    }
}

async fn remember(store: &Arc<dyn Store>, learned: &[PortedNumber]) {
    let stored = store.remember_ported(learned).await;
    stored.expect("the store answers");
}

async fn find(store: &Arc<dyn Store>, of: u64) -> Option<PortedNumber> {
    let found = store.find_ported(&number(of)).await;
    found.expect("the store answers")
}

async fn versions(store: &Arc<dyn Store>) -> PortedVersions {
    let versions = store.get_ported_versions().await;
    versions.expect("the store answers")
}

async fn changes(store: &Arc<dyn Store>, mut after: Option<PortedChange>) -> Vec<PortedChange> {
    let mut all = Vec::new();
    loop {
        let page = store.list_ported_changes(after.as_ref(), 2).await;
        let page = page.expect("the store answers");
        let Some(last) = page.last() else { return all };
        after = Some(*last);
        all.extend(page);
    }
}

fn naming(reference: &str, code: &str) -> Receipt {
    Receipt {
        network: Some(network(code)),
        ..receipt(reference, Outcome::Delivered)
    }
}

fn check_named(ended: &Ended, code: &str) {
    let named = ended.named.expect("a network is named").1;
    assert_eq!(named, network(code));
    assert_eq!(ended.network, Some(network(code)));
    let callback = ended.callback.as_ref().expect("it asked for a report");
    let payload =
        domain::delivery::report_payload(ended.id, Outcome::Delivered, Some(network(code)));
    assert_eq!(callback.payload, payload);
}

async fn a_message_gets_the_network_that_its_receipt_names(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for (id, reference) in [(1, "a"), (2, "b")] {
        send(&store, node, id, &[reference]).await;
    }
    let receipts = vec![naming("a", "24702"), receipt("b", Outcome::Delivered)];
    let matched = report(&store, node, receipts).await;
    let [Matched::Ended(first), Matched::Ended(second)] = &matched[..] else {
        panic!("{matched:?}")
    };
    check_named(first, "24702");
    assert_eq!((second.named, second.network), (None, None));
}

async fn an_early_receipt_names_the_network(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let early = report(&store, node, vec![naming("a", "24702")]).await;
    assert_eq!(early, [Matched::Kept]);
    let settled = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    let [Settled::Ended(ended)] = &settled[..] else {
        panic!("{settled:?}")
    };
    assert_eq!(ended.id, message(1));
    check_named(ended, "24702");
}

async fn what_was_learned_last_is_known(store: Arc<dyn Store>) {
    assert_eq!(find(&store, 1).await, None);
    let twice = [ported(1, "24702", 2), ported(1, "24701", 1)];
    remember(&store, &twice).await;
    assert_eq!(find(&store, 1).await, Some(twice[0]));
    for (learned, expected) in [
        (ported(1, "24705", 1), twice[0]),
        (ported(1, "24701", 3), ported(1, "24701", 3)),
    ] {
        remember(&store, &[learned]).await;
        assert_eq!(find(&store, 1).await, Some(expected));
    }
    remember(&store, &[]).await;
    assert_eq!(find(&store, 2).await, None);
}

async fn changes_are_read_by_their_numbers(store: Arc<dyn Store>) {
    let before = versions(&store).await;
    let learned: Vec<_> = (1..=3).map(|of| ported(of, "24702", 1)).collect();
    remember(&store, &learned).await;
    let all = changes(&store, None).await;
    let listed: Vec<_> = all.iter().map(|change| change.ported).collect();
    assert_eq!(listed, learned);
    let last = all.last().copied();
    remember(&store, &[ported(2, "24701", 2)]).await;
    let newer = changes(&store, last).await;
    let newer: Vec<_> = newer.iter().map(|change| change.ported).collect();
    assert_eq!(newer, [ported(2, "24701", 2)]);
    let after = versions(&store).await;
    assert!(after.changes > before.changes, "{after:?}");
    assert_eq!(after.removals, before.removals);
}

async fn concurrent_changes_are_not_missed(store: Arc<dyn Store>) {
    const WRITERS: u64 = 8;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for step in 0..5 {
                remember(&store, &[ported(writer * 10 + step, "24702", 1)]).await;
            }
        });
    }
    let (mut seen, mut last) = (0, None);
    while seen < WRITERS * 5 {
        let newer = changes(&store, last).await;
        seen += newer.len() as u64;
        last = newer.last().copied().or(last);
        tokio::task::yield_now().await;
    }
    assert_eq!(changes(&store, None).await.len() as u64, WRITERS * 5);
    while let Some(joined) = writers.join_next().await {
        joined.expect("it ends");
    }
}

async fn an_erased_number_is_noticed(store: Arc<dyn Store>) {
    remember(&store, &[ported(1, "24702", 1), ported(2, "24702", 1)]).await;
    let before = versions(&store).await;
    let erase = async |of| store.erase_ported(&number(of)).await.expect("answers");
    assert!(!erase(3).await);
    assert_eq!(versions(&store).await, before, "nothing was erased");
    assert!(erase(1).await);
    assert!(versions(&store).await.removals > before.removals);
    assert_eq!(find(&store, 1).await, None);
    assert_eq!(changes(&store, None).await.len(), 1);
}

async fn what_is_old_is_pruned_and_the_oldest_are_removed(store: Arc<dyn Store>) {
    let learned: Vec<_> = (1..=5)
        .zip(1..)
        .map(|(of, second)| ported(of, "24702", second))
        .collect();
    remember(&store, &learned).await;
    let before = versions(&store).await;
    let prune = async |limit| store.prune_ported(at(3), limit).await.expect("answers");
    assert_eq!(
        (prune(1).await, prune(10).await, prune(10).await),
        (1, 1, 0)
    );
    assert_eq!(versions(&store).await, before, "nodes know the age");
    let removed = store.remove_oldest_ported(2).await.expect("answers");
    assert_eq!(removed, 2);
    assert!(versions(&store).await.removals > before.removals);
    let left = changes(&store, None).await;
    let left: Vec<_> = left.iter().map(|change| change.ported).collect();
    assert_eq!(left, [learned[4]]);
}

async fn accounts_that_go_by_ported_numbers_are_listed(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    create_account(&store, "other").await;
    let list = async || store.list_ported_accounts().await.expect("answers");
    assert_eq!(list().await, []);
    let before = versions(&store).await;
    for (ported_numbers, expected) in [(true, vec![acme]), (false, vec![])] {
        let rules = SpendingRules {
            ported_numbers,
            ..SpendingRules::default()
        };
        let set = store.set_rules(acme, None, &rules).await;
        assert!(set.expect("answers"));
        assert_eq!(list().await, expected);
        let found = store.find_account_by_id(acme).await.expect("answers");
        assert_eq!(found.expect("it is there").rules, rules);
    }
    assert!(versions(&store).await.access > before.access);
}
