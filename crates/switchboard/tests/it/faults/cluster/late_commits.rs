//! Commits that hang until their callers have given up, and land afterwards.

use std::thread;
use std::time::{Duration, Instant};

use testkit::{PostgresServer, StallControl};

use super::books::Administrator;
use super::database::VANISHING;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::waiting::POLL;

const NODES: usize = 2;
const UP: Duration = Duration::from_secs(2);
/// Longer than any caller waits for its answer.
const SHORT_STALL: Duration = Duration::from_secs(18);
/// Longer than anything in a node waits for the database.
const LONG_STALL: Duration = Duration::from_secs(45);
const HANG: &str = "synchronous_standby_names = 'absent'\n";
const GO_ON: &str = "synchronous_standby_names = ''\n";
/// Everything stored has ended so long after the database is back, apart from the time that the machine stood still.
const ENDED_WITHIN: Duration = Duration::from_secs(30);
/// What has not ended by then is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(2);

/// Each cycle the synchronous standby is away: commits hang, callers give up, and when it is back, the commits land. One
/// cycle has a short stall, several have long ones.
pub(super) fn landed(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let control = StallControl::start();
    let server = match PostgresServer::start("") {
        Ok(server) => server,
        Err(error) => return Ran::Not(format!("no PostgreSQL of its own: {error:#}")),
    };
    let url = server.url("postgres");
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: url.clone(),
            checker: url,
        },
        equip: &|_, node| node,
    });
    let stall = if cycles > 1 { LONG_STALL } else { SHORT_STALL };
    let callers = cluster.callers();
    for _ in 0..cycles {
        cluster.wait_for_answered(100);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        server.reconfigure(HANG).expect("it reads");
        thread::sleep(stall); // tidy: how long commits hang is the subject
        server.reconfigure(GO_ON).expect("it reads");
        let recovered = Instant::now();
        // Nodes that could not write a heartbeat may have taken each other for dead.
        cluster.log.fault(from, NODES * WINDOW);
        check_ends(&cluster, &control, recovered);
    }
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

/// Everything that was stored before the database was back ends soon, while callers go on.
fn check_ends(cluster: &Cluster, control: &StallControl, recovered: Instant) {
    let administrator = cluster.administrator();
    let now =
        administrator.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    let before_us: i64 = now.expect("the time")[0].get(0);
    let left = loop {
        let left = count_open(&administrator, before_us);
        if left == 0 || recovered.elapsed() > STUCK_AFTER {
            break left;
        }
        thread::sleep(POLL * 20); // tidy: between two looks at a state that nothing announces
    };
    let took = control.running(recovered, Instant::now());
    println!(
        "{left} messages left {:?} after the database was back ({took:?} without stalls of the machine)",
        recovered.elapsed()
    );
    if left > 0 || took > ENDED_WITHIN {
        cluster.log.wrong(format!(
            "{left} messages had not ended {took:?} after the database was back"
        ));
    }
}

/// Messages of before that time without an end, apart from those that wait for a later day.
fn count_open(administrator: &Administrator, before_us: i64) -> i64 {
    let rows = administrator.query(&format!(
        "SELECT count(*) FROM message WHERE final_us IS NULL AND accepted_us < {before_us}
         AND (scheduled_us IS NULL OR scheduled_us < {before_us} + 60000000)"
    ));
    rows.expect("a count")[0].get(0)
}
