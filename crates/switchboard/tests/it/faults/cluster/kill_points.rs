//! A node is killed at each of the kill points.

use std::fs;
use std::time::Instant;

use domain::kill_point::KillPoint;
use serde_json::json;
use testkit::{TEST_TIMEOUT, TestDatabase};

use super::callers::Caller;
use super::nodes::Cluster;
use super::processes::{STRICT, three_nodes_on};
use super::scenario::ScenarioResult;
use crate::faults::rng::Rng;
use crate::faults::signal;
use crate::faults::waiting::wait_until;
use crate::rest::service::binary;

const VARIABLE: &str = "SWITCHBOARD_KILL_AT";
/// The node that is killed.
const VICTIM: usize = 0;
/// The node dies at a random pass of the point, at most this one.
const MAX_PASS: u64 = 3;

/// What makes a process pass a kill point.
enum Trigger {
    Traffic,
    Start,
    /// The other nodes die.
    OthersDie,
    Stop,
    /// A caller registers a number.
    Number,
    /// The operator runs a command.
    Command,
}

fn trigger_of(point: KillPoint) -> Trigger {
    use KillPoint as P;
    match point {
        // A process reserves one block of IDs, at its start.
        P::NodeJoined | P::PruneStep | P::IdsReserved => Trigger::Start,
        P::DeadGivenUp => Trigger::OthersDie,
        P::NodeLeaves | P::NodeLeft => Trigger::Stop,
        P::PinStored | P::PinSent => Trigger::Number,
        P::CreditCommitted | P::TokenRevoked | P::CatalogueBegins | P::CatalogueImported => {
            Trigger::Command
        }
        _ => Trigger::Traffic,
    }
}

/// Each cycle is one kill point; with enough cycles all points are visited.
pub(super) fn killed_at_points(cycles: usize) -> ScenarioResult {
    if !has_kill_points() {
        return ScenarioResult::NotRun("a release build has no kill points".to_owned());
    }
    let mut rng = Rng::seeded();
    let all = KillPoint::ALL;
    let cycles = cycles.min(all.len());
    let first = usize::try_from(rng.below(all.len() as u64)).expect("a few dozen");
    let database = TestDatabase::create_blocking();
    let mut cluster = three_nodes_on(&database);
    let callers = cluster.callers();
    for cycle in 0..cycles {
        let point = all[(first + cycle * all.len() / cycles) % all.len()];
        let began = Instant::now();
        kill_at(&mut cluster, point, 1 + rng.below(MAX_PASS));
        println!("killed at {} after {:?}", point.name(), began.elapsed());
    }
    ScenarioResult::Completed(cycles, cluster.finish(callers, STRICT))
}

/// Whether the binary under test has kill points: only debug builds do.
fn has_kill_points() -> bool {
    let program = fs::read(binary()).expect("the binary can be read");
    let mut windows = program.windows(VARIABLE.len());
    windows.any(|window| window == VARIABLE.as_bytes())
}

fn kill_at(cluster: &mut Cluster, point: KillPoint, pass: u64) {
    match trigger_of(point) {
        Trigger::Traffic => kill_at_point(cluster, point, pass, |_| {}),
        Trigger::Start => kill_at_point(cluster, point, 1, |_| {}),
        Trigger::Number => kill_at_point(cluster, point, 1, register_number),
        Trigger::Stop => kill_at_point(cluster, point, 1, |cluster| {
            signal::send("TERM", cluster.nodes[VICTIM].server.pid());
        }),
        Trigger::OthersDie => {
            kill_at_point(cluster, point, 1, |cluster| {
                cluster.kill(1);
                cluster.kill(2);
            });
            cluster.restart(1);
            cluster.restart(2);
        }
        Trigger::Command => kill_command(cluster, point),
    }
}

/// Starts the victim with the setting to die at the point, triggers that, and starts it again without the setting.
fn kill_at_point(
    cluster: &mut Cluster,
    point: KillPoint,
    pass: u64,
    mut trigger: impl FnMut(&mut Cluster),
) {
    let kill_at_setting = format!("{}:{pass}", point.name());
    let node = &mut cluster.nodes[VICTIM];
    node.close();
    node.server.terminate();
    let from = cluster.log.now_ms();
    node.server.set_env(VARIABLE, Some(&kill_at_setting));
    match node.server.try_restart() {
        Ok(()) => {
            node.open();
            trigger(cluster);
            wait_for_death(cluster, &kill_at_setting);
        }
        Err(error) => {
            let said = format!("{error:?}");
            assert!(said.contains("killed at "), "{kill_at_setting}: {said}");
        }
    }
    cluster.disconnect(VICTIM, from);
    cluster.nodes[VICTIM].server.set_env(VARIABLE, None);
    cluster.restart(VICTIM);
}

fn wait_for_death(cluster: &mut Cluster, kill_at_setting: &str) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    wait_until("the node dies at the kill point", || {
        let victim = &mut cluster.nodes[VICTIM].server;
        let dead = !victim.is_running();
        assert!(
            dead || Instant::now() < deadline,
            "still alive: {kill_at_setting}"
        );
        dead
    });
    wait_until("the node has printed where it died", || {
        cluster.nodes[VICTIM].server.output().contains("killed at ")
    });
}

/// Registers a number at the victim, which sends a PIN to it.
fn register_number(cluster: &mut Cluster) {
    let mut endpoints = cluster.endpoints();
    endpoints.addresses.truncate(VICTIM + 1);
    let mut caller = Caller::new(&endpoints, 0);
    let number = 20_100_000 + cluster.log.now_ms() % 800_000;
    let body = json!({"name": format!("371{number}"), "type": "MSISDN"});
    let answer = caller.call("POST", "/senderId", &[], body.to_string().as_bytes());
    if let Ok(answer) = answer {
        panic!("the victim answered: {} {}", answer.status, answer.text());
    }
}

/// A command of the operator dies at the kill point. When it is repeated, it succeeds or finds its work done.
fn kill_command(cluster: &mut Cluster, point: KillPoint) {
    let server = &mut cluster.nodes[VICTIM].server;
    let (folder, list) = (
        server.data_dir(),
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.05\n",
    );
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("again.csv");
    fs::write(&file, list).expect("the list is written");
    let file = file.to_str().expect("a plain path").to_owned();
    let created = server.cli_json(&["token", "create", "--account", "acme", "--json"]);
    let id = created["id"].to_string().replace('"', "");
    let arguments: Vec<&str> = match point {
        KillPoint::CreditCommitted => vec!["account", "credit", "acme", "5.00"],
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

/// Debug builds have kill points, which proves that this test can fail.
#[test]
fn release_has_no_kill_points() {
    let is_release = binary()
        .components()
        .any(|part| part.as_os_str() == "release");
    assert_eq!(has_kill_points(), !is_release, "{}", binary().display());
}
