//! A primary dies and its synchronous standby takes its place.

use std::thread;
use std::time::Duration;

use testkit::PostgresServer;

use super::books::Administrator;
use super::database::VANISHING;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::waiting::wait_until;

const NODES: usize = 3;
const UP: Duration = Duration::from_secs(3);
const SYNCHRONOUS: &str = "synchronous_standby_names = '*'\n";
const IN_STEP: &str =
    "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";

/// Each cycle the primary is killed and the standby promoted; then a new standby stands where the primary was.
pub(super) fn failover(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let pair = PostgresServer::start("").and_then(|primary| {
        let standby = PostgresServer::start_standby(&primary, None)?;
        primary.reconfigure(SYNCHRONOUS)?;
        Ok((primary, standby))
    });
    let (mut primary, mut standby) = match pair {
        Ok(pair) => pair,
        Err(error) => return Ran::Not(format!("no pair of PostgreSQL servers: {error:#}")),
    };
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    wait_until_in_step(&primary);
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        equip: &|_, node| node,
    });
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(40);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        primary.kill9().expect("it can be killed");
        standby.promote().expect("the standby takes over");
        cluster.wait_for_answered(20);
        cluster.log.fault(from, NODES * WINDOW);
        if cycle + 1 < cycles {
            let port = primary.port();
            drop(primary);
            primary = standby;
            standby = PostgresServer::start_standby(&primary, Some(port)).expect("a new standby");
            primary.reconfigure(SYNCHRONOUS).expect("it reads");
            wait_until_in_step(&primary);
        }
    }
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

/// From here on a commit is answered only when the standby has it, too.
fn wait_until_in_step(primary: &PostgresServer) {
    wait_until("the standby is in step", || {
        let administrator = Administrator::connect(&primary.url("postgres"));
        let count = administrator.and_then(|primary| primary.query(IN_STEP));
        count.is_ok_and(|rows| rows[0].get::<_, i64>(0) > 0)
    });
}
