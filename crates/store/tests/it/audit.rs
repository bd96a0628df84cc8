//! The audit log.

use std::sync::Arc;

use domain::ids::AuditId;
use domain::ports::{AuditFilter, Change, Cursor, Store};

use super::sample::{account, at};

on_both_stores!(
    entries_are_read_back_unchanged_newest_first,
    every_condition_of_a_filter_counts,
    pages_follow_one_another_without_gap_or_repetition,
);

/// A limit above the number of entries in any test.
const ALL: Cursor<AuditId> = Cursor {
    before: None,
    limit: 1000,
};

fn change(who: &str, number: Option<u64>, action: &str) -> Change {
    Change {
        who: who.to_owned(),
        address: None,
        account: number.map(account),
        action: action.to_owned(),
        subject: "token 12 (backend)".to_owned(),
        detail: String::new(),
        at: at(1),
    }
}

async fn record(store: &Arc<dyn Store>, change: &Change) -> AuditId {
    store.record_change(change).await.expect("it is recorded")
}

async fn search(
    store: &Arc<dyn Store>,
    filter: &AuditFilter,
    cursor: Cursor<AuditId>,
) -> (Vec<AuditId>, Option<AuditId>) {
    let found = store.search_changes(filter, cursor).await.expect("answers");
    let ids = found.rows.iter().map(|entry| entry.id).collect();
    (ids, found.next)
}

async fn entries_are_read_back_unchanged_newest_first(store: Arc<dyn Store>) {
    let changes = [
        change("command line", None, "account.create"),
        Change {
            address: Some("2001:db8::7".parse().expect("an address")),
            detail: "ünïcödé 'quoted' \"twice\" ; DROP TABLE audit".to_owned(),
            ..change("ann@example.com", Some(7), "token.create")
        },
        Change {
            address: Some("192.0.2.1".parse().expect("an address")),
            at: at(0),
            ..change("ann@example.com", Some(7), "token.create.refused")
        },
    ];
    let mut ids = Vec::new();
    for change in &changes {
        ids.push(record(&store, change).await);
    }
    assert!(ids.is_sorted(), "{ids:?}");
    let found = store
        .search_changes(&AuditFilter::default(), ALL)
        .await
        .expect("answers");
    assert_eq!(found.next, None);
    let read: Vec<Change> = found.rows.into_iter().map(|entry| entry.change).collect();
    let newest_first: Vec<Change> = changes.into_iter().rev().collect();
    assert_eq!(read, newest_first);
}

async fn every_condition_of_a_filter_counts(store: Arc<dyn Store>) {
    let mut ids = Vec::new();
    for (who, account, action) in [
        ("ann@example.com", Some(1), "token.create"),
        ("ann@example.com", Some(2), "token.revoke"),
        ("bob@example.com", Some(1), "token.create.refused"),
        ("bob@example.com", None, "prices.import"),
    ] {
        ids.push(record(&store, &change(who, account, action)).await);
    }
    let filter = |number: Option<u64>, who: Option<&str>, action: Option<&str>| AuditFilter {
        account: number.map(account),
        who: who.map(str::to_owned),
        action: action.map(str::to_owned),
    };
    let ann = Some("ann@example.com");
    for (name, filter, expected) in [
        ("all", filter(None, None, None), vec![3, 2, 1, 0]),
        ("an account", filter(Some(1), None, None), vec![2, 0]),
        ("another", filter(Some(3), None, None), vec![]),
        ("a person", filter(None, ann, None), vec![1, 0]),
        ("part of a name", filter(None, Some("ann"), None), vec![]),
        (
            "a subject",
            filter(None, None, Some("token")),
            vec![2, 1, 0],
        ),
        (
            "an action, refused or not",
            filter(None, None, Some("token.create")),
            vec![2, 0],
        ),
        ("a wildcard", filter(None, None, Some("%")), vec![]),
        ("two", filter(Some(1), ann, None), vec![0]),
        ("three", filter(Some(2), ann, Some("token.revoke")), vec![1]),
        ("none", filter(Some(2), ann, Some("token.create")), vec![]),
    ] {
        let expected: Vec<AuditId> = expected.into_iter().map(|at: usize| ids[at]).collect();
        let found = search(&store, &filter, ALL).await;
        assert_eq!(found, (expected, None), "{name}");
    }
}

async fn pages_follow_one_another_without_gap_or_repetition(store: Arc<dyn Store>) {
    let mut ids = Vec::new();
    for number in [1, 2, 1, 1, 2, 1] {
        ids.push(record(&store, &change("ann", Some(number), "token.create")).await);
    }
    let everybody = AuditFilter::default();
    let first = AuditFilter {
        account: Some(account(1)),
        ..AuditFilter::default()
    };
    for (name, filter, pages) in [
        ("all", &everybody, [vec![5, 4], vec![3, 2], vec![1, 0]]),
        ("one account", &first, [vec![5, 3], vec![2, 0], vec![]]),
    ] {
        let mut before = None;
        for page in pages.into_iter().filter(|page| !page.is_empty()) {
            let (found, next) = search(&store, filter, Cursor { before, limit: 2 }).await;
            let expected: Vec<AuditId> = page.into_iter().map(|at: usize| ids[at]).collect();
            assert_eq!(found, expected, "{name}");
            before = next;
        }
        assert_eq!(before, None, "{name}: there are no older entries");
    }
}

mod database_itself {
    use domain::ports::{AuditFilter, Cursor};

    use super::{ALL, change, record, search};
    use crate::fixture::Database;

    on_both_databases!(
        a_rare_entry_is_found_after_several_pages,
        the_database_itself_refuses_to_change_the_log,
    );

    async fn a_rare_entry_is_found_after_several_pages(database: Database) {
        const MANY: &str = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050)
            INSERT INTO audit (at_us, who, account_id, action, subject, detail)
                SELECT i, 'common', 1, 'token.create', '', '' FROM n";
        let store = database.open().await;
        let rare = record(&store, &change("rare", Some(1), "token.create")).await;
        database.execute(MANY).await;
        let filter = AuditFilter {
            who: Some("rare".to_owned()),
            ..AuditFilter::default()
        };
        let (found, before) = search(&store, &filter, ALL).await;
        assert_eq!(found, [], "it is not among the newest rows");
        assert!(before.is_some(), "there are older rows");
        let found = search(&store, &filter, Cursor { before, limit: 5 }).await;
        assert_eq!(found, (vec![rare], None));
    }

    async fn the_database_itself_refuses_to_change_the_log(database: Database) {
        let store = database.open().await;
        let id = record(&store, &change("ann", None, "token.create")).await;
        record(&store, &change("bob", None, "token.create")).await;
        let replace = format!(
            "INSERT OR REPLACE INTO audit (id, at_us, who, action, subject, detail) VALUES ({id}, 0, 'x', 'x', 'x', 'x')"
        );
        let own = match &database {
            Database::Sqlite(_) => replace.as_str(),
            Database::Postgres(_) => "TRUNCATE audit",
        };
        for sql in [
            "UPDATE audit SET who = 'nobody'",
            "UPDATE audit SET id = id + 100",
            "DELETE FROM audit",
            "DELETE FROM audit WHERE who = 'ann'",
            own,
        ] {
            let refused = database.try_execute(sql).await;
            let refused = refused.expect_err(sql);
            assert!(
                refused.contains("what was noted is never"),
                "{sql}: {refused}"
            );
        }
        let rows = database
            .numbers("SELECT count(*) FROM audit WHERE who IN ('ann', 'bob')", 1)
            .await;
        assert_eq!(rows, [[Some(2)]]);
    }
}
