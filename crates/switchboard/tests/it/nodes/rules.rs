//! Routing rules that one node publishes apply to all nodes.

use std::fs;

use testkit::{Server, ServerBuilder};

use super::{Cluster, sms};
use crate::faults::signal;
use crate::rest::service::{tomorrow, wait_for};

pub(super) const SIMULATOR: &str = "[[carrier]]\nkind = \"simulator\"\n";
/// A carrier that never connects.
const OTHER: &str = "[[carrier]]\nname = \"other\"\nkind = \"smpp\"\naddress = \"127.0.0.1:9\"\nsystem_id = \"me\"\npassword = \"secret-word\"\n";

pub(super) fn route(country: &str, carrier: &str) -> String {
    format!("[[route]]\ncountry = \"{country}\"\ncarriers = [\"{carrier}\"]\n")
}

/// The simulated network for Latvia alone, the other carrier for Estonia.
fn with_both_carriers() -> String {
    [
        SIMULATOR,
        OTHER,
        &route("LV", "simulator"),
        &route("EE", "other"),
    ]
    .concat()
}

fn with_rules(builder: ServerBuilder) -> ServerBuilder {
    builder.config(with_both_carriers())
}

fn without_rules(builder: ServerBuilder) -> ServerBuilder {
    builder.config(SIMULATOR)
}

/// Whether a node accepts a message to this number. The message is scheduled, so that it is not sent.
fn accepts(cluster: &Cluster, node: usize, to: &str) -> bool {
    let mut body = sms("is there a route?");
    body["to"] = to.into();
    body["scheduled"] = tomorrow().into();
    let answer = cluster.call(node, "POST", "/sms", body.to_string().as_bytes());
    answer.status == 200
}

const LATVIA: &str = "+37120000001";
const ESTONIA: &str = "+37250000001";
const LITHUANIA: &str = "+37061200001";

pub(super) fn config_file(server: &Server) -> std::path::PathBuf {
    let data = server.data_dir();
    data.parent()
        .expect("a parent folder")
        .join("switchboard.toml")
}

#[test]
fn rules_that_one_node_publishes_apply_to_all() {
    let mut cluster = Cluster::start([with_rules, without_rules]);
    // The second node has neither the rules nor the carrier in its file.
    for node in [0, 1] {
        for (to, expected) in [(LATVIA, true), (ESTONIA, true), (LITHUANIA, false)] {
            assert_eq!(accepts(&cluster, node, to), expected, "{node}: {to}");
        }
    }
    let id = cluster.send(1, &sms("by the simulated network"));
    assert_eq!(cluster.wait_for_end(1, &id), "delivered");

    let file = config_file(&cluster.nodes[0]);
    let changed = [SIMULATOR, OTHER, &route("LT", "simulator")].concat();
    fs::write(&file, changed).expect("the file is there");
    signal::send("HUP", cluster.nodes[0].pid());
    for node in [0, 1] {
        wait_for("the new rules apply", || {
            (accepts(&cluster, node, LITHUANIA) && !accepts(&cluster, node, LATVIA)).then_some(())
        });
    }
    // A node that starts follows the published rules and logs it; no password was published.
    cluster.nodes[1].restart();
    assert!(accepts(&cluster, 1, LITHUANIA) && !accepts(&cluster, 1, LATVIA));
    let output = cluster.nodes[1].output();
    assert!(
        output.contains("the rules in force are others than those"),
        "{output}"
    );
    let check_no_password = "DO $$ BEGIN
        IF EXISTS (SELECT 1 FROM catalogue WHERE kind = 5 AND content LIKE '%secret-word%') THEN RAISE 'leaked'; END IF;
        IF NOT EXISTS (SELECT 1 FROM catalogue WHERE kind = 5 AND content LIKE '%other%') THEN RAISE 'nothing'; END IF;
        END $$";
    let checked = cluster.database.execute_blocking(check_no_password);
    checked.expect("rules are published, and no password");
}

#[test]
fn a_node_that_starts_with_new_rules_publishes_them() {
    let mut cluster = Cluster::start([with_rules, with_rules]);
    let file = config_file(&cluster.nodes[1]);
    let changed = [SIMULATOR, OTHER, &route("LT", "simulator")].concat();
    fs::write(&file, changed).expect("the file is there");
    cluster.nodes[1].restart();
    for node in [0, 1] {
        wait_for("the new rules apply", || {
            (accepts(&cluster, node, LITHUANIA) && !accepts(&cluster, node, LATVIA)).then_some(())
        });
    }
    // The rules of the first node's file were replaced, even if the file was written again since.
    fs::write(config_file(&cluster.nodes[0]), with_both_carriers()).expect("the file is there");
    cluster.nodes[0].restart();
    assert!(accepts(&cluster, 0, LITHUANIA) && !accepts(&cluster, 0, LATVIA));
}

#[test]
fn rules_with_a_higher_revision_win() {
    let mut cluster = Cluster::start([with_rules, with_rules]);
    let revised = |revision: u32, country: &str| {
        let revision = format!("routing.revision = {revision}\n");
        [&revision, SIMULATOR, OTHER, &route(country, "simulator")].concat()
    };
    let files = [0, 1].map(|node| config_file(&cluster.nodes[node]));
    fs::write(&files[1], revised(2, "LT")).expect("the file is there");
    cluster.nodes[1].restart();
    wait_for("the revised rules apply", || {
        accepts(&cluster, 0, LITHUANIA).then_some(())
    });
    // Rules without a revision, with a lower one and with the same one are refused, at SIGHUP and at a start.
    for rules in [with_both_carriers(), revised(1, "LV"), revised(2, "LV")] {
        fs::write(&files[0], rules).expect("the file is there");
        let before = cluster.nodes[0].output().len();
        signal::send("HUP", cluster.nodes[0].pid());
        wait_for("the refusal", || {
            let output = cluster.nodes[0].output();
            output[before..]
                .contains("to replace them, give yours 3")
                .then_some(())
        });
        cluster.nodes[0].restart();
        assert!(accepts(&cluster, 0, LITHUANIA) && !accepts(&cluster, 0, LATVIA));
    }
    // Earlier rules are in force again with a higher revision.
    fs::write(&files[0], revised(3, "LV")).expect("the file is there");
    cluster.nodes[0].restart();
    for node in [0, 1] {
        wait_for("the newest rules apply", || {
            (accepts(&cluster, node, LATVIA) && !accepts(&cluster, node, LITHUANIA)).then_some(())
        });
    }
}

#[test]
fn a_single_node_follows_its_file_after_a_restart() {
    let mut cluster = Cluster::start([with_rules]);
    assert!(!accepts(&cluster, 0, LITHUANIA));
    fs::write(config_file(&cluster.nodes[0]), SIMULATOR).expect("the file is there");
    cluster.nodes[0].restart();
    assert!(accepts(&cluster, 0, LITHUANIA));
}
