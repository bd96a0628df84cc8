//! Nodes behind a pooler that has fewer connections to the server than the nodes have to it.

use super::nodes::{Cluster, Database, Setup};
use super::processes::STRICT;
use super::scenario::ScenarioResult;
use crate::faults::waiting::wait_until;
use testkit::PooledDatabase;

const NODES: usize = 2;
/// Messages that are answered before and after each kill.
const MESSAGES: usize = 500;
/// Connections of the nodes, without those of the checker.
const NODE_CONNECTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'switchboard'";
pub(super) const REGISTERED: &str = "SELECT count(*) FROM node";
pub(super) const OVERDUE: &str = "
    SELECT count(*) FROM queue WHERE due_us < (extract(epoch FROM clock_timestamp()) - 1) * 1000000";

/// One of two nodes is killed under load and started again.
pub(super) fn killed(cycles: usize) -> ScenarioResult {
    let pooled = PooledDatabase::create();
    let mut cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: pooled.url(),
            checker: pooled.database().url().to_owned(),
        },
        configure: &|_, node| node,
    });
    let callers = cluster.callers();
    for cycle in 0..cycles {
        cluster.wait_for_answered(MESSAGES);
        check_sharing(&cluster, &pooled);
        cluster.kill(cycle % NODES);
        cluster.wait_for_answered(MESSAGES);
        cluster.restart(cycle % NODES);
    }
    // Messages of the last killed node wait until it is declared dead, and are overdue then.
    wait_until("dead nodes are removed", || {
        count(&cluster, REGISTERED) == NODES
    });
    wait_until("the backlog is gone", || count(&cluster, OVERDUE) == 0);
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// The pooler has more clients than connections to the server.
fn check_sharing(cluster: &Cluster, pooled: &PooledDatabase) {
    let (clients, servers) = (pooled.clients(), count(cluster, NODE_CONNECTIONS));
    println!("{clients} connections of nodes share {servers} connections to the server");
    let max = PooledDatabase::max_server_connections();
    assert!(clients > max, "{clients} clients, {max} at most");
    assert!((1..=max).contains(&servers), "{servers} of {max}");
}

pub(super) fn count(cluster: &Cluster, sql: &str) -> usize {
    let rows = cluster.admin().query(sql).expect("a count");
    usize::try_from(rows[0].get::<_, i64>(0)).expect("a count")
}
