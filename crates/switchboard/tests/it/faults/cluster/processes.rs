//! Nodes that die and nodes that stand still.

use std::thread;
use std::time::Duration;

use testkit::TestDatabase;

use super::checker::Leave;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::signal;
use crate::faults::waiting::wait_until;

/// What the database may not know of the orders that it refused: nothing.
pub(super) const STRICT: Leave = Leave {
    unknown_commits: false,
};
const NODES: usize = 3;
/// Between the start of one node and the end of the next.
const UP: Duration = Duration::from_secs(3);
/// Longer than a node lives without a heartbeat.
const ASLEEP: Duration = Duration::from_secs(12);

/// Three nodes on a database of their own on the tests' server.
pub(super) fn three_on(database: &TestDatabase) -> Cluster {
    let url = database.url().to_owned();
    Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        equip: &|_, node| node,
    })
}

/// One of three is killed every few seconds and started again.
pub(super) fn killed(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let database = TestDatabase::create_blocking();
    let mut cluster = three_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        thread::sleep(UP / 3 + dice.moment(UP)); // tidy: the moment of the crash is meant to be random
        cluster.kill(cycle % NODES);
        thread::sleep(dice.moment(UP)); // tidy: so is the time that it is away
        cluster.restart(cycle % NODES);
    }
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}

/// One of three stands still for longer than it counts as alive, and goes on.
pub(super) fn paused(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let database = TestDatabase::create_blocking();
    let cluster = three_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let sleeper = &cluster.nodes[cycle % NODES];
        cluster.wait_for_answered(50);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the pause is meant to be random
        let from = cluster.log.now_ms();
        let given_up = sleeper.server.output().matches("given up as dead").count();
        signal::send("STOP", sleeper.server.pid());
        thread::sleep(ASLEEP); // tidy: how long it stands still is the subject
        signal::send("CONT", sleeper.server.pid());
        wait_until("the sleeper notices", || {
            sleeper.server.output().matches("given up as dead").count() > given_up
        });
        cluster.log.fault(from, WINDOW);
    }
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}
