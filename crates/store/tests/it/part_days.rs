//! The days of parts on `PostgreSQL`: partitions that are created in advance, and dropped when no part is needed.

use std::sync::{Arc, LazyLock};

use domain::clock::{Clock, SystemClock};
use domain::delivery::{Receipt, Settlement};
use domain::ports::{Matched, Settled, Store};
use domain::{NodeId, Outcome, Timestamp};
use jiff::ToSpan;
use jiff::tz::TimeZone;

use super::fixture::{Database, connect, options};
use super::handshake::as_role;
use super::sample::accept;
use super::steps::{
    HOUR, first_result, future, held, join, kind, past, receipt, report, settle, taken,
};

/// Days that have a partition of parts, such as 20261115.
async fn days(database: &Database) -> Vec<i64> {
    const DAYS: &str = "
        SELECT CAST(substring(c.relname FROM 'transit_(\\d+)') AS BIGINT)
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'transit'::regclass AND c.relname ~ '\\d' ORDER BY 1";
    let days = database.numbers(DAYS, 1).await;
    days.iter().filter_map(|row| row[0]).collect()
}

/// So many rows are in "before", in the default partition, and in those of days.
async fn rows(database: &Database) -> [i64; 3] {
    const ROWS: &str =
        "SELECT (SELECT count(*) FROM transit_before), (SELECT count(*) FROM transit_default),
        (SELECT count(*) FROM transit)";
    let rows = &database.numbers(ROWS, 3).await[0];
    let [before, default, all] = [rows[0], rows[1], rows[2]].map(Option::unwrap_or_default);
    [before, default, all - before - default]
}

/// Midday, so many days ago; the same for all tests, even if a day ends meanwhile.
fn days_ago(days: i64) -> Timestamp {
    static NOW: LazyLock<Timestamp> = LazyLock::new(|| SystemClock.now());
    let today = NOW.to_zoned(TimeZone::UTC).start_of_day();
    let midday = today.expect("a day").checked_add((12 - 24 * days).hours());
    midday.expect("within range").timestamp()
}

/// That day, as partitions are named by it.
fn named(days: i64) -> i64 {
    let date = days_ago(days).to_zoned(TimeZone::UTC).date();
    let name = date.strftime("%Y%m%d").to_string();
    name.parse().expect("a number")
}

/// Lets "before" end a year ago, and makes partitions of these days, as a database has them after a while.
async fn database_of_a_while(days: &[i64]) -> Database {
    let database = Database::postgres().await;
    drop(database.open().await);
    let end = days_ago(365).as_microsecond();
    let mut sql = format!(
        "ALTER TABLE transit DETACH PARTITION transit_before;
        ALTER TABLE transit ATTACH PARTITION transit_before FOR VALUES FROM (MINVALUE) TO ({end});"
    );
    for &day in days {
        let midday = days_ago(day);
        let name = format!("transit_{}", named(day));
        let half = 12.hours();
        let (first, end) = (midday - half, midday + half);
        let (first, end) = (first.as_microsecond(), end.as_microsecond());
        sql = format!(
            "{sql} CREATE TABLE {name} (LIKE transit INCLUDING DEFAULTS);
            ALTER TABLE transit ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end});"
        );
    }
    database.execute(&sql).await;
    database
}

async fn take(store: &Arc<dyn Store>, node: NodeId, id: u64, at: Timestamp) {
    accept(store, vec![held(id, node)]).await;
    let taken = Settlement {
        at,
        ..first_result(id, taken(&[&format!("r{id}")]))
    };
    assert_eq!(settle(store, node, vec![taken]).await, [Settled::Stored]);
}

async fn reported(store: &Arc<dyn Store>, node: NodeId, id: u64) -> &'static str {
    let late = Receipt {
        at: store.now().await.expect("answers"),
        ..receipt(&format!("r{id}"), Outcome::Delivered)
    };
    kind(&report(store, node, vec![late]).await[0])
}

async fn forget(store: &Arc<dyn Store>) -> u64 {
    store.prune_receipts(HOUR, 500).await.expect("answers")
}

#[tokio::test]
async fn days_are_made_ahead_and_not_where_before_has_them() {
    let database = Database::postgres().await;
    let store = database.open().await;
    store.reserve_ids(1).await.expect("IDs are left");
    let first = days(&database).await;
    assert!((3..=4).contains(&first.len()), "{first:?}");
    let store = database.open().await;
    assert_eq!(forget(&store).await, 0);
    assert!(days(&database).await.starts_with(&first), "once each");

    let database = database_of_a_while(&[]).await;
    let store = database.open().await;
    assert_eq!(forget(&store).await, 0);
    assert_eq!(days(&database).await.len(), 4, "today and three more");
}

