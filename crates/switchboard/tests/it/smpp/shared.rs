//! Several nodes on one PostgreSQL share the binds of a carrier.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use testkit::smsc::{Act, Receipt, Smsc};
use testkit::{Backend, Server};

use super::mass::{Tally, enrich, recipients, send_all};
use super::{carrier, carrier_list, start};
use crate::faults::signal;
use crate::rest::service::{Service, binary, wait_for};

const WINDOW: usize = 10;
const MESSAGES: usize = 40;

/// Takes every message, and reports on it to another link than the one that it came by.
fn crossing() -> Smsc {
    let crossed = |submit: &testkit::smsc::Submit| {
        let receipt = Receipt::delivered(submit.id().to_string());
        vec![Act::Answer, Act::ReceiptElsewhere(receipt)]
    };
    Smsc::builder().on_submit(crossed).start()
}

fn alpha(smsc: &Smsc, binds: usize) -> String {
    let more = format!("binds = {binds}\nwindow = {WINDOW}\nresponse_timeout_s = 2");
    carrier("alpha", smsc.addr(), &more)
}

/// Nodes with the same configuration, on one database.
struct Cluster {
    nodes: Vec<Service>,
    config: String,
}

impl Cluster {
    fn start(config: String, nodes: usize) -> Self {
        let mut first = start(Backend::Postgres, config.clone());
        enrich(&mut first);
        let mut cluster = Self {
            nodes: vec![first],
            config,
        };
        for _ in 1..nodes {
            cluster.join();
        }
        cluster
    }

    /// One more.
    fn join(&mut self) {
        let first = &self.nodes[0];
        let url = first.server.database_url().expect("PostgreSQL").to_owned();
        let server = Server::builder(binary(), Backend::Sqlite)
            .config(self.config.clone())
            .env("SWITCHBOARD_DATABASE__URL", url)
            .start();
        let token = first.token.clone();
        self.nodes.push(Service { server, token });
    }

    /// Sends to so many at each node; each number is used once.
    fn send(&self, tally: &Tally, round: usize) -> Vec<String> {
        let numbers = recipients((round + 1) * self.nodes.len() * MESSAGES);
        let numbers = &numbers[round * self.nodes.len() * MESSAGES..];
        let each = self.nodes.iter().zip(numbers.chunks(MESSAGES));
        each.flat_map(|(node, numbers)| send_all(node, tally, "Hello", numbers))
            .collect()
    }

    /// How many links each node says that it should have, in the order of nodes.
    fn links(&self) -> Vec<u64> {
        let listed = carrier_list(&self.nodes[0]);
        let number = |carrier: &Value| carrier["links"].as_u64().expect("a number");
        listed.iter().map(number).collect()
    }

    fn wait_for_links(&self, expected: &[u64]) {
        wait_for("everybody has a fair share", || {
            (self.links() == expected).then_some(())
        });
    }
}

fn wait_for_bound(smsc: &Smsc, count: usize) {
    wait_for("the links at the SMSC", || {
        (smsc.bound().len() == count).then_some(())
    });
}

/// Two links for three nodes, and each node's messages are sent; the reports come to whichever node. A node that is
/// killed is replaced, and one that joins gets its share.
#[test]
fn nodes_share_the_binds_of_a_carrier() {
    let smsc = crossing();
    let mut cluster = Cluster::start(alpha(&smsc, 2), 3);
    cluster.wait_for_links(&[1, 1, 0]);
    wait_for_bound(&smsc, 2);
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    tally.check(&ids);
    let seen = smsc.seen();
    let by: BTreeSet<_> = seen
        .submits
        .iter()
        .map(|submit| submit.connection)
        .collect();
    assert_eq!(by.len(), 2, "both links are used");
    assert_eq!(seen.taken, ids.len(), "each once");
    assert_eq!(
        (seen.most_bound, seen.unbinds),
        (2, 1),
        "one moved to the second node"
    );
    for listed in carrier_list(&cluster.nodes[2]) {
        assert_eq!(listed["linksTotal"], 2, "{listed}");
    }

    cluster.nodes[1].server.kill9();
    let killed = cluster.nodes.remove(1);
    wait_for("its link is gone", || {
        (smsc.bound().len() < 2).then_some(())
    });
    ids.extend(cluster.send(&tally, 10));
    wait_for_bound(&smsc, 2);
    cluster.wait_for_links(&[1, 1]);
    ids.extend(cluster.send(&tally, 20));
    tally.check(&ids);
    assert_eq!(smsc.seen().most_bound, 2);
    for node in &cluster.nodes {
        node.check_health();
    }
    drop(killed);
}

