//! Opening a database: for the first time, again, concurrently, and with the schema of another version.

use std::sync::Arc;

use domain::MessageId;
use domain::delivery::CallbackNext;
use domain::ports::{Accepted, CallbackFilter, CallbackState, Cancel, Matched, StoreError};
use tokio::task::JoinSet;

use super::days::undo_partitions;
use super::fixture::Database;
use super::handshake::UNDO_NODE_INFO;
use super::oauth::UNDO_GRANTS;
use super::people::UNDO_PEOPLE;
use super::sample::{EVERYTHING, accept, account, create_account, keyed, message, submission};
use super::steps::{
    ABSENT, attempt, attempted, claim, claim_callbacks, deliver, due, due_at, future, join, past,
    receipt, report, send, settle_callback,
};
use super::traffic::UNDO_DASHBOARD;

on_both_databases!(
    data_survives_reopening,
    two_stores_on_one_database_both_write,
    concurrent_opens_of_an_empty_database_succeed,
    a_newer_schema_is_refused,
    migrations_are_recorded_and_run_once,
    the_queue_and_the_balances_of_an_older_schema_are_migrated,
    reports_and_parts_of_an_older_schema_are_migrated,
);

const HISTORY: &str =
    "SELECT number, applied_us FROM schema_migration WHERE number > 0 ORDER BY number";

async fn data_survives_reopening(database: Database) {
    let store = database.open().await;
    let first = store.reserve_ids(10).await.expect("IDs are left");
    accept(&store, vec![submission(1, 2), keyed(3, 7, 7)]).await;
    let owner = create_account(&store, "acme").await;
    let version = store.access_version().await.expect("answers");
    drop(store);

    let store = database.open().await;
    for id in 1..=4 {
        assert!(
            store
                .find_message(account(1), message(id))
                .await
                .expect("answers")
                .is_some(),
            "{id}"
        );
    }
    assert_eq!(
        accept(&store, vec![keyed(11, 7, 7)]).await,
        [Accepted::Replayed(keyed(3, 7, 7).receipt())]
    );
    assert_eq!(
        store.reserve_ids(1).await.expect("IDs are left").get(),
        first.get() + 10
    );
    assert_eq!(
        store
            .find_account("acme")
            .await
            .expect("answers")
            .map(|record| record.id),
        Some(owner)
    );
    assert_eq!(store.access_version().await.expect("answers"), version);
}

async fn two_stores_on_one_database_both_write(database: Database) {
    let stores = [database.open().await, database.open().await];
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&stores[n % stores.len()]);
        tasks.spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..5 {
                let first = store.reserve_ids(3).await.expect("IDs are left");
                ids.push(first.get());
                assert_eq!(
                    accept(&store, vec![submission(first.get(), 3)]).await,
                    [Accepted::Stored]
                );
            }
            ids
        });
    }
    let ids = tasks.join_all().await.into_iter().flatten();
    let ids: Vec<u64> = ids.flat_map(|first| first..first + 3).collect();
    assert_eq!(ids.len(), 300);
    for (id, store) in ids
        .into_iter()
        .filter_map(MessageId::new)
        .zip(stores.iter().cycle())
    {
        assert!(
            store
                .find_message(account(1), id)
                .await
                .expect("answers")
                .is_some(),
            "{id}"
        );
    }
}

async fn concurrent_opens_of_an_empty_database_succeed(database: Database) {
    database.empty().await;
    let database = Arc::new(database);
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let database = Arc::clone(&database);
        tasks.spawn(async move {
            database
                .open()
                .await
                .reserve_ids(1)
                .await
                .expect("IDs are left")
        });
    }
    let mut ids: Vec<_> = tasks
        .join_all()
        .await
        .into_iter()
        .map(MessageId::get)
        .collect();
    ids.sort_unstable();
    let first = ids[0];
    assert_eq!(ids, (first..first + 8).collect::<Vec<_>>());
}

async fn a_newer_schema_is_refused(database: Database) {
    drop(database.open().await);
    database
        .execute(
            "INSERT INTO schema_migration (number, name, applied_us) VALUES (9999, 'newer', 0)",
        )
        .await;
    let error = database
        .try_open()
        .await
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.contains("the database is at schema 9999") && error.contains("run the newer version"),
        "{error}"
    );
}

