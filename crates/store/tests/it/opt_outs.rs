//! Opt-out lists and the block list.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::block::{BlockKind, BlockRule};
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::ports::{OptOutChange, Store};
use domain::{AccountId, Msisdn, Originator};
use tokio::task::JoinSet;

use super::sample::{at, create_account};

on_both_stores!(
    an_entry_stays_as_it_was_added_first,
    a_list_has_pages_and_belongs_to_its_account,
    changes_are_read_by_their_numbers,
    concurrent_changes_are_not_missed,
    what_is_left_of_removed_entries_is_pruned,
    a_block_rule_is_there_once,
);

fn key(number: u64, sender: Option<&str>) -> OptOutKey {
    OptOutKey {
        recipient: Msisdn::parse(&format!("+3712{number:07}")).expect("a number"),
        sender: sender.map(|sender| Originator::parse_approved(sender).expect("a sender")),
    }
}

async fn add(store: &Arc<dyn Store>, account: AccountId, keys: &[OptOutKey], second: i64) -> u64 {
    let added = store.add_opt_outs(account, keys, Via::Api, at(second));
    added.await.expect("the store answers")
}

async fn remove(store: &Arc<dyn Store>, account: AccountId, key: &OptOutKey, second: i64) -> bool {
    let removed = store.remove_opt_out(account, key, at(second)).await;
    removed.expect("the store answers")
}

async fn find(store: &Arc<dyn Store>, account: AccountId, key: &OptOutKey) -> Option<OptOut> {
    let found = store.find_opt_out(account, key).await;
    found.expect("the store answers")
}

async fn list(store: &Arc<dyn Store>, account: AccountId) -> Vec<OptOutKey> {
    let listed = store.list_opt_outs(account, None, 1_000).await;
    let listed = listed.expect("the store answers").into_iter();
    listed.map(|entry| entry.key).collect()
}

async fn changes(store: &Arc<dyn Store>, mut after: Option<OptOutChange>) -> Vec<OptOutChange> {
    let mut all = Vec::new();
    loop {
        let page = store.list_opt_out_changes(after.as_ref(), 2).await;
        let page = page.expect("the store answers");
        let Some(last) = page.last() else { return all };
        after = Some(last.clone());
        all.extend(page);
    }
}

async fn an_entry_stays_as_it_was_added_first(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    for sender in [None, Some("Acme"), Some("+37129999999"), Some("A&B-Co #1!")] {
        let key = key(1, sender);
        assert_eq!(add(&store, acme, std::slice::from_ref(&key), 1).await, 1);
        let twice = [key.clone(), key.clone()];
        let again = store.add_opt_outs(acme, &twice, Via::Import, at(2)).await;
        assert_eq!(again.expect("the store answers"), 0, "{sender:?}");
        let first = OptOut {
            key: key.clone(),
            since: at(1),
            via: Via::Api,
        };
        assert_eq!(find(&store, acme, &key).await, Some(first), "{sender:?}");
        assert!(remove(&store, acme, &key, 3).await, "{sender:?}");
        assert!(!remove(&store, acme, &key, 4).await, "{sender:?}");
        assert_eq!(find(&store, acme, &key).await, None, "{sender:?}");
        let twice = store.add_opt_outs(acme, &twice, Via::Keyword, at(5)).await;
        assert_eq!(twice.expect("the store answers"), 1, "{sender:?}");
        let second = find(&store, acme, &key).await.expect("it is back");
        assert_eq!(
            (second.since, second.via),
            (at(5), Via::Keyword),
            "{sender:?}"
        );
    }
}

async fn a_list_has_pages_and_belongs_to_its_account(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let keys = [
        key(1, None),
        key(1, Some("+37129999999")),
        key(1, Some("Acme")),
        key(2, None),
        key(3, Some("acme")),
    ];
    assert_eq!(add(&store, acme, &keys, 1).await, 5);
    assert_eq!(add(&store, other, &keys[3..4], 2).await, 1);
    assert_eq!(list(&store, acme).await, keys);
    assert!(remove(&store, acme, &keys[2], 3).await);
    let mut left = keys.to_vec();
    left.remove(2);
    let mut after = None;
    for expected in &left {
        let page = store.list_opt_outs(acme, after.as_ref(), 1).await;
        let page = page.expect("the store answers");
        assert_eq!(page.len(), 1);
        assert_eq!(page[0].key, *expected);
        after = Some(page[0].key.clone());
    }
    let end = store.list_opt_outs(acme, after.as_ref(), 1).await;
    assert_eq!(end.expect("the store answers"), []);
    let of = store.list_opt_outs_of(&keys[3].recipient, 10).await;
    let of = of.expect("the store answers").into_iter();
    let of: Vec<AccountId> = of.map(|(account, _)| account).collect();
    assert_eq!(of, [acme, other]);
}