#[tokio::test]
async fn a_day_of_parts_is_dropped_once_nobody_waits_for_them() {
    let database = database_of_a_while(&[9, 8, 7, 0]).await;
    let store = database.open().await;
    let node = join(&store).await;
    for (id, day) in [(1, 9), (2, 9), (3, 8), (4, 8), (5, 7), (6, 0)] {
        take(&store, node, id, days_ago(day)).await;
    }
    assert_eq!(rows(&database).await, [0, 0, 6]);
    for id in [1, 2, 3] {
        assert_eq!(reported(&store, node, id).await, "ended", "{id}");
    }
    assert_eq!(reported(&store, node, 3).await, "repeated");
    let age = jiff::SignedDuration::from_hours(24 * 20);
    let young = store.prune_receipts(age, 500).await;
    assert_eq!(young.expect("answers"), 0);
    assert_eq!(forget(&store).await, 1);
    assert_eq!(rows(&database).await, [0, 0, 4]);
    let left = days(&database).await;
    let is_left = [9, 8, 7, 0].map(|day| left.contains(&named(day)));
    assert_eq!(is_left, [false, true, true, true], "they are waited for");
    assert_eq!(reported(&store, node, 1).await, "kept", "it is unknown");

    assert_eq!(reported(&store, node, 4).await, "ended");
    assert_eq!(reported(&store, node, 6).await, "ended");
    assert_eq!(forget(&store).await, 0, "it looks again later");
    let store = database.open().await;
    assert_eq!(forget(&store).await, 1);
    assert_eq!(rows(&database).await, [0, 0, 2]);
    assert_eq!(reported(&store, node, 5).await, "ended");
}

#[tokio::test]
async fn parts_of_a_day_without_a_partition_are_stored_and_forgotten() {
    let database = database_of_a_while(&[]).await;
    let store = database.open().await;
    let node = join(&store).await;
    take(&store, node, 1, past(1)).await;
    take(&store, node, 2, days_ago(9)).await;
    take(&store, node, 3, future(0)).await;
    assert_eq!(rows(&database).await, [1, 2, 0]);
    for id in 1..=3 {
        assert_eq!(reported(&store, node, id).await, "ended", "{id}");
    }
    assert_eq!(forget(&store).await, 2);
    assert_eq!(rows(&database).await, [0, 1, 0], "that is yet to come");
}

/// Rows of a day that are stored already keep its partition from being made, and nothing else.
#[tokio::test]
async fn a_day_that_cannot_be_made_does_no_harm() {
    let database = database_of_a_while(&[]).await;
    let store = database.open().await;
    let tomorrow = days_ago(-1).as_microsecond();
    let stored = format!(
        "INSERT INTO transit (carrier, reference, id, part, parts, taken_us) VALUES ('alpha', 'x', 7, 1, 1, {tomorrow})"
    );
    database.execute(&stored).await;
    assert_eq!(forget(&store).await, 0);
    assert_eq!(days(&database).await.len(), 3);
    let node = join(&store).await;
    take(&store, node, 1, days_ago(-1)).await;
    assert_eq!(rows(&database).await, [0, 2, 0]);
    assert_eq!(reported(&store, node, 1).await, "ended");
}

#[tokio::test]
async fn a_long_reader_only_puts_off_the_drop() {
    let database = database_of_a_while(&[9]).await;
    let Database::Postgres(served) = &database else {
        unreachable!("it is one")
    };
    let store = database.open().await;
    let (reader, _connection) = connect(served.database()).await;
    let read = "BEGIN; SELECT count(*) FROM transit";
    reader.batch_execute(read).await.expect("it reads");
    assert_eq!(forget(&store).await, 0);
    reader.batch_execute("COMMIT").await.expect("it ends");
    assert_eq!(forget(&store).await, 1);
}

/// A database user that may only read and write rows still stores parts, and deletes them one by one.
#[tokio::test]
async fn a_role_that_may_drop_nothing_deletes_rows() {
    let database = database_of_a_while(&[9]).await;
    let name = format!("parts_{}", std::process::id());
    let role = format!(
        "CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}"
    );
    database.execute(&role).await;
    let opened = store::open(&as_role(&database, &name), &options()).await;
    let store = opened.expect("there is nothing to create");
    let node = join(&store).await;
    for (id, day) in [(1, 9), (2, 9), (3, 9), (4, 8)] {
        take(&store, node, id, days_ago(day)).await;
    }
    let stored = rows(&database).await;
    let mut reports = Vec::new();
    for id in 1..=4 {
        reports.push(reported(&store, node, id).await);
    }
    let mut steps = Vec::new();
    for _ in 0..4 {
        let pruned = store.prune_receipts(HOUR, 2).await;
        steps.push(pruned.expect("answers"));
    }
    let left = rows(&database).await;
    drop(store);
    let clean = format!("DROP OWNED BY {name}; DROP ROLE {name}");
    database.execute(&clean).await;
    assert_eq!(stored, [0, 1, 3]);
    assert_eq!(reports, ["ended"; 4]);
    assert_eq!(
        steps,
        [1, 2, 1, 0],
        "the day itself from the second step on"
    );
    assert_eq!(left, [0, 0, 0]);
}

/// The newest open part is meant, on whatever day it was taken.
#[tokio::test]
async fn a_reference_of_several_days_means_the_newest_open_part() {
    let database = database_of_a_while(&[9, 8, 1]).await;
    let store = database.open().await;
    let node = join(&store).await;
    for (id, at) in [
        (3, days_ago(1)),
        (1, days_ago(9)),
        (4, past(1)),
        (2, days_ago(8)),
    ] {
        accept(&store, vec![held(id, node)]).await;
        let taken = Settlement {
            at,
            ..first_result(id, taken(&["a"]))
        };
        settle(&store, node, vec![taken]).await;
    }
    for expected in [3, 2, 1, 4] {
        let one = Receipt {
            at: days_ago(0),
            ..receipt("a", Outcome::Delivered)
        };
        let matched = report(&store, node, vec![one]).await;
        let [Matched::Ended(ended)] = &matched[..] else {
            panic!("{matched:?}")
        };
        assert_eq!(ended.id.get(), expected);
    }
}
