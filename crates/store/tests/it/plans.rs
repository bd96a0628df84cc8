//! Regular work with a query plan that was made while its table was empty, on `PostgreSQL`.
//!
//! A connection keeps its plans. A plan that is good for an empty table may read all rows of a full one again and again.

use domain::Timestamp;
use store::Options;

use super::fixture::{Database, options};

const ROWS: i64 = 2_000;
/// How often the work may read a row. Reading all rows for each row would be 2,000 times.
const MAX_READS: i64 = 20;
/// Rows that expired long ago.
const FILL: [(&str, &str); 6] = [
    (
        "traffic_fresh",
        "INSERT INTO traffic_fresh (account_id, hour, channel, network, status, error, messages, parts, cost_micros)
        SELECT n, 1, 0, 0, 0, 0, 1, 1, 0",
    ),
    (
        "sign_in_try",
        "INSERT INTO sign_in_try SELECT int8send(n), 1, 1",
    ),
    (
        "known_browser",
        "INSERT INTO known_browser SELECT '\\x01', n, 1",
    ),
    (
        "oauth_client",
        "INSERT INTO oauth_client SELECT n::text, 'n', '[]', 1, 1",
    ),
    (
        "oauth_request",
        "INSERT INTO oauth_request
        SELECT int8send(n), 'c', 'n', 'r', '\\x00', NULL, '', '', 1",
    ),
    (
        "code_text",
        "INSERT INTO code_text SELECT n, '\\x00'",
    ),
];

#[tokio::test]
async fn plans_made_for_empty_tables_are_good_for_full_ones() {
    let database = Database::postgres().await;
    let url = database.url().parse().expect("a valid URL");
    let one_connection = Options {
        postgres_connections: 1,
        ..options()
    };
    let store = store::open(&url, &one_connection).await.expect("opens");
    for (table, _) in FILL {
        // New statistics would lead to new plans.
        let off = format!("ALTER TABLE {table} SET (autovacuum_enabled = false)");
        database.execute(&off).await;
        database.execute(&format!("VACUUM ANALYZE {table}")).await;
    }
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let limit = u32::try_from(ROWS).expect("few");
    for filled in [false, true] {
        if filled {
            for (_, rows) in FILL {
                let rows = format!("{rows} FROM generate_series(1, {ROWS}) AS n");
                database.execute(&rows).await;
            }
        }
        store.add_up_traffic(limit).await.expect("added up");
        store.prune_attempts(now, limit).await.expect("pruned");
        store.prune_grants(now, limit).await.expect("pruned");
        let age = jiff::SignedDuration::from_secs(1);
        store
            .prune_code_texts("alpha", age, limit)
            .await
            .expect("pruned");
    }
    // The server counts what a connection has read when the connection ends, at the latest.
    drop(store);
    let others = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> ''";
    while database.numbers(others, 1).await != [[Some(0)]] {
        tokio::task::yield_now().await;
    }
    for (table, _) in FILL {
        let left = format!("SELECT count(*) FROM {table}");
        assert_eq!(database.numbers(&left, 1).await, [[Some(0)]], "{table}");
        let read = format!(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = '{table}'"
        );
        let read = database.numbers(&read, 1).await[0][0].expect("a number");
        println!("{table}: {read} rows read");
        assert!(read <= MAX_READS * ROWS, "{table}: {read} rows read");
    }
}
