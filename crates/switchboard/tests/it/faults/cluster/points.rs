//! A node is killed at each of the named places.

use std::fs;
use std::time::Instant;

use domain::kill_point::KillPoint;
use serde_json::json;
use testkit::{PATIENCE, TestDatabase};

use super::callers::Caller;
use super::nodes::Cluster;
use super::processes::{STRICT, three_on};
use super::scenario::Ran;
use crate::faults::dice::Dice;
use crate::faults::signal;
use crate::faults::waiting::wait_until;
use crate::rest::service::binary;

const VARIABLE: &str = "SWITCHBOARD_KILL_AT";
/// The node that is killed.
const VICTIM: usize = 0;
/// The latest pass at which it is.
const PASSES: u64 = 3;

/// What makes a process pass a place.
enum Provocation {
    /// Callers and the clock do.
    Traffic,
    /// Its start does.
    Start,
    /// The death of the others does.
    OthersDie,
    /// Its end does.
    Stop,
    /// Somebody who registers a number does.
    Number,
    /// A command of the operator does.
    Command,
}

fn provocation(point: KillPoint) -> Provocation {
    use KillPoint as P;
    match point {
        // A block of IDs is reserved once in a life.
        P::NodeJoined | P::PruneStep | P::IdsReserved => Provocation::Start,
        P::DeadGivenUp => Provocation::OthersDie,
        P::NodeLeaves | P::NodeLeft => Provocation::Stop,
        P::PinStored | P::PinSent => Provocation::Number,
        P::CreditCommitted | P::TokenRevoked | P::CatalogueBegins | P::CatalogueImported => {
            Provocation::Command
        }
        _ => Provocation::Traffic,
    }
}

/// One cycle is one place; as many cycles as there are places visit them all.
pub(super) fn killed_at_points(cycles: usize) -> Ran {
    if !has_points() {
        return Ran::Not("a release has no such places".to_owned());
    }
    let mut dice = Dice::throw();
    let all = KillPoint::ALL;
    let cycles = cycles.min(all.len());
    let first = usize::try_from(dice.below(all.len() as u64)).expect("a few dozen");
    let database = TestDatabase::create_blocking();
    let mut cluster = three_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let point = all[(first + cycle * all.len() / cycles) % all.len()];
        let began = Instant::now();
        kill_at(&mut cluster, point, 1 + dice.below(PASSES));
        println!("killed at {} after {:?}", point.name(), began.elapsed());
    }
    Ran::Through(cycles, cluster.finish(callers, STRICT))
}

/// Whether the binary under test can be killed so: debug builds can, releases cannot.
fn has_points() -> bool {
    let program = fs::read(binary()).expect("the binary can be read");
    let mut windows = program.windows(VARIABLE.len());
    windows.any(|window| window == VARIABLE.as_bytes())
}

fn kill_at(cluster: &mut Cluster, point: KillPoint, pass: u64) {
    match provocation(point) {
        Provocation::Traffic => die(cluster, point, pass, |_| {}),
        Provocation::Start => die(cluster, point, 1, |_| {}),
        Provocation::Number => die(cluster, point, 1, register_numbers),
        Provocation::Stop => die(cluster, point, 1, |cluster| {
            signal::send("TERM", cluster.nodes[VICTIM].server.pid());
        }),
        Provocation::OthersDie => {
            die(cluster, point, 1, |cluster| {
                cluster.kill(1);
                cluster.kill(2);
            });
            cluster.restart(1);
            cluster.restart(2);
        }
        Provocation::Command => command(cluster, point),
    }
}

/// Starts the victim with the order to die, provokes that, and starts it again without.
fn die(cluster: &mut Cluster, point: KillPoint, pass: u64, mut provoke: impl FnMut(&mut Cluster)) {
    let order = format!("{}:{pass}", point.name());
    let node = &mut cluster.nodes[VICTIM];
    node.door.lead_to(None);
    node.server.terminate();
    let from = cluster.log.now_ms();
    node.server.set_env(VARIABLE, Some(&order));
    match node.server.try_restart() {
        Ok(()) => {
            node.door.lead_to(Some(node.server.addr()));
            provoke(cluster);
            wait_for_death(cluster, &order);
        }
        Err(error) => {
            let said = format!("{error:?}");
            assert!(said.contains("killed at "), "{order}: {said}");
        }
    }
    cluster.close_door(VICTIM, from);
    cluster.nodes[VICTIM].server.set_env(VARIABLE, None);
    cluster.restart(VICTIM);
}

fn wait_for_death(cluster: &mut Cluster, order: &str) {
    let until = Instant::now() + PATIENCE;
    wait_until("the node dies at its place", || {
        let victim = &mut cluster.nodes[VICTIM].server;
        let dead = !victim.is_running();
        assert!(dead || Instant::now() < until, "alive: {order}");
        dead
    });
    wait_until("the node has said where it died", || {
        cluster.nodes[VICTIM].server.output().contains("killed at ")
    });
}

/// Registers numbers at the victim, which get a PIN each.
fn register_numbers(cluster: &mut Cluster) {
    let mut way = cluster.way();
    way.doors.truncate(VICTIM + 1);
    let mut caller = Caller::new(&way, 0);
    let number = 20_100_000 + cluster.log.now_ms() % 800_000;
    let body = json!({"name": format!("371{number}"), "type": "MSISDN"});
    let answer = caller.ask("POST", "/senderId", &[], body.to_string().as_bytes());
    if let Ok(answer) = answer {
        panic!("it was answered: {} {}", answer.status, answer.text());
    }
}

/// An operator's command dies in the middle; repeated, it does or finds done what it should.
fn command(cluster: &mut Cluster, point: KillPoint) {
    let server = &mut cluster.nodes[VICTIM].server;
    let (folder, list) = (
        server.data_dir(),
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.05\n",
    );
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("again.csv");
    fs::write(&file, list).expect("the list is written");
    let file = file.to_str().expect("a plain path").to_owned();
    let created = server.cli_json(&["token", "create", "--account", "crowd", "--json"]);
    let id = created["id"].to_string().replace('"', "");
    let arguments: Vec<&str> = match point {
        KillPoint::CreditCommitted => vec!["account", "credit", "crowd", "5.00"],
        KillPoint::TokenRevoked => vec!["token", "revoke", &id],
        _ => vec!["rates", "import", &file],
    };
    server.set_env(VARIABLE, Some(point.name()));
    let died = server.cli(&arguments);
    server.set_env(VARIABLE, None);
    let said = String::from_utf8_lossy(&died.stderr);
    assert!(said.contains("killed at "), "{arguments:?}: {said}");
    let again = server.cli(&arguments);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        again.status.success() || point == KillPoint::TokenRevoked,
        "{arguments:?}: {said}"
    );
}

/// A debug build has them, so that this test can fail; a release has not.
#[test]
fn release_has_no_places() {
    let is_release = binary()
        .components()
        .any(|part| part.as_os_str() == "release");
    assert_eq!(has_points(), !is_release, "{}", binary().display());
}
