//! Heartbeats on `PostgreSQL`: other work does not delay them.

use std::sync::Arc;
use std::time::Instant;

use domain::ports::{HeartbeatResult, Store};
use testkit::{TEST_TIMEOUT, TestDatabase};
use tokio::task::JoinSet;

use super::fixture::{Database, ServerDatabase, connect};
use super::steps::{HOUR, join};

/// More callers than there are connections, so that some always wait for one.
const CALLERS: usize = 16;
/// How many connections the pool of a test has.
const CONNECTIONS: i64 = 4;
/// The number of statements that wait for the lock.
const WAITING: &str = "
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn keep_reading(store: Arc<dyn Store>) {
    loop {
        // It fails when it has waited too long for the lock.
        drop(store.list_accounts().await);
    }
}

async fn wait_until_all_connections_wait(database: &Database) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while database.numbers(WAITING, 1).await[0][0] != Some(CONNECTIONS) {
        assert!(Instant::now() < deadline, "some connections never wait");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_does_not_wait_for_the_connections_of_others() {
    let server = TestDatabase::create().await;
    let (client, _connection) = connect(&server).await;
    let database = Database::Postgres(ServerDatabase::Direct(server));
    let store = database.open().await;
    let node = join(&store).await;
    let lock = "BEGIN; LOCK TABLE account IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.expect("locked");
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(keep_reading(store.clone()));
    }
    for _ in 0..3 {
        wait_until_all_connections_wait(&database).await;
        let renewed = store.renew_heartbeat(node, HOUR).await;
        assert_eq!(
            renewed.expect("heartbeats have their own connection"),
            HeartbeatResult::Alive
        );
    }
    let joined = join(&store).await;
    assert!(joined > node, "joining does not wait, either");
    callers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_reconnects_after_its_connection_was_cut() {
    const CUT: &str = "
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let database = Database::Postgres(ServerDatabase::Direct(TestDatabase::create().await));
    let store = database.open().await;
    let node = join(&store).await;
    database.execute(CUT).await;
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !matches!(
        store.renew_heartbeat(node, HOUR).await,
        Ok(HeartbeatResult::Alive)
    ) {
        assert!(Instant::now() < deadline, "no heartbeat succeeds");
    }
}
