//! Heartbeats on `PostgreSQL`: other work cannot hold them up.

use std::sync::Arc;
use std::time::Instant;

use domain::ports::{HeartbeatResult, Store};
use testkit::{PATIENCE, TestDatabase};
use tokio::task::JoinSet;

use super::fixture::{Database, Served, connect};
use super::steps::{HOUR, join};

/// More callers than there are connections, so that some always wait for one.
const CALLERS: usize = 16;
/// How many connections the pool of a test has.
const CONNECTIONS: i64 = 4;
/// Callers of a store that wait for the lock.
const WAITING: &str = "
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn keep_reading(store: Arc<dyn Store>) {
    loop {
        // It fails once it has waited too long for the lock, and is tried again.
        drop(store.list_accounts().await);
    }
}

async fn until_all_connections_wait(database: &Database) {
    let give_up = Instant::now() + PATIENCE;
    while database.numbers(WAITING, 1).await[0][0] != Some(CONNECTIONS) {
        assert!(Instant::now() < give_up, "the callers never all wait");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_does_not_wait_for_the_connections_of_others() {
    let served = TestDatabase::create().await;
    let (client, _connection) = connect(&served).await;
    let database = Database::Postgres(Served::Directly(served));
    let store = database.open().await;
    let node = join(&store).await;
    let lock = "BEGIN; LOCK TABLE account IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.expect("locked");
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(keep_reading(store.clone()));
    }
    for _ in 0..3 {
        until_all_connections_wait(&database).await;
        let renew_heartbeat = store.renew_heartbeat(node, HOUR).await;
        assert_eq!(
            renew_heartbeat.expect("a connection of its own"),
            HeartbeatResult::Alive
        );
    }
    let anew = join(&store).await;
    assert!(anew > node, "joining anew does not wait, either");
    callers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_finds_the_server_again_after_its_connection_was_cut() {
    const CUT: &str = "
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let database = Database::Postgres(Served::Directly(TestDatabase::create().await));
    let store = database.open().await;
    let node = join(&store).await;
    database.execute(CUT).await;
    let give_up = Instant::now() + PATIENCE;
    while !matches!(
        store.renew_heartbeat(node, HOUR).await,
        Ok(HeartbeatResult::Alive)
    ) {
        assert!(Instant::now() < give_up, "no heartbeat any more");
    }
}
