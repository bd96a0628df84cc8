//! Nodes behind a pooler that has fewer connections to the server than the nodes have to it.

use super::nodes::{Cluster, Database, Setup};
use super::processes::STRICT;
use super::scenario::ScenarioResult;
use testkit::PooledDatabase;

const NODES: usize = 2;
/// Messages that are answered before and after each kill.
const MESSAGES: usize = 500;
/// Connections of the nodes, without those of the checker.
const NODE_CONNECTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'switchboard'";

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
    cluster.wait_until_dead_nodes_are_removed();
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// The pooler has more clients than connections to the server.
fn check_sharing(cluster: &Cluster, pooled: &PooledDatabase) {
    let clients = pooled.clients();
    let servers = usize::try_from(cluster.count(NODE_CONNECTIONS)).expect("a count");
    println!("{clients} connections of nodes share {servers} connections to the server");
    let max = PooledDatabase::max_server_connections();
    assert!(clients > max, "{clients} clients, {max} at most");
    assert!((1..=max).contains(&servers), "{servers} of {max}");
}
