//! Nodes behind a pooler that has fewer connections than they have together.

use super::nodes::{Cluster, Database, Setup};
use super::processes::STRICT;
use super::scenario::Ran;
use crate::faults::waiting::wait_until;
use testkit::PooledDatabase;

const NODES: usize = 2;
/// Answered before and after each kill.
const MESSAGES: usize = 500;
/// The connections of nodes, and not of whoever checks.
const SERVERS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'switchboard'";
pub(super) const REGISTERED: &str = "SELECT count(*) FROM node";
pub(super) const OVERDUE: &str = "
    SELECT count(*) FROM queue WHERE due_us < (extract(epoch FROM clock_timestamp()) - 1) * 1000000";

/// One of two is killed in the midst and started again.
pub(super) fn killed(cycles: usize) -> Ran {
    let pooled = PooledDatabase::create();
    let mut cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: pooled.url(),
            checker: pooled.database().url().to_owned(),
        },
        equip: &|_, node| node,
    });
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(MESSAGES);
        check_sharing(&cluster, &pooled);
        cluster.kill(cycle % NODES);
        cluster.wait_for_answered(MESSAGES);
        cluster.restart(cycle % NODES);
    }
    // What the last one held waits until it is given up, whatever time it is for, and is a backlog then.
    wait_until("the dead are forgotten", || {
        count(&cluster, REGISTERED) == NODES
    });
    wait_until("the backlog is gone", || count(&cluster, OVERDUE) == 0);
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}

/// More connections to the pooler than it has to the server.
fn check_sharing(cluster: &Cluster, pooled: &PooledDatabase) {
    let (clients, servers) = (pooled.clients(), count(cluster, SERVERS));
    println!("{clients} connections of nodes share {servers}");
    let most = PooledDatabase::most_servers();
    assert!(clients > most, "{clients} clients, {most} at most");
    assert!((1..=most).contains(&servers), "{servers} of {most}");
}

pub(super) fn count(cluster: &Cluster, sql: &str) -> usize {
    let rows = cluster.administrator().query(sql).expect("a count");
    usize::try_from(rows[0].get::<_, i64>(0)).expect("a count")
}
