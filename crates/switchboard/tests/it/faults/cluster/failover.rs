//! A primary dies and its synchronous standby is promoted.

use std::thread;
use std::time::Duration;

use testkit::PostgresServer;

use super::contents::AdminConnection;
use super::database::ALLOW_UNKNOWN_COMMITS;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;
use crate::faults::waiting::wait_until;

const NODES: usize = 3;
const MAX_UPTIME: Duration = Duration::from_secs(3);
const SYNCHRONOUS: &str = "synchronous_standby_names = '*'\n";
const SYNCHRONOUS_STANDBYS: &str =
    "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";

/// Each cycle kills the primary, promotes the standby, and starts a new standby on the port of the old primary.
pub(super) fn failover(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let pair = PostgresServer::start("").and_then(|primary| {
        let standby = PostgresServer::start_standby(&primary, None)?;
        primary.reconfigure(SYNCHRONOUS)?;
        Ok((primary, standby))
    });
    let (mut primary, mut standby) = match pair {
        Ok(pair) => pair,
        Err(error) => {
            return ScenarioResult::NotRun(format!(
                "cannot start two PostgreSQL servers: {error:#}"
            ));
        }
    };
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    wait_until_standby_is_synchronous(&primary);
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        configure: &|_, node| node,
    });
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(40);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        primary.kill9().expect("it can be killed");
        standby.promote().expect("the standby takes over");
        cluster.wait_for_answered(20);
        cluster.log.record_fault(from, NODES * WINDOW);
        if cycle + 1 < cycles {
            let port = primary.port();
            drop(primary);
            primary = standby;
            standby = PostgresServer::start_standby(&primary, Some(port)).expect("a new standby");
            primary.reconfigure(SYNCHRONOUS).expect("it reads");
            wait_until_standby_is_synchronous(&primary);
        }
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

/// After this, a commit is only answered once the standby has it as well.
fn wait_until_standby_is_synchronous(primary: &PostgresServer) {
    wait_until("the standby is synchronous", || {
        let admin = AdminConnection::connect(&primary.url("postgres"));
        let count = admin.and_then(|primary| primary.query(SYNCHRONOUS_STANDBYS));
        count.is_ok_and(|rows| rows[0].get::<_, i64>(0) > 0)
    });
}
