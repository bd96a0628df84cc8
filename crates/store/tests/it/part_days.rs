//! The days of parts on `PostgreSQL`: partitions that are created in advance, and dropped when no part is needed.

use std::sync::{Arc, LazyLock};

use domain::Clock;
use domain::delivery::{Receipt, Settlement};
use domain::ports::{Matched, Settled, Store};
use domain::{NodeId, Outcome, Timestamp};
use engine::clock::SystemClock;
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

/// The number of rows in `transit_before`, in the default partition, and in the partitions of days.
async fn rows(database: &Database) -> [i64; 3] {
    const ROWS: &str =
        "SELECT (SELECT count(*) FROM transit_before), (SELECT count(*) FROM transit_default),
        (SELECT count(*) FROM transit)";
    let rows = &database.numbers(ROWS, 3).await[0];
    let [before, default, all] = [rows[0], rows[1], rows[2]].map(Option::unwrap_or_default);
    [before, default, all - before - default]
}

/// Midday, this many days ago. "Now" is fixed, so that it does not matter if a day ends during the tests.
fn days_ago(days: i64) -> Timestamp {
    static NOW: LazyLock<Timestamp> = LazyLock::new(|| SystemClock.now());
    let today = NOW.to_zoned(TimeZone::UTC).start_of_day();
    let midday = today.expect("a day").checked_add((12 - 24 * days).hours());
    midday.expect("within range").timestamp()
}

/// That day as a number, as in the names of partitions.
fn date_number(days: i64) -> i64 {
    let date = days_ago(days).to_zoned(TimeZone::UTC).date();
    let name = date.strftime("%Y%m%d").to_string();
    name.parse().expect("a number")
}

/// Makes `transit_before` end a year ago, and creates partitions of these days, as in a database that is not new.
async fn database_with_days(days: &[i64]) -> Database {
    let database = Database::postgres().await;
    drop(database.open().await);
    let end = days_ago(365).as_microsecond();
    let mut sql = format!(
        "ALTER TABLE transit DETACH PARTITION transit_before;
        ALTER TABLE transit ATTACH PARTITION transit_before FOR VALUES FROM (MINVALUE) TO ({end});"
    );
    for &day in days {
        let midday = days_ago(day);
        let name = format!("transit_{}", date_number(day));
        let half_a_day = 12.hours();
        let (first, end) = (midday - half_a_day, midday + half_a_day);
        let (first, end) = (first.as_microsecond(), end.as_microsecond());
        sql = format!(
            "{sql} CREATE TABLE {name} (LIKE transit INCLUDING DEFAULTS);
            ALTER TABLE transit ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end});"
        );
    }
    database.execute(&sql).await;
    database
}

async fn send_at(store: &Arc<dyn Store>, node: NodeId, id: u64, at: Timestamp) {
    accept(store, vec![held(id, node)]).await;
    let taken = Settlement {
        at,
        ..first_result(id, taken(&[&format!("r{id}")]))
    };
    assert_eq!(settle(store, node, vec![taken]).await, [Settled::Stored]);
}

async fn report_kind(store: &Arc<dyn Store>, node: NodeId, id: u64) -> &'static str {
    let late = Receipt {
        at: store.now().await.expect("answers"),
        ..receipt(&format!("r{id}"), Outcome::Delivered)
    };
    kind(&report(store, node, vec![late]).await[0])
}

async fn prune(store: &Arc<dyn Store>) -> u64 {
    store.prune_receipts(HOUR, 500).await.expect("answers")
}

#[tokio::test]
async fn days_are_created_in_advance_but_not_within_before() {
    let database = Database::postgres().await;
    let store = database.open().await;
    store.reserve_ids(1).await.expect("IDs are left");
    let first = days(&database).await;
    assert!((3..=4).contains(&first.len()), "{first:?}");
    let store = database.open().await;
    assert_eq!(prune(&store).await, 0);
    assert!(
        days(&database).await.starts_with(&first),
        "each is created once"
    );

    let database = database_with_days(&[]).await;
    let store = database.open().await;
    assert_eq!(prune(&store).await, 0);
    assert_eq!(days(&database).await.len(), 4, "today and three more");
}

