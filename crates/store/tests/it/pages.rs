//! Lists that are read page by page, and the facts about the database.

use std::sync::Arc;

use domain::AccountId;
use domain::billing::SpendingRules;
use domain::ports::{Cursor, ListRange, NewSender, Registered, SenderFilter, Store};
use domain::sender::{Category, SenderKind, SenderName, SenderState};
use domain::{Money, SenderId};

use super::sample::{account, at, create_account};

on_both_stores!(
    accounts_are_found_by_part_of_their_name,
    names_of_several_accounts_are_listed,
    a_ledger_is_read_page_by_page,
    senders_are_read_page_by_page,
    rules_are_replaced_only_if_unchanged,
    the_database_is_described,
);

async fn names(
    store: &Arc<dyn Store>,
    name: Option<&str>,
    cursor: Cursor<AccountId>,
) -> Vec<String> {
    let found = store.search_accounts(name, cursor).await.expect("answers");
    found.rows.into_iter().map(|account| account.name).collect()
}

async fn accounts_are_found_by_part_of_their_name(store: Arc<dyn Store>) {
    for name in ["acme", "Acme 2", "100% ac_me", "other"] {
        create_account(&store, name).await;
    }
    let all = Cursor {
        before: None,
        limit: 10,
    };
    for (name, expected) in [
        (None, &["other", "100% ac_me", "Acme 2", "acme"][..]),
        (Some("ACME"), &["Acme 2", "acme"]),
        (Some("%"), &["100% ac_me"]),
        (Some("c_m"), &["100% ac_me"]),
        (Some("nobody"), &[]),
    ] {
        assert_eq!(names(&store, name, all).await, expected, "{name:?}");
    }
    let mut cursor = Cursor {
        before: None,
        limit: 2,
    };
    let first = store.search_accounts(None, cursor).await.expect("answers");
    assert_eq!(first.rows.len(), 2);
    cursor.before = first.next;
    let second = store.search_accounts(None, cursor).await.expect("answers");
    assert_eq!(
        (second.rows.len(), second.rows[1].name.as_str()),
        (2, "acme")
    );
    cursor.before = second.next;
    let third = store.search_accounts(None, cursor).await.expect("answers");
    assert_eq!((third.rows.len(), third.next), (0, None));
}

async fn names_of_several_accounts_are_listed(store: Arc<dyn Store>) {
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let unknown = account(other.get() + 1);
    let ids = [other, unknown, acme];
    let mut names = store.list_account_names(&ids).await.expect("answers");
    names.sort();
    assert_eq!(
        names,
        [(acme, "acme".to_owned()), (other, "other".to_owned())]
    );
    assert_eq!(store.list_account_names(&[]).await.expect("answers"), []);
}

async fn a_ledger_is_read_page_by_page(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    for micros in 1..=4 {
        for owner in [acme, other] {
            let amount = Money::from_micros(micros);
            let credited = store.credit(owner, amount, None, at(micros)).await;
            credited.expect("answers").expect("an account");
        }
    }
    let mut read = Vec::new();
    let mut before = None;
    loop {
        let page = store.list_ledger(acme, before, 2).await.expect("answers");
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        read.extend(page.iter().map(|entry| entry.amount.micros()));
    }
    assert_eq!(read[..4], [4, 3, 2, 1], "the newest first");
    assert_eq!(read.len(), 5, "with the opening balance, and none twice");
}

async fn register(store: &Arc<dyn Store>, owner: AccountId, name: &str) -> SenderId {
    let sender = NewSender {
        account: owner,
        name: SenderName::parse(SenderKind::AlphaNumeric, name).expect("a name"),
        category: Some(Category::Brand),
        description: None,
        notification_url: None,
        pin: None,
        created_at: at(1),
    };
    match store.register_sender(&sender).await.expect("answers") {
        Registered::New(id) => id,
        other => panic!("{name}: {other:?}"),
    }
}

async fn senders_are_read_page_by_page(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let mut ids = Vec::new();
    for name in ["One", "Two", "Three"] {
        ids.push(register(&store, acme, name).await);
    }
    let after = |after| SenderFilter {
        account: None,
        state: Some(SenderState::Pending),
        after,
    };
    let page = ListRange {
        limit: 2,
        offset: 0,
    };
    for (last, expected) in [
        (None, &ids[..2]),
        (Some(ids[1]), &ids[2..]),
        (Some(ids[2]), &[]),
    ] {
        let senders = store.list_senders(after(last), page).await;
        let found: Vec<SenderId> = senders.expect("answers").iter().map(|one| one.id).collect();
        assert_eq!(found, expected, "{last:?}");
    }
}

async fn rules_are_replaced_only_if_unchanged(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let read = SpendingRules::default();
    let capped = SpendingRules {
        daily_cap: Some(Money::from_micros(5)),
        countries: "LV EE".parse().expect("countries"),
        ..read.clone()
    };
    let limited = SpendingRules {
        per_recipient_hour: Some(3),
        ..capped.clone()
    };
    let version = store.access_version().await.expect("answers");
    // The expected rules, the new rules, whether they are replaced.
    for (from, to, expected) in [
        (&read, &capped, true),
        (&read, &limited, false),
        (&capped, &limited, true),
        (&capped, &read, false),
        (&limited, &limited, true),
    ] {
        let set = store.set_rules(acme, Some(from), to).await;
        assert_eq!(set.expect("answers"), expected, "{from:?} {to:?}");
    }
    let now = store.find_account_by_id(acme).await.expect("answers");
    assert_eq!(now.expect("an account").rules, limited);
    let later = store.access_version().await.expect("answers");
    assert_eq!(later, version + 3, "only the successful changes count");
}

async fn the_database_is_described(store: Arc<dyn Store>) {
    let facts = store.describe_database().await.expect("answers");
    assert!(
        ["SQLite", "PostgreSQL"].contains(&facts.product),
        "{facts:?}"
    );
    assert!(facts.version.contains('.'), "{facts:?}");
    assert!(facts.schema >= 11 && facts.bytes > 0, "{facts:?}");
}
