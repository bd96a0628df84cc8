//! A node that starts while its database is slow.

use std::collections::HashSet;
use std::thread;

use testkit::{Backend, Server, TestDatabase};

use super::database_away::Administrator;
use super::waiting::wait_until;
use crate::rest::service::binary;

/// The newest connection that waits for the table of nodes; 0 when none does.
const WAITING: &str = "
    SELECT coalesce(max(pid), 0)::bigint FROM pg_locks WHERE relation = 'node'::regclass AND NOT granted";

/// Heartbeats time out quickly. The first one, by which a node joins, is tried again instead of ending the service.
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
    // It makes the tables.
    assert!(start().terminate().success());
    let administrator = Administrator::connect(database.url());
    administrator.run("BEGIN; LOCK TABLE node IN ACCESS EXCLUSIVE MODE");
    let starting = thread::spawn(start);
    let mut tries = HashSet::new();
    wait_until("it has tried twice", || {
        tries.insert(administrator.count(WAITING));
        tries.remove(&0);
        tries.len() >= 2
    });
    administrator.run("COMMIT");
    let mut node = starting.join().expect("it starts");
    assert!(node.terminate().success());
}