async fn changes_are_read_by_their_numbers(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let versions = || async {
        let versions = store.get_list_versions().await;
        versions.expect("the store answers").opt_outs
    };
    assert_eq!(changes(&store, None).await, []);
    let first = versions().await;
    let keys = [key(1, None), key(2, None), key(3, Some("Acme"))];
    add(&store, acme, &keys, 1).await;
    assert!(versions().await > first);
    let added = changes(&store, None).await;
    let numbers: BTreeSet<i64> = added.iter().map(|change| change.number).collect();
    assert_eq!(
        numbers.len(),
        1,
        "entries that are added at once share a number"
    );
    assert_eq!(numbers.last(), Some(&versions().await));
    assert!(
        added
            .iter()
            .all(|change| change.is_listed && change.account == acme)
    );
    let read: Vec<_> = added.iter().map(|change| change.key.clone()).collect();
    assert_eq!(read, keys);

    remove(&store, acme, &keys[1], 2).await;
    let removed = changes(&store, added.last().cloned()).await;
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].key, keys[1]);
    assert!(!removed[0].is_listed);
    assert_eq!(removed[0].number, versions().await);
    add(&store, acme, &keys[1..2], 3).await;
    let back = changes(&store, removed.last().cloned()).await;
    assert_eq!(back.len(), 1);
    assert!(back[0].is_listed);
    assert_eq!(changes(&store, None).await.len(), 3, "one for each entry");
}

/// A reader that follows the numbers sees every change, whatever the order in which transactions end.
async fn concurrent_changes_are_not_missed(store: Arc<dyn Store>) {
    const WRITERS: u64 = 8;
    const EACH: u64 = 12;
    let acme = create_account(&store, "acme").await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0..EACH {
                add(&store, acme, &[key(writer * EACH + n, None)], 1).await;
            }
        });
    }
    let (mut last, mut seen) = (None, BTreeSet::new());
    let mut are_done = false;
    loop {
        let new = changes(&store, last.clone()).await;
        seen.extend(new.iter().map(|change| change.key.recipient.as_i64()));
        last = new.last().cloned().or(last);
        if are_done {
            break;
        }
        are_done = writers.is_empty();
        // One more look follows after the last writer.
        if let Some(written) = writers.try_join_next() {
            written.expect("it writes");
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.len() as u64, WRITERS * EACH);
}

async fn what_is_left_of_removed_entries_is_pruned(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let keys = [key(1, None), key(2, None), key(3, None)];
    add(&store, acme, &keys, 1).await;
    remove(&store, acme, &keys[0], 10).await;
    remove(&store, acme, &keys[1], 20).await;
    let prune = |second| {
        let store = store.clone();
        async move {
            let pruned = store.prune_opt_outs(at(second), 100).await;
            pruned.expect("the store answers")
        }
    };
    assert_eq!(prune(10).await, 0);
    assert_eq!(prune(15).await, 1);
    assert_eq!(changes(&store, None).await.len(), 2);
    assert_eq!(prune(30).await, 1);
    assert_eq!(prune(30).await, 0);
    assert_eq!(list(&store, acme).await, &keys[2..]);
}

async fn a_block_rule_is_there_once(store: Arc<dyn Store>) {
    let rule = |kind, value| BlockRule::parse(kind, value).expect("a rule");
    let rules = [
        rule(BlockKind::Number, "+37120000001"),
        rule(BlockKind::Prefix, "+371200"),
        rule(BlockKind::Sender, "Casino"),
        rule(BlockKind::Word, "jackpot"),
    ];
    let version = || async {
        let versions = store.get_list_versions().await;
        versions.expect("the store answers").blocks
    };
    for (added, rule) in rules.iter().enumerate() {
        let before = version().await;
        let new = store.add_block_rule(rule, at(1)).await;
        assert!(new.expect("the store answers"), "{rule}");
        assert!(version().await > before, "{rule}");
        let again = store.add_block_rule(rule, at(2)).await;
        assert!(!again.expect("the store answers"), "{rule}");
        let listed = store.list_block_rules().await.expect("the store answers");
        assert_eq!(listed.len(), added + 1);
        assert_eq!((&listed[added].rule, listed[added].since), (rule, at(1)));
    }
    for rule in &rules {
        let before = version().await;
        let removed = store.remove_block_rule(rule).await;
        assert!(removed.expect("the store answers"), "{rule}");
        assert!(version().await > before, "{rule}");
        let again = store.remove_block_rule(rule).await;
        assert!(!again.expect("the store answers"), "{rule}");
    }
    assert_eq!(
        store.list_block_rules().await.expect("the store answers"),
        []
    );
}
