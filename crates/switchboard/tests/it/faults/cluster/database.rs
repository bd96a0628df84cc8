//! A `PostgreSQL` that dies or drops its connections.

use std::thread;
use std::time::Duration;

use testkit::{PostgresServer, TestDatabase};

use super::checker::Tolerance;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::processes::three_nodes_on;
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;

const NODES: usize = 3;
/// Limits of the random times between two faults and without a database. The latter is shorter than the lease of a
/// node.
const MAX_UPTIME: Duration = Duration::from_secs(3);
const MAX_DOWNTIME: Duration = Duration::from_secs(3);
/// Limits the random time between two terminations of all connections.
const MAX_INTERVAL: Duration = Duration::from_millis(700);
const TERMINATE_CONNECTIONS: &str = "
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
const DATABASE: &str = "postgres";
/// A refused request may be stored, because a commit may succeed although its answer is lost with the connection.
pub(super) const ALLOW_UNKNOWN_COMMITS: Tolerance = Tolerance {
    unknown_commits: true,
};

pub(super) fn three_nodes_on_server(server: &PostgresServer) -> Cluster {
    let url = server.url(DATABASE);
    Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        configure: &|_, node| node,
    })
}

/// The server is stopped without a checkpoint, or killed, and started again.
pub(super) fn stopped(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => {
            return ScenarioResult::NotRun(format!("cannot start a PostgreSQL server: {error:#}"));
        }
    };
    let cluster = three_nodes_on_server(&server);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        if cycle.is_multiple_of(2) {
            server.stop_immediately().expect("it can be stopped");
        } else {
            server.kill9().expect("it can be killed");
        }
        thread::sleep(rng.duration_below(MAX_DOWNTIME)); // tidy: so is the time that it is away
        server.resume().expect("it starts again");
        // The first node that reconnects may declare the others dead.
        cluster.log.record_fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

/// All connections are terminated repeatedly. No node dies, so nothing is sent twice.
pub(super) fn connections_terminated(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let database = TestDatabase::create_blocking();
    let cluster = three_nodes_on(&database);
    let callers = cluster.callers();
    let admin = cluster.admin();
    for _ in 0..cycles {
        cluster.wait_for_answered(10);
        thread::sleep(rng.duration_below(MAX_INTERVAL)); // tidy: the moment of the fault is meant to be random
        admin
            .query(TERMINATE_CONNECTIONS)
            .expect("the statement succeeds");
    }
    drop(admin);
    cluster.wait_for_answered(30);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}
