//! Network connections that are slow, cut in the middle of a packet, split, or silent.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use testkit::TestDatabase;
use testkit::relay::{NetworkCondition, Relay};
use tokio_postgres::config::Host;

use super::database::ALLOW_UNKNOWN_COMMITS;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;

const NODES: usize = 3;
/// How long a bad condition lasts.
const FAULT_DURATION: Duration = Duration::from_millis(1500);
const SLOW: Duration = Duration::from_millis(60);
/// Shorter than all timeouts.
const SILENT: Duration = Duration::from_secs(1);

/// Each cycle disturbs one kind of connection in one way.
pub(super) fn disturbed(cycles: usize) -> ScenarioResult {
    let mut rng = Rng::seeded();
    let database = TestDatabase::create_blocking();
    let to_database = Relay::start(Some(address(database.url()))).expect("a relay");
    let relayed = database.url().replace(
        &address(database.url()).to_string(),
        &to_database.addr().to_string(),
    );
    assert_ne!(
        relayed,
        database.url(),
        "the nodes must connect through the relay"
    );
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: relayed,
            checker: database.url().to_owned(),
        },
        configure: &|_, node| node,
    });
    let callers = cluster.callers();
    let node_relays = cluster.nodes.iter().map(|node| node.relay.clone());
    let node_relays = node_relays.chain([cluster.nodes[0].smpp_relay.clone()]);
    let relays: [Vec<Relay>; 4] = [
        node_relays.collect(),
        vec![to_database],
        vec![cluster.to_receiver.clone()],
        vec![cluster.to_network.clone()],
    ];
    for cycle in 0..cycles {
        cluster.wait_for_answered(20);
        let from = cluster.log.now_ms();
        let mut modes = (cycle / relays.len()..).map(|mode| mode % 4);
        for relay in &relays[cycle % relays.len()] {
            disturb(relay, modes.next().expect("the range has no end"), &mut rng);
        }
        // A part is sent again if its answer was lost, or if its node was declared dead because it could not reach the
        // database.
        cluster.log.record_fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(20);
    ScenarioResult::Completed(cycles, cluster.finish(callers, ALLOW_UNKNOWN_COMMITS))
}

fn disturb(relay: &Relay, mode: usize, rng: &mut Rng) {
    match mode {
        0 => {
            for _ in 0..5 {
                thread::sleep(rng.duration_below(FAULT_DURATION / 3)); // tidy: the moment of a cut is meant to be random
                relay.cut();
            }
        }
        1 => for_a_while(relay, NetworkCondition::Slow(SLOW), FAULT_DURATION),
        2 => for_a_while(relay, NetworkCondition::Split(SLOW / 3), FAULT_DURATION),
        _ => {
            relay.set_condition(NetworkCondition::Silent);
            thread::sleep(SILENT); // tidy: how long the condition lasts is the subject
            // Bytes are missing now, so these connections must not continue.
            relay.set_condition(NetworkCondition::Closed);
            relay.set_condition(NetworkCondition::Normal);
        }
    }
}

fn for_a_while(relay: &Relay, condition: NetworkCondition, time: Duration) {
    relay.set_condition(condition);
    thread::sleep(time); // tidy: how long the condition lasts is the subject
    relay.set_condition(NetworkCondition::Normal);
}

/// The address of the server in a URL.
fn address(url: &str) -> SocketAddr {
    let config: tokio_postgres::Config = url.parse().expect("a URL");
    let [Host::Tcp(host)] = config.get_hosts() else {
        panic!("one host: {url}");
    };
    let address = format!("{host}:{}", config.get_ports()[0]);
    address.parse().expect("an address on loopback")
}
