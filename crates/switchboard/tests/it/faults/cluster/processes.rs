//! Nodes that are killed, and nodes that are paused.

use std::thread;
use std::time::Duration;

use testkit::{ServerBuilder, TestDatabase};

use super::checker::Tolerance;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;
use crate::faults::signal;
use crate::faults::waiting::wait_until;

/// A refused request must not be stored.
pub(super) const STRICT: Tolerance = Tolerance {
    unknown_commits: false,
};
const NODES: usize = 3;
/// Limits the random time between two faults, and the time that a node is down.
const MAX_INTERVAL: Duration = Duration::from_secs(3);
/// Longer than the lease of a node.
const PAUSE: Duration = Duration::from_secs(12);

/// Three nodes on a database of the shared test server.
pub(super) fn three_nodes_on(database: &TestDatabase) -> Cluster {
    let url = database.url().to_owned();
    Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        configure: &|_, node| node,
    })
}

/// The only node of a `SQLite` file.
pub(super) fn one_on_sqlite(configure: &dyn Fn(usize, ServerBuilder) -> ServerBuilder) -> Cluster {
    Cluster::start(&Setup {
        nodes: 1,
        database: Database::Sqlite,
        configure,
    })
}

/// One of three nodes is killed every few seconds and started again.
pub(super) fn killed(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let database = TestDatabase::create_blocking();
    let mut cluster = three_nodes_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        thread::sleep(MAX_INTERVAL / 3 + rng.duration_below(MAX_INTERVAL)); // tidy: the moment of the crash is meant to be random
        cluster.kill(cycle % NODES);
        thread::sleep(rng.duration_below(MAX_INTERVAL)); // tidy: so is the time that it is away
        cluster.restart(cycle % NODES);
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// The only node, on a `SQLite` file, is killed every few seconds and started again.
pub(super) fn killed_on_sqlite(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let mut cluster = one_on_sqlite(&|_, node| node);
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_INTERVAL)); // tidy: the moment of the crash is meant to be random
        cluster.kill(0);
        cluster.restart(0);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// One of three nodes is paused beyond its lease and continued.
pub(super) fn paused(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let database = TestDatabase::create_blocking();
    let cluster = three_nodes_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let paused_node = &cluster.nodes[cycle % NODES];
        cluster.wait_for_answered(50);
        thread::sleep(rng.duration_below(MAX_INTERVAL)); // tidy: the moment of the pause is meant to be random
        let from = cluster.log.now_ms();
        let given_up = paused_node
            .server
            .output()
            .matches("given up as dead")
            .count();
        signal::send("STOP", paused_node.server.pid());
        thread::sleep(PAUSE); // tidy: the length of the pause is the subject
        signal::send("CONT", paused_node.server.pid());
        wait_until("the paused node notices", || {
            paused_node
                .server
                .output()
                .matches("given up as dead")
                .count()
                > given_up
        });
        cluster.log.record_fault(from, WINDOW);
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}
