//! The wall clock of a node is moved by hours, forwards and backwards. Its monotonic clock is not affected.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use testkit::{TestDatabase, temp_dir};

use super::nodes::{Cluster, Database, Setup};
use super::processes::STRICT;
use super::scenario::ScenarioResult;
use crate::faults::faulty_disk::compile;
use crate::faults::rng::Rng;

const SOURCE: &str = include_str!("../clock.c");
const NODES: usize = 3;
const HOUR_S: i64 = 3600;
/// By how much each cycle moves a clock.
const MOVES: [i64; 4] = [3 * HOUR_S, -3 * HOUR_S, 30 * HOUR_S, -HOUR_S];
/// How long a clock stays wrong.
const WRONG_FOR: Duration = Duration::from_secs(6);

/// Each cycle moves the clock of one node under load, and later corrects it. No message may be early or late, and no
/// node may be declared dead, because leases follow the clock of the database.
pub(super) fn moved(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let folder = temp_dir("clock").expect("a temporary folder");
    let library = folder.path().join("libclock.so");
    compile(SOURCE, &library);
    let file = |index: usize| -> PathBuf { folder.path().join(format!("node-{index}")) };
    let database = TestDatabase::create_blocking();
    let url = database.url().to_owned();
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        configure: &|index, node| {
            node.env("LD_PRELOAD", library.to_str().expect("a plain path"))
                .env("FAULT_CLOCK", file(index).to_str().expect("a plain path"))
        },
    });
    cluster.log.faults_are_over();
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let clock = file(cycle % NODES);
        cluster.wait_for_answered(20);
        fs::write(&clock, MOVES[cycle % MOVES.len()].to_string()).expect("a file");
        thread::sleep(WRONG_FOR + rng.duration_below(WRONG_FOR / 3)); // tidy: how long the clock is wrong is the subject
        fs::remove_file(&clock).expect("the clock was moved");
    }
    cluster.wait_for_answered(20);
    for node in &cluster.nodes {
        if node.server.output().contains("given up as dead") {
            cluster
                .log
                .record_unexpected("a node was declared dead".to_owned());
        }
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}