async fn migrations_are_recorded_and_run_once(database: Database) {
    database.empty().await;
    drop(database.open().await);
    let recorded = database.numbers(HISTORY, 2).await;
    for (row, number) in recorded.iter().zip(1..) {
        assert_eq!(row[0], Some(number));
        assert!(
            row[1] > Some(1_700_000_000_000_000),
            "in microseconds since the epoch"
        );
    }
    drop(database.open().await);
    assert_eq!(database.numbers(HISTORY, 2).await, recorded);
}

/// After the server was restarted or closed the connections, the store reconnects without a restart of the node.
#[tokio::test]
async fn lost_connections_are_replaced() {
    const END_ALL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    const CONNECTIONS: usize = 4;

    let database = Database::postgres().await;
    let store = database.open().await;
    store.reserve_ids(1).await.expect("IDs are left");
    database.execute(END_ALL).await;
    let mut failures = 0;
    while let Err(error) = store.reserve_ids(1).await {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        failures += 1;
        assert!(
            failures <= CONNECTIONS,
            "each closed connection fails only once"
        );
    }
}

/// Messages that wait during an upgrade to this version are still in the queue.
async fn the_queue_and_the_balances_of_an_older_schema_are_migrated(database: Database) {
    const BEFORE: &str = "
        DROP TABLE queue; DROP TABLE node; DROP TABLE transit; DROP TABLE callback; DROP TABLE callback_queue;
        DROP TABLE callback_attempt; DROP TABLE carrier;
        ALTER TABLE message DROP COLUMN status; ALTER TABLE message DROP COLUMN error;
        ALTER TABLE message DROP COLUMN parts_left;
        CREATE TABLE queue (lane SMALLINT NOT NULL, due_us BIGINT NOT NULL, id BIGINT NOT NULL,
            attempt SMALLINT NOT NULL, PRIMARY KEY (lane, due_us, id));
        INSERT INTO queue (lane, due_us, id, attempt)
            SELECT priority, coalesce(scheduled_us, accepted_us), id, 0 FROM message;
        DROP TABLE ledger; DROP TABLE recipient_sent; DROP TABLE catalogue;
        ALTER TABLE account DROP COLUMN credit_limit_micros; ALTER TABLE account DROP COLUMN daily_cap_micros;
        ALTER TABLE account DROP COLUMN per_recipient_hour; ALTER TABLE account DROP COLUMN countries;
        ALTER TABLE account DROP COLUMN spent_day; ALTER TABLE account DROP COLUMN spent_micros;
        ALTER TABLE message DROP COLUMN price_micros; ALTER TABLE message DROP COLUMN network;
        DROP TABLE sender; DROP INDEX message_scheduled;
        ALTER TABLE message DROP COLUMN channel; ALTER TABLE message DROP COLUMN interactive;
        ALTER TABLE message DROP COLUMN result; ALTER TABLE message DROP COLUMN seen_us;
        ALTER TABLE account DROP COLUMN approved_senders_only;
        CREATE INDEX message_scheduled ON message (account_id, scheduled_us, id) WHERE state = 1;
        DELETE FROM schema_migration WHERE number >= 3";

    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    accept(
        &store,
        vec![due(1), due_at(2, future(1)), due_at(3, past(1))],
    )
    .await;
    drop(store);
    undo_partitions(&database).await;
    database.execute(UNDO_NODE_INFO).await;
    database.execute(UNDO_DASHBOARD).await;
    database.execute(UNDO_PEOPLE).await;
    database.execute(UNDO_GRANTS).await;
    database.execute(BEFORE).await;

    let store = database.open().await;
    let node = join(&store).await;
    let claimed = claim(&store, node).await;
    let claimed: Vec<u64> = claimed.iter().map(|queued| queued.id.get()).collect();
    assert_eq!(claimed, [1, 3]);
    let cancelled = store.cancel(account(1), message(2), past(2)).await;
    assert_eq!(cancelled.expect("answers"), Cancel::Done);
    assert_eq!(store.check_ledger().await.expect("answers"), []);
    let entries = store.list_ledger(owner, None, 10).await.expect("answers");
    assert_eq!(entries.len(), 1, "{entries:?}");
}

