//! Nodes on one database under faults, with callers, a receiver, a network and a checker outside.
//!
//! Each scenario is a function that takes the number of cycles. All tests include a few cycles of each scenario;
//! `scripts/test faults` runs many cycles and prints the table of docs/RELIABILITY.md.

mod callers;
mod checker;
mod clock;
mod connections;
mod contents;
mod database;
mod disk;
mod expiry;
mod failover;
mod fairness;
mod handset_checker;
mod handsets;
mod kill_points;
mod late_answers;
mod late_commits;
mod log;
mod network;
mod nodes;
mod patroni;
mod pooler;
mod processes;
mod receiver;
mod requests;
mod scenario;
mod single_node;
mod slow_receivers;
mod smpp_checker;
mod smpp_clients;
mod violations;

use domain::kill_point::KillPoint;
use scenario::{Scenario, run_long, run_short};

/// Every kind of fault, in the order of the table.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "one of three nodes killed, every few seconds",
        cycles: 20,
        run: processes::killed,
        is_idle: false,
    },
    Scenario {
        name: "the node killed, every few seconds, SQLite",
        cycles: 20,
        run: processes::killed_on_sqlite,
        is_idle: false,
    },
    Scenario {
        name: "a node stopped for 12 s, beyond its lease, and continued",
        cycles: 4,
        run: processes::paused,
        is_idle: false,
    },
    Scenario {
        name: "PostgreSQL stopped hard or killed, and started",
        cycles: 12,
        run: database::stopped,
        is_idle: false,
    },
    Scenario {
        name: "all connections to PostgreSQL terminated",
        cycles: 60,
        run: database::connections_terminated,
        is_idle: false,
    },
    Scenario {
        name: "failover to a synchronous standby",
        cycles: 4,
        run: failover::failover,
        is_idle: false,
    },
    Scenario {
        name: "disk full and freed, SQLite",
        cycles: 12,
        run: disk::full_under_sqlite,
        is_idle: false,
    },
    Scenario {
        name: "disk full and freed, PostgreSQL",
        cycles: 6,
        run: disk::full_under_postgres,
        is_idle: false,
    },
    Scenario {
        name: "fsync fails, SQLite",
        cycles: 12,
        run: disk::sync_fails_under_sqlite,
        is_idle: false,
    },
    Scenario {
        name: "fsync fails, PostgreSQL",
        cycles: 8,
        run: disk::sync_fails_under_postgres,
        is_idle: false,
    },
    Scenario {
        name: "the clock of a node moved by hours",
        cycles: 8,
        run: clock::moved,
        is_idle: false,
    },
    Scenario {
        name: "network connections slow, cut, split, silent",
        cycles: 32,
        run: connections::disturbed,
        is_idle: false,
    },
    Scenario {
        name: "a node killed at each of the kill points",
        cycles: KillPoint::ALL.len(),
        run: kill_points::killed_at_points,
        is_idle: false,
    },
    Scenario {
        name: "one of two nodes killed, behind a transaction pooler",
        cycles: 10,
        run: pooler::killed,
        is_idle: false,
    },
    Scenario {
        name: "Patroni: switchover, leader killed, leader stopped, etcd stopped",
        cycles: 8,
        run: patroni::disturbed,
        is_idle: true,
    },
    Scenario {
        name: "commits that land after their callers gave up",
        cycles: 4,
        run: late_commits::landed,
        is_idle: true,
    },
    Scenario {
        name: "a carrier with one account's backlog, another account, an idle carrier",
        cycles: 10,
        run: fairness::shared,
        is_idle: false,
    },
    Scenario {
        name: "an SMSC that answers after the response timeout",
        cycles: 4,
        run: late_answers::awaited,
        is_idle: true,
    },
    Scenario {
        name: "six slow receivers of reports beside a healthy one",
        cycles: 40,
        run: slow_receivers::beside_a_healthy_one,
        is_idle: false,
    },
    Scenario {
        name: "every carrier down until messages expire, SQLite, clock moved",
        cycles: 1,
        run: expiry::clock_moved,
        is_idle: false,
    },
    Scenario {
        name: "every carrier down until messages expire, PostgreSQL",
        cycles: 1,
        run: expiry::waited,
        is_idle: true,
    },
];

/// One short test for each scenario.
macro_rules! short {
    ($($test:ident, $run:path, $cycles:expr;)+) => {
        $(#[test]
        fn $test() {
            let run = $run as fn(usize) -> scenario::ScenarioResult;
            let has_run = |scenario: &&Scenario| std::ptr::fn_addr_eq(scenario.run, run);
            let scenario = SCENARIOS.iter().find(has_run).expect("it is in the table");
            run_short(scenario, $cycles);
        })+
    };
}

short! {
    nodes_are_killed, processes::killed, 3;
    the_node_of_sqlite_is_killed, processes::killed_on_sqlite, 3;
    a_node_is_paused, processes::paused, 1;
    postgres_is_stopped_hard, database::stopped, 2;
    connections_are_terminated, database::connections_terminated, 8;
    a_standby_takes_over, failover::failover, 1;
    the_disk_of_sqlite_is_full, disk::full_under_sqlite, 2;
    the_disk_of_postgres_is_full, disk::full_under_postgres, 1;
    syncing_fails_under_sqlite, disk::sync_fails_under_sqlite, 2;
    syncing_fails_under_postgres, disk::sync_fails_under_postgres, 1;
    a_clock_is_moved, clock::moved, 2;
    network_connections_are_disturbed, connections::disturbed, 8;
    nodes_are_killed_at_kill_points, kill_points::killed_at_points, 5;
    nodes_are_killed_behind_a_pooler, pooler::killed, 2;
    a_patroni_member_takes_over, patroni::disturbed, 2;
    commits_land_late, late_commits::landed, 1;
    accounts_share_a_busy_carrier, fairness::shared, 2;
    answers_come_late, late_answers::awaited, 1;
    receivers_are_slow, slow_receivers::beside_a_healthy_one, 3;
    messages_expire_without_a_carrier, expiry::clock_moved, 1;
}

/// Only `scripts/test faults` sets it: the same scenarios with many cycles take half an hour.
const LONG_VARIABLE: &str = "SWITCHBOARD_TEST_LONG";

#[test]
fn the_long_run() {
    if std::env::var_os(LONG_VARIABLE).is_some() {
        run_long(SCENARIOS);
    } else {
        println!(
            "only scripts/test faults runs this; the other tests run the same scenarios for a few cycles"
        );
    }
}
