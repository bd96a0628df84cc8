//! A `PostgreSQL` that dies, that drops its connections, and that another takes over from.

use std::thread;
use std::time::Duration;

use testkit::{PostgresServer, TestDatabase};

use super::checker::Leave;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::processes::three_on;
use super::scenario::Ran;
use crate::faults::dice::Dice;

const NODES: usize = 3;
/// Between two faults, and the longest time without a database: shorter than nodes live without a heartbeat.
const UP: Duration = Duration::from_secs(3);
const AWAY: Duration = Duration::from_secs(3);
const CALM: Duration = Duration::from_millis(700);
const END_CONNECTIONS: &str = "
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
const DATABASE: &str = "postgres";
/// A commit whose answer is lost with the connection may have happened.
pub(super) const VANISHING: Leave = Leave {
    unknown_commits: true,
};

/// Three nodes on a server of their own.
pub(super) fn three_on_server(server: &PostgresServer) -> Cluster {
    let url = server.url(DATABASE);
    Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        equip: &|_, node| node,
    })
}

/// The server is stopped without a checkpoint, or killed, and started again.
pub(super) fn stopped(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => return Ran::Not(format!("no PostgreSQL of its own: {error:#}")),
    };
    let cluster = three_on_server(&server);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(30);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        if cycle.is_multiple_of(2) {
            server.stop_hard().expect("it can be stopped");
        } else {
            server.kill9().expect("it can be killed");
        }
        thread::sleep(dice.moment(AWAY)); // tidy: so is the time that it is away
        server.resume().expect("it starts again");
        // Whoever gets through first may take the others for dead.
        cluster.log.fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

/// All connections are ended, again and again. Nobody dies, so nothing is sent twice.
pub(super) fn storms(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let database = TestDatabase::create_blocking();
    let cluster = three_on(&database);
    let callers = cluster.callers();
    let administrator = cluster.administrator();
    for _ in 0..cycles {
        cluster.wait_for_answered(10);
        thread::sleep(dice.moment(CALM)); // tidy: the moment of the storm is meant to be random
        administrator
            .query(END_CONNECTIONS)
            .expect("an administrator may");
    }
    drop(administrator);
    cluster.wait_for_answered(30);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}
