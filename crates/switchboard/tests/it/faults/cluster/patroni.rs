//! A highly available `PostgreSQL`: three members under Patroni, whose leader dies, freezes, hands over, or loses etcd.

use std::thread;
use std::time::Duration;

use testkit::Patroni;

use super::database::VANISHING;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::pooler::{OVERDUE, REGISTERED, count};
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::waiting::wait_until;

const PAGE: &str = include_str!("../../../../../../docs/SCALING.md");
const DATABASE: &str = "postgres";
const NODES: usize = 2;
const UP: Duration = Duration::from_secs(3);
/// Longer than the leader's key lives in etcd.
const ETCD_AWAY: Duration = Duration::from_secs(30);

/// What happens to the cluster, one after the other.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    SwitchOver,
    LeaderKilled,
    LeaderFrozen,
    EtcdFrozen,
}

const TROUBLES: [Trouble; 4] = [
    Trouble::SwitchOver,
    Trouble::LeaderKilled,
    Trouble::LeaderFrozen,
    Trouble::EtcdFrozen,
];

/// Each cycle is one trouble. Only the synchronous standby may take over, so nothing is lost.
pub(super) fn troubled(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let mut patroni = match Patroni::start(configuration()) {
        Ok(patroni) => patroni,
        Err(error) => return Ran::Not(format!("no Patroni: {error:#}")),
    };
    let url = patroni.url(DATABASE);
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
        let trouble = TROUBLES[cycle % TROUBLES.len()];
        println!("cycle {cycle}: {trouble:?}");
        cluster.wait_for_answered(40);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the fault is meant to be random
        let from = cluster.log.now_ms();
        trouble.make(&mut patroni, &cluster);
        println!("answered again after {} ms", cluster.log.now_ms() - from);
        patroni
            .wait_until_in_step()
            .expect("the members are in step again");
        // Nodes without a database for longer than they count as alive may take each other for dead.
        cluster.log.fault(from, NODES * WINDOW);
    }
    wait_until("the dead are forgotten", || {
        count(&cluster, REGISTERED) == NODES
    });
    wait_until("the backlog is gone", || count(&cluster, OVERDUE) == 0);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

impl Trouble {
    /// Makes the trouble, waits until messages are answered again, and ends the trouble.
    fn make(self, patroni: &mut Patroni, cluster: &Cluster) {
        let leader = patroni.leader().expect("a leader");
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

/// The configuration of the page: what stands there is what is tested.
fn configuration() -> &'static str {
    let (_, part) = PAGE
        .split_once("\n## High availability with Patroni\n")
        .expect("a part");
    let (_, block) = part.split_once("```yaml\n").expect("a configuration");
    block.split_once("```").expect("an end").0
}
