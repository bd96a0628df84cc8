//! Commits that hang until their callers have given up, and succeed afterwards.

use std::thread;
use std::time::{Duration, Instant};

use testkit::{PostgresServer, StallMonitor};

use super::contents::AdminConnection;
use super::database::ALLOW_UNKNOWN_COMMITS;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::requests::REFUSED;
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;
use crate::faults::waiting::POLL;

const NODES: usize = 2;
const MAX_UPTIME: Duration = Duration::from_secs(2);
/// Longer than any caller waits for an answer.
const SHORT_STALL: Duration = Duration::from_secs(18);
/// Longer than any timeout of a node for the database.
const LONG_STALL: Duration = Duration::from_secs(45);
const HANG: &str = "synchronous_standby_names = 'absent'\n";
const RESUME: &str = "synchronous_standby_names = ''\n";
/// All stored messages end within this time after the database is back, not counting stalls of the machine.
const ENDED_WITHIN: Duration = Duration::from_secs(30);
/// Messages that have not ended by then are stuck.
const STUCK_AFTER: Duration = Duration::from_mins(2);

/// In each cycle the synchronous standby is away: commits hang and callers give up. When it is back, the commits
/// succeed. A run of one cycle has a short stall, longer runs have long ones.
pub(super) fn landed(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let monitor = StallMonitor::start();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => {
            return ScenarioResult::NotRun(format!("cannot start a PostgreSQL server: {error:#}"));
        }
    };
    let url = server.url("postgres");
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        configure: &|_, node| node,
    });
    let stall = if cycles > 1 { LONG_STALL } else { SHORT_STALL };
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(100);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        server.reconfigure(HANG).expect("it reads");
        thread::sleep(stall); // tidy: how long commits hang is the subject
        server.reconfigure(RESUME).expect("it reads");
        let recovered = Instant::now();
        // Nodes that could not write a heartbeat may have declared each other dead.
        cluster.log.record_fault(from, NODES * WINDOW);
        check_messages_end(&cluster, &monitor, recovered);
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

/// Checks that all messages that were stored before the recovery end soon, while callers continue.
fn check_messages_end(cluster: &Cluster, monitor: &StallMonitor, recovered: Instant) {
    let admin = cluster.admin();
    let now = admin.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    let before_us: i64 = now.expect("the time")[0].get(0);
    let left = loop {
        let left = count_unfinished(&admin, before_us);
        if left == 0 || recovered.elapsed() > STUCK_AFTER {
            break left;
        }
        thread::sleep(POLL * 20); // tidy: polls a state that nothing announces
    };
    let took = monitor.running(recovered, Instant::now());
    println!(
        "{left} messages unfinished {:?} after the database was back ({took:?} without stalls of the machine)",
        recovered.elapsed()
    );
    if left > 0 || took > ENDED_WITHIN {
        cluster.log.record_unexpected(format!(
            "{left} messages had not ended {took:?} after the database was back"
        ));
    }
}

/// Messages from before that time that have not ended, without those that are scheduled for later, and without those to
/// the refused number: they may wait, as the checker knows.
fn count_unfinished(admin: &AdminConnection, before_us: i64) -> i64 {
    let rows = admin.query(&format!(
        "SELECT count(*) FROM message WHERE final_us IS NULL AND accepted_us < {before_us}
         AND (scheduled_us IS NULL OR scheduled_us < {before_us} + 60000000) AND recipient <> {}",
        REFUSED.0
    ));
    rows.expect("a count")[0].get(0)
}
