//! A node that starts while its database is slow.

use std::collections::HashSet;
use std::thread;

use testkit::{Backend, Server, TestDatabase};

use super::database_away::AdminConnection;
use super::waiting::wait_until;
use crate::rest::service::binary;

/// The newest connection that waits for the lock on the `node` table; 0 if none does.
const WAITING: &str = "
    SELECT coalesce(max(pid), 0)::bigint FROM pg_locks WHERE relation = 'node'::regclass AND NOT granted";

/// Heartbeats time out quickly. The first one, which registers the node, is retried instead of ending the service.
#[test]
fn a_node_joins_as_soon_as_its_database_answers() {
    let database = TestDatabase::create_blocking();
    let url = database.url().to_owned();
    let start = move || {
        let builder = Server::builder(binary(), Backend::Sqlite);
        builder
            .env("SWITCHBOARD_DATABASE__URL", url.clone())
            .start()
    };
    // The first start creates the tables.
    assert!(start().terminate().success());
    let admin = AdminConnection::connect(database.url());
    admin.run("BEGIN; LOCK TABLE node IN ACCESS EXCLUSIVE MODE");
    let starting = thread::spawn(start);
    let mut attempts = HashSet::new();
    wait_until("the node has tried twice", || {
        attempts.insert(admin.count(WAITING));
        attempts.remove(&0);
        attempts.len() >= 2
    });
    admin.run("COMMIT");
    let mut node = starting.join().expect("it starts");
    assert!(node.terminate().success());
}
