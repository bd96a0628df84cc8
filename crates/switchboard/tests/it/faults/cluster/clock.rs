//! The wall clock of a node is moved by hours, both ways. Its monotonic clock goes on.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use testkit::{TempDir, TestDatabase};

use super::nodes::{Cluster, Database, Setup};
use super::processes::STRICT;
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::shim::compile;

const SOURCE: &str = include_str!("../clock.c");
const NODES: usize = 3;
const HOUR_S: i64 = 3600;
/// How far, one after the other.
const MOVES: [i64; 4] = [3 * HOUR_S, -3 * HOUR_S, 30 * HOUR_S, -HOUR_S];
/// How long a clock stays wrong.
const WRONG: Duration = Duration::from_secs(6);

/// Each cycle moves the clock of one node while all are called, and later sets it right. No message may be early or late
/// at any time, and nobody may be taken for dead: leases go by the database's clock.
pub(super) fn moved(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let folder = TempDir::create("clock").expect("a temporary folder");
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
        equip: &|index, node| {
            node.env("LD_PRELOAD", library.to_str().expect("a plain path"))
                .env("FAULT_CLOCK", file(index).to_str().expect("a plain path"))
        },
    });
    cluster.log.calm();
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let clock = file(cycle % NODES);
        cluster.wait_for_answered(20);
        fs::write(&clock, MOVES[cycle % MOVES.len()].to_string()).expect("a file");
        thread::sleep(WRONG + dice.moment(WRONG / 3)); // tidy: how long the clock is wrong is the subject
        fs::remove_file(&clock).expect("it was moved");
    }
    cluster.wait_for_answered(20);
    for node in &cluster.nodes {
        if node.server.output().contains("given up as dead") {
            cluster.log.wrong("a node was taken for dead".to_owned());
        }
    }
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}