#[test]
fn a_node_that_joins_gets_its_share() {
    let smsc = crossing();
    let mut cluster = Cluster::start(alpha(&smsc, 4), 3);
    cluster.wait_for_links(&[2, 1, 1]);
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    cluster.join();
    ids.extend(cluster.send(&tally, 10));
    cluster.wait_for_links(&[1, 1, 1, 1]);
    wait_for_bound(&smsc, 4);
    ids.extend(cluster.send(&tally, 20));
    tally.check(&ids);
    let leaving = &mut cluster.nodes[3];
    assert!(leaving.server.terminate().success());
    cluster.wait_for_links(&[2, 1, 1]);
    wait_for_bound(&smsc, 4);
    let seen = smsc.seen();
    assert_eq!(seen.taken, ids.len(), "each once");
    assert_eq!(seen.most_bound, 4);
}

/// A node sleeps for longer than it counts as alive. Its link is still open at the SMSC when another node has its bind;
/// when it wakes, it sends nothing by that and closes it.
#[test]
fn a_node_that_slept_too_long_gives_its_links_up() {
    let smsc = crossing();
    let cluster = Cluster::start(alpha(&smsc, 2), 3);
    cluster.wait_for_links(&[1, 1, 0]);
    wait_for_bound(&smsc, 2);
    let sleeper = &cluster.nodes[1];
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    signal::send("STOP", sleeper.server.pid());
    let before = smsc.seen().binds.len();
    wait_for("another binds", || {
        (smsc.seen().binds.len() > before).then_some(())
    });
    let others = [&cluster.nodes[0], &cluster.nodes[2]];
    let numbers = recipients(1000);
    for (node, numbers) in others.into_iter().zip(numbers[500..].chunks(MESSAGES)) {
        ids.extend(send_all(node, &tally, "Hello", numbers));
    }
    signal::send("CONT", sleeper.server.pid());
    wait_for("the sleeper notices", || {
        let output = sleeper.server.output();
        output.contains("given up as dead").then_some(())
    });
    wait_for_bound(&smsc, 2);
    cluster.wait_for_links(&[1, 1, 0]);
    ids.extend(cluster.send(&tally, 10));
    wait_for("all are sent", || {
        (smsc.seen().taken >= ids.len()).then_some(())
    });
    // What the sleeper did not acknowledge before its link was closed is brought again, as any SMSC does.
    for submit in smsc.seen().submits {
        smsc.send(&Receipt::delivered(submit.id().to_string()));
    }
    tally.check(&ids);
    let twice = smsc.seen().taken - ids.len();
    assert!(twice <= WINDOW, "{twice} were sent twice");
    for node in &cluster.nodes {
        node.check_health();
    }
}

/// What waits for a carrier that no node has any more goes by another.
#[test]
fn a_pool_whose_carrier_is_removed_is_emptied() {
    let (mute, quick) = (
        Smsc::builder().on_submit(|_| Vec::new()).start(),
        crossing(),
    );
    let few = "[limits]\nheld_messages = 60\n";
    // An SMSC that never answers, so that it is not waited for any longer than it must be.
    let alpha = format!("{}late_answer_s = 2\n", alpha(&mute, 1));
    let cluster = Cluster::start(format!("{few}{alpha}"), 2);
    cluster.wait_for_links(&[1, 0]);
    let tally = Tally::start();
    let second = &cluster.nodes[1];
    let numbers = recipients(200);
    let ids = send_all(second, &tally, "Hello", &numbers);
    wait_for("the window is full", || {
        (mute.seen().taken >= WINDOW).then_some(())
    });
    let after = carrier("beta", quick.addr(), "binds = 2");
    for node in &cluster.nodes {
        let file = node.server.data_dir().with_file_name("switchboard.toml");
        fs::write(file, format!("{few}{after}")).expect("the configuration");
        signal::send("HUP", node.server.pid());
    }
    tally.check(&ids);
    let reached: BTreeSet<_> = quick
        .seen()
        .submits
        .iter()
        .map(|submit| submit.destination.2.clone())
        .collect();
    assert_eq!(reached.len(), numbers.len());
}
