//! Three `PostgreSQL` members under Patroni: switchover, leader killed, leader frozen, etcd frozen.

use std::thread;
use std::time::Duration;

use testkit::Patroni;

use super::database::ALLOW_UNKNOWN_COMMITS;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;
use crate::faults::waiting::wait_until;

const DOCUMENTATION: &str = include_str!("../../../../../../docs/SCALING.md");
const DATABASE: &str = "postgres";
const NODES: usize = 2;
const MAX_UPTIME: Duration = Duration::from_secs(3);
/// Longer than the leader's key lives in etcd.
const ETCD_AWAY: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
enum PatroniFault {
    SwitchOver,
    LeaderKilled,
    LeaderFrozen,
    EtcdFrozen,
}

const FAULTS: [PatroniFault; 4] = [
    PatroniFault::SwitchOver,
    PatroniFault::LeaderKilled,
    PatroniFault::LeaderFrozen,
    PatroniFault::EtcdFrozen,
];

/// Each cycle is one fault. Only the synchronous standby may take over, so nothing is lost.
pub(super) fn disturbed(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let mut patroni = match Patroni::start(configuration()) {
        Ok(patroni) => patroni,
        Err(error) => return ScenarioResult::NotRun(format!("no Patroni: {error:#}")),
    };
    let url = patroni.url(DATABASE);
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
        let fault = FAULTS[cycle % FAULTS.len()];
        println!("cycle {cycle}: {fault:?}");
        cluster.wait_for_answered(40);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        fault.inject(&mut patroni, &cluster);
        println!("answered again after {} ms", cluster.log.now_ms() - from);
        patroni
            .wait_until_in_sync()
            .expect("the members are in sync again");
        // Nodes that have no database for longer than their lease may declare each other dead.
        cluster.log.record_fault(from, NODES * WINDOW);
    }
    cluster.wait_until_dead_nodes_are_removed();
    let verdict = cluster.finish(callers, ALLOW_UNKNOWN_COMMITS);
    if !verdict.violations.is_empty() {
        println!("{}", patroni.logs());
    }
    ScenarioResult::Completed(cycles, verdict)
}

impl PatroniFault {
    /// Starts the fault, waits until messages are answered again, and ends the fault.
    fn inject(self, patroni: &mut Patroni, cluster: &Cluster) {
        let leader = patroni.wait_for_leader().expect("a leader");
        match self {
            Self::SwitchOver => patroni.switch_over().expect("it hands over"),
            Self::LeaderKilled => patroni.kill(leader).expect("it can be killed"),
            Self::LeaderFrozen => patroni.freeze(leader).expect("it can be stopped"),
            Self::EtcdFrozen => {
                patroni.freeze_etcd().expect("it can be stopped");
                thread::sleep(ETCD_AWAY); // tidy: how long etcd is away is the subject
            }
        }
        if !matches!(self, Self::EtcdFrozen) {
            wait_until("another member leads", || {
                patroni.leader().is_some_and(|now| now != leader)
            });
        }
        let goal = cluster.answered() + 20;
        wait_until("messages are answered again", || cluster.answered() >= goal);
        match self {
            Self::SwitchOver => {}
            Self::LeaderKilled => patroni.restart(leader).expect("it starts again"),
            Self::LeaderFrozen => patroni.thaw(leader).expect("it goes on"),
            Self::EtcdFrozen => patroni.thaw_etcd().expect("it goes on"),
        }
    }
}

/// The configuration that the documentation shows, so that exactly that is tested.
fn configuration() -> &'static str {
    let (_, part) = DOCUMENTATION
        .split_once("\n## High availability with Patroni\n")
        .expect("a part");
    let (_, block) = part.split_once("```yaml\n").expect("a configuration");
    block.split_once("```").expect("an end").0
}
