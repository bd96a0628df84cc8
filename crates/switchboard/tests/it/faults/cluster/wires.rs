//! The wires between every pair: slow, cut in the middle of a packet, halved, silent.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use testkit::TestDatabase;
use testkit::relay::{Relay, Weather};
use tokio_postgres::config::Host;

use super::database::VANISHING;
use super::nodes::{Cluster, Database, Setup, WINDOW};
use super::scenario::Ran;
use crate::faults::dice::Dice;

const NODES: usize = 3;
/// How long bad weather lasts.
const SPELL: Duration = Duration::from_millis(1500);
const SLOW: Duration = Duration::from_millis(60);
/// Shorter than anybody's patience.
const SILENT: Duration = Duration::from_secs(1);

/// Each cycle spoils one kind of wire in one way.
pub(super) fn spoilt(cycles: usize) -> Ran {
    let mut dice = Dice::throw();
    let database = TestDatabase::create_blocking();
    let to_database = Relay::start(Some(address(database.url()))).expect("a relay");
    let relayed = database.url().replace(
        &address(database.url()).to_string(),
        &to_database.addr().to_string(),
    );
    assert_ne!(relayed, database.url(), "the nodes go by the relay");
    let cluster = Cluster::start(&Setup {
        nodes: NODES,
        database: Database::Postgres {
            nodes: relayed,
            checker: database.url().to_owned(),
        },
        equip: &|_, node| node,
    });
    let callers = cluster.callers();
    let doors = cluster.nodes.iter().map(|node| node.door.clone());
    let wires: [Vec<Relay>; 4] = [
        doors.collect(),
        vec![to_database],
        vec![cluster.to_receiver.clone()],
        vec![cluster.to_network.clone()],
    ];
    for cycle in 0..cycles {
        cluster.wait_for_answered(20);
        let from = cluster.log.now_ms();
        let mut ways = (cycle / wires.len()..).map(|way| way % 4);
        for relay in &wires[cycle % wires.len()] {
            spoil(relay, ways.next().expect("without end"), &mut dice);
        }
        // An answer that is lost on the way to the network or from it is unknown, so the part is sent again; and who
        // cannot reach the database may be taken for dead.
        cluster.log.fault(from, NODES * WINDOW);
    }
    cluster.wait_for_answered(20);
    Ran::Through(cycles, cluster.finish(callers, VANISHING))
}

fn spoil(relay: &Relay, way: usize, dice: &mut Dice) {
    match way {
        0 => {
            for _ in 0..5 {
                thread::sleep(dice.moment(SPELL / 3)); // tidy: the moment of a cut is meant to be random
                relay.cut();
            }
        }
        1 => for_a_while(relay, Weather::Slow(SLOW), SPELL),
        2 => for_a_while(relay, Weather::Halved(SLOW / 3), SPELL),
        _ => {
            relay.set(Weather::Silent);
            thread::sleep(SILENT); // tidy: how long the weather lasts is the subject
            // What was swallowed is missing in the middle: nothing more may come on these connections.
            relay.set(Weather::Closed);
            relay.set(Weather::Fair);
        }
    }
}

fn for_a_while(relay: &Relay, weather: Weather, time: Duration) {
    relay.set(weather);
    thread::sleep(time); // tidy: how long the weather lasts is the subject
    relay.set(Weather::Fair);
}

/// Where the server of a URL listens.
fn address(url: &str) -> SocketAddr {
    let config: tokio_postgres::Config = url.parse().expect("a URL");
    let [Host::Tcp(host)] = config.get_hosts() else {
        panic!("one host: {url}");
    };
    let address = format!("{host}:{}", config.get_ports()[0]);
    address.parse().expect("an address on loopback")
}