/// Reports that were stored with their payload keep it.
async fn reports_and_parts_of_an_older_schema_are_migrated(database: Database) {
    const BEFORE: &str = "
        DROP TABLE carrier;
        CREATE TABLE later AS SELECT * FROM transit;
        DROP TABLE transit;
        CREATE TABLE transit (carrier TEXT NOT NULL, reference BYTEA NOT NULL, id BIGINT, part SMALLINT,
            parts SMALLINT, taken_us BIGINT NOT NULL, status SMALLINT, error SMALLINT,
            PRIMARY KEY (carrier, reference));
        INSERT INTO transit SELECT carrier, reference, id, part, parts, taken_us, status, error FROM later;
        DROP TABLE later;
        CREATE INDEX transit_taken ON transit (taken_us);
        UPDATE callback SET payload = 'as it was stored',
            url = (SELECT dlr_url FROM message WHERE message.id = callback.message_id);
        UPDATE message SET dlr_url = NULL WHERE id = 1;
        DELETE FROM callback WHERE message_id = 4; DELETE FROM callback_queue WHERE id = 4;
        DELETE FROM schema_migration WHERE number >= 6";
    const ATTEMPTS: &str = "
        ALTER TABLE callback_attempt RENAME TO later;
        CREATE TABLE callback_attempt (callback_id INTEGER NOT NULL, number INTEGER NOT NULL, at_us INTEGER NOT NULL,
            status INTEGER, elapsed_ms INTEGER NOT NULL, body BLOB NOT NULL, address TEXT, reason BLOB NOT NULL,
            PRIMARY KEY (callback_id, number)) WITHOUT ROWID;
        INSERT INTO callback_attempt
            SELECT id / 1048576, id % 1048576, at_us, status, elapsed_ms, body, address, reason FROM later;
        DROP TABLE later";

    let store = database.open().await;
    let node = join(&store).await;
    for id in 1..=4 {
        let callback = deliver(&store, node, id).await;
        assert_eq!(callback.id.get(), id);
        let next = [CallbackNext::Later(past(9)), CallbackNext::Parked][usize::from(id == 2)];
        assert!(settle_callback(&store, node, attempted(&callback, next, 3)).await);
    }
    send(&store, node, 5, &["five"]).await;
    drop(store);
    if let Database::Sqlite(_) = &database {
        database.execute(ATTEMPTS).await;
    }
    undo_partitions(&database).await;
    database.execute(UNDO_NODE_INFO).await;
    database.execute(UNDO_DASHBOARD).await;
    database.execute(UNDO_PEOPLE).await;
    database.execute(UNDO_GRANTS).await;
    database.execute(BEFORE).await;

    let store = database.open().await;
    let node = join(&store).await;
    let claimed = claim_callbacks(&store, node).await;
    let claimed: Vec<_> = claimed
        .iter()
        .map(|it| (it.id.get(), it.url.as_str(), it.payload.as_str(), it.tries))
        .collect();
    let expected = [1, 3].map(|id| (id, "https://example.com/dlr", "as it was stored", 1));
    assert_eq!(claimed, expected);
    let listed = store
        .list_callbacks(&CallbackFilter::default(), EVERYTHING)
        .await;
    let listed = listed.expect("answers");
    let parked = listed
        .iter()
        .find(|it| it.id.get() == 2)
        .expect("it is there");
    assert_eq!(
        (parked.state, parked.payload.as_str()),
        (CallbackState::Parked, "as it was stored")
    );
    assert_eq!(parked.last, Some(attempt(3)));

    let matched = report(&store, node, vec![receipt("five", ABSENT)]).await;
    let [Matched::Ended(ended)] = &matched[..] else {
        panic!("{matched:?}")
    };
    let callback = ended.callback.as_ref().expect("it is held");
    assert_eq!(
        callback.id.get(),
        5,
        "the ID of a deleted callback is not reused"
    );
    let known = ["ref-1", "five"].map(|name| receipt(name, ABSENT));
    let again = report(&store, node, known.to_vec()).await;
    assert_eq!(again, [Matched::Repeated, Matched::Repeated]);
}