#[tokio::test]
async fn a_day_of_parts_is_dropped_when_none_is_needed() {
    let database = database_with_days(&[9, 8, 7, 0]).await;
    let store = database.open().await;
    let node = join(&store).await;
    for (id, day) in [(1, 9), (2, 9), (3, 8), (4, 8), (5, 7), (6, 0)] {
        send_at(&store, node, id, days_ago(day)).await;
    }
    assert_eq!(rows(&database).await, [0, 0, 6]);
    for id in [1, 2, 3] {
        assert_eq!(report_kind(&store, node, id).await, "ended", "{id}");
    }
    assert_eq!(report_kind(&store, node, 3).await, "repeated");
    let age = jiff::SignedDuration::from_hours(24 * 20);
    let recent = store.prune_receipts(age, 500).await;
    assert_eq!(recent.expect("answers"), 0);
    assert_eq!(prune(&store).await, 1);
    assert_eq!(rows(&database).await, [0, 0, 4]);
    let left = days(&database).await;
    let is_left = [9, 8, 7, 0].map(|day| left.contains(&date_number(day)));
    assert_eq!(
        is_left,
        [false, true, true, true],
        "days with parts in transit are kept"
    );
    assert_eq!(
        report_kind(&store, node, 1).await,
        "kept",
        "its part is deleted"
    );

    assert_eq!(report_kind(&store, node, 4).await, "ended");
    assert_eq!(report_kind(&store, node, 6).await, "ended");
    assert_eq!(
        prune(&store).await,
        0,
        "the day is checked again only later"
    );
    let store = database.open().await;
    assert_eq!(prune(&store).await, 1);
    assert_eq!(rows(&database).await, [0, 0, 2]);
    assert_eq!(report_kind(&store, node, 5).await, "ended");
}

#[tokio::test]
async fn parts_of_a_day_without_a_partition_are_stored_and_deleted() {
    let database = database_with_days(&[]).await;
    let store = database.open().await;
    let node = join(&store).await;
    send_at(&store, node, 1, past(1)).await;
    send_at(&store, node, 2, days_ago(9)).await;
    send_at(&store, node, 3, future(0)).await;
    assert_eq!(rows(&database).await, [1, 2, 0]);
    for id in 1..=3 {
        assert_eq!(report_kind(&store, node, id).await, "ended", "{id}");
    }
    assert_eq!(prune(&store).await, 2);
    assert_eq!(
        rows(&database).await,
        [0, 1, 0],
        "a part of the future is kept"
    );
}

/// Rows in the default partition prevent the creation of the partition of their day, and nothing else.
#[tokio::test]
async fn a_day_that_cannot_be_created_does_no_harm() {
    let database = database_with_days(&[]).await;
    let store = database.open().await;
    let tomorrow = days_ago(-1).as_microsecond();
    let stored = format!(
        "INSERT INTO transit (carrier, reference, id, part, parts, taken_us) VALUES ('alpha', 'x', 7, 1, 1, {tomorrow})"
    );
    database.execute(&stored).await;
    assert_eq!(prune(&store).await, 0);
    assert_eq!(days(&database).await.len(), 3);
    let node = join(&store).await;
    send_at(&store, node, 1, days_ago(-1)).await;
    assert_eq!(rows(&database).await, [0, 2, 0]);
    assert_eq!(report_kind(&store, node, 1).await, "ended");
}

#[tokio::test]
async fn a_long_read_only_delays_the_drop() {
    let database = database_with_days(&[9]).await;
    let Database::Postgres(server) = &database else {
        unreachable!("it is one")
    };
    let store = database.open().await;
    let (reader, _connection) = connect(server.database()).await;
    let read = "BEGIN; SELECT count(*) FROM transit";
    reader
        .batch_execute(read)
        .await
        .expect("the statement is valid");
    assert_eq!(prune(&store).await, 0);
    reader.batch_execute("COMMIT").await.expect("it ends");
    assert_eq!(prune(&store).await, 1);
}

/// A role with no other right than to read and write rows stores parts, and deletes them row by row.
#[tokio::test]
async fn a_role_that_may_drop_nothing_deletes_rows() {
    let database = database_with_days(&[9]).await;
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
        send_at(&store, node, id, days_ago(day)).await;
    }
    let stored = rows(&database).await;
    let mut reports = Vec::new();
    for id in 1..=4 {
        reports.push(report_kind(&store, node, id).await);
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
        "rows in the partition of the day are deleted from the second step on"
    );
    assert_eq!(left, [0, 0, 0]);
}

/// A receipt belongs to the newest open part, whatever its day is.
#[tokio::test]
async fn a_reference_of_several_days_means_the_newest_open_part() {
    let database = database_with_days(&[9, 8, 1]).await;
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
