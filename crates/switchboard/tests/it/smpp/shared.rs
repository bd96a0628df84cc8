//! Several nodes on one PostgreSQL share the binds of a carrier.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use testkit::nodejs_smsc::{NodeJsEvent, NodeJsSmsc, NodeJsText};
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::smsc::{Action, Receipt, Smsc};
use testkit::{Backend, Server};

use super::bulk::{Tally, recipients, send_all, use_funded_account};
use super::{carrier, carrier_list, start};
use crate::faults::signal;
use crate::rest::service::{Service, binary, wait_for};

const WINDOW: usize = 10;
const MESSAGES: usize = 40;

/// An SMSC that sends each receipt on another link than the message came on.
fn smsc_with_crossed_receipts() -> Smsc {
    let with_crossed_receipt = |submit: &testkit::smsc::Submit| {
        let receipt = Receipt::delivered(submit.id().to_string());
        vec![Action::Answer, Action::ReceiptOnOtherConnection(receipt)]
    };
    Smsc::builder().on_submit(with_crossed_receipt).start()
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
        use_funded_account(&mut first);
        let mut cluster = Self {
            nodes: vec![first],
            config,
        };
        for _ in 1..nodes {
            cluster.add_node();
        }
        cluster
    }

    fn add_node(&mut self) {
        let first = &self.nodes[0];
        let url = first.server.database_url().expect("PostgreSQL").to_owned();
        let server = Server::builder(binary(), Backend::Sqlite)
            .config(self.config.clone())
            .env("SWITCHBOARD_DATABASE__URL", url)
            .start();
        let token = first.token.clone();
        self.nodes.push(Service { server, token });
    }

    /// Sends messages through each node. Each round uses other numbers.
    fn send(&self, tally: &Tally, round: usize) -> Vec<String> {
        let numbers = recipients((round + 1) * self.nodes.len() * MESSAGES);
        let numbers = &numbers[round * self.nodes.len() * MESSAGES..];
        let each = self.nodes.iter().zip(numbers.chunks(MESSAGES));
        each.flat_map(|(node, numbers)| send_all(node, tally, "Hello", numbers))
            .collect()
    }

    /// The number of links that each node should have, in the order of nodes.
    fn links(&self) -> Vec<u64> {
        let listed = carrier_list(&self.nodes[0]);
        let number = |carrier: &Value| carrier["links"].as_u64().expect("a number");
        listed.iter().map(number).collect()
    }

    fn wait_for_links(&self, expected: &[u64]) {
        wait_for("each node has its share of links", || {
            (self.links() == expected).then_some(())
        });
    }
}

fn wait_for_bound(smsc: &Smsc, count: usize) {
    wait_for("the links at the SMSC", || {
        (smsc.bound().len() == count).then_some(())
    });
}

/// Three nodes share two links, and the messages of each are sent; any node may get a receipt. When a node is killed,
/// another one gets its link.
#[test]
fn nodes_share_the_binds_of_a_carrier() {
    let smsc = smsc_with_crossed_receipts();
    let mut cluster = Cluster::start(alpha(&smsc, 2), 3);
    cluster.wait_for_links(&[1, 1, 0]);
    wait_for_bound(&smsc, 2);
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    tally.check(&ids);
    let log = smsc.log();
    let links_used: BTreeSet<_> = log.submits.iter().map(|submit| submit.connection).collect();
    assert_eq!(links_used.len(), 2, "one link is not used");
    assert_eq!(
        log.submit_count,
        ids.len(),
        "not every message was sent once"
    );
    assert_eq!(
        (log.most_bound, log.unbinds),
        (2, 1),
        "one link moved to the second node"
    );
    for listed in carrier_list(&cluster.nodes[2]) {
        assert_eq!(listed["linksTotal"], 2, "{listed}");
    }

    cluster.nodes[1].server.kill9();
    let killed = cluster.nodes.remove(1);
    wait_for("the link of the killed node is gone", || {
        (smsc.bound().len() < 2).then_some(())
    });
    ids.extend(cluster.send(&tally, 10));
    wait_for_bound(&smsc, 2);
    cluster.wait_for_links(&[1, 1]);
    ids.extend(cluster.send(&tally, 20));
    tally.check(&ids);
    assert_eq!(smsc.log().most_bound, 2);
    for node in &cluster.nodes {
        node.check_health();
    }
    drop(killed);
}

#[test]
fn a_node_that_joins_gets_its_share() {
    let smsc = smsc_with_crossed_receipts();
    let mut cluster = Cluster::start(alpha(&smsc, 4), 3);
    cluster.wait_for_links(&[2, 1, 1]);
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    cluster.add_node();
    ids.extend(cluster.send(&tally, 10));
    cluster.wait_for_links(&[1, 1, 1, 1]);
    wait_for_bound(&smsc, 4);
    ids.extend(cluster.send(&tally, 20));
    tally.check(&ids);
    let leaving = &mut cluster.nodes[3];
    assert!(leaving.server.terminate().success());
    cluster.wait_for_links(&[2, 1, 1]);
    wait_for_bound(&smsc, 4);
    let log = smsc.log();
    assert_eq!(
        log.submit_count,
        ids.len(),
        "not every message was sent once"
    );
    assert_eq!(log.most_bound, 4);
}

/// A node is paused beyond its lease. Its link is still open at the SMSC when another node gets its bind. When it
/// continues, it sends nothing on that link and closes it.
#[test]
fn a_node_that_was_paused_too_long_closes_its_links() {
    let smsc = smsc_with_crossed_receipts();
    let cluster = Cluster::start(alpha(&smsc, 2), 3);
    cluster.wait_for_links(&[1, 1, 0]);
    wait_for_bound(&smsc, 2);
    let paused_node = &cluster.nodes[1];
    let tally = Tally::start();
    let mut ids = cluster.send(&tally, 0);
    signal::send("STOP", paused_node.server.pid());
    let before = smsc.log().binds.len();
    wait_for("another node binds", || {
        (smsc.log().binds.len() > before).then_some(())
    });
    let others = [&cluster.nodes[0], &cluster.nodes[2]];
    let numbers = recipients(1000);
    for (node, numbers) in others.into_iter().zip(numbers[500..].chunks(MESSAGES)) {
        ids.extend(send_all(node, &tally, "Hello", numbers));
    }
    signal::send("CONT", paused_node.server.pid());
    wait_for("the paused node notices", || {
        let output = paused_node.server.output();
        output.contains("given up as dead").then_some(())
    });
    wait_for_bound(&smsc, 2);
    cluster.wait_for_links(&[1, 1, 0]);
    ids.extend(cluster.send(&tally, 10));
    wait_for("all are sent", || {
        (smsc.log().submit_count >= ids.len()).then_some(())
    });
    // Like any SMSC, sends receipts again that the paused node did not acknowledge before its link was closed.
    for submit in smsc.log().submits {
        smsc.send(&Receipt::delivered(submit.id().to_string()));
    }
    tally.check(&ids);
    let sent_twice = smsc.log().submit_count - ids.len();
    assert!(sent_twice <= WINDOW, "{sent_twice} were sent twice");
    for node in &cluster.nodes {
        node.check_health();
    }
}

/// Messages in the pool of a carrier that no node has any more go by another carrier, except those that it got and did
/// not answer: it may have taken them.
#[test]
fn the_pool_of_a_removed_carrier_is_emptied() {
    let (silent, quick) = (
        Smsc::builder().on_submit(|_| Vec::new()).start(),
        smsc_with_crossed_receipts(),
    );
    let few = "[limits]\nheld_messages = 60\n";
    // This SMSC never answers, so the service should give up waiting soon.
    let alpha = format!("{}late_answer_s = 2\n", alpha(&silent, 1));
    let cluster = Cluster::start(format!("{few}{alpha}"), 2);
    cluster.wait_for_links(&[1, 0]);
    let tally = Tally::start();
    let second = &cluster.nodes[1];
    let numbers = recipients(200);
    send_all(second, &tally, "Hello", &numbers);
    wait_for("the window is full", || {
        (silent.log().submit_count >= WINDOW).then_some(())
    });
    let after = carrier("beta", quick.addr(), "binds = 2");
    for node in &cluster.nodes {
        let file = node.server.data_dir().with_file_name("switchboard.toml");
        fs::write(file, format!("{few}{after}")).expect("the configuration");
        signal::send("HUP", node.server.pid());
    }
    let destinations = |smsc: &Smsc| -> BTreeSet<_> {
        let submits = smsc.log().submits.into_iter();
        submits.map(|submit| submit.destination.2.clone()).collect()
    };
    let (reached, unanswered) = wait_for("each message goes out", || {
        let (reached, unanswered) = (destinations(&quick), destinations(&silent));
        (reached.len() + unanswered.len() >= numbers.len()).then_some((reached, unanswered))
    });
    assert!(reached.is_disjoint(&unanswered), "sent by both carriers");
    tally.wait_for(reached.len());
}

/// A Greek text of three parts.
const GREEK: &str = "Καλημέρα σας. Θα ήθελα να κλείσω ένα ραντεβού για την επόμενη Τρίτη το πρωί, αν γίνεται πριν \
    από τις έντεκα. Αν όχι, μπορώ και την Πέμπτη το απόγευμα. Σας ευχαριστώ πολύ!";
/// Characters of UCS-2 in a part with a header of six octets.
const PART_CHARS: usize = 67;

/// The parts of [`GREEK`] from a handset, in this order, on the links of the nodes in turn.
fn greek_parts(handset: usize, order: [usize; 3]) -> Vec<NodeJsText> {
    let letters: Vec<char> = GREEK.chars().collect();
    let parts: Vec<&[char]> = letters.chunks(PART_CHARS).collect();
    assert_eq!(parts.len(), order.len());
    let part = |(turn, index): (usize, usize)| NodeJsText {
        link: (handset + turn) % 2,
        from: format!("3712000000{handset}"),
        to: "1234".to_owned(),
        udh: format!("050003{:02x}03{:02x}", 40 + handset, index + 1),
        message: parts[index].iter().collect(),
    };
    order.into_iter().enumerate().map(part).collect()
}

/// An SMSC of another project delivers the parts of long texts in every order, to two nodes. Each text is one message
/// and one callback.
#[test]
fn parts_that_come_to_two_nodes_are_one_message() {
    let smsc = NodeJsSmsc::start(&[]);
    let receiver = Receiver::start();
    let cluster = Cluster::start(carrier("alpha", smsc.addr(), "binds = 2"), 2);
    let url = receiver.url("/inbound");
    let number = ["number", "add", "--number", "1234", "--account", "bulk"];
    let first = &cluster.nodes[0];
    let added = first.server.cli(&[&number[..], &["--url", &url]].concat());
    assert!(added.status.success(), "{added:?}");
    for node in &cluster.nodes {
        wait_for("each node has one link", || {
            let metrics = node.raw("GET", "/metrics", &[], b"").text();
            let up = "switchboard_carrier_links_up{carrier=\"alpha\"} 1";
            metrics.lines().any(|line| line == up).then_some(())
        });
    }

    let orders = [
        [2, 0, 1],
        [2, 1, 0],
        [1, 2, 0],
        [1, 0, 2],
        [0, 2, 1],
        [0, 1, 2],
    ];
    let handsets = orders.into_iter().enumerate();
    let texts: Vec<_> = handsets
        .map(|(handset, order)| greek_parts(handset, order))
        .collect();
    // The first parts of all texts, then the second ones, so that each text waits for its rest.
    let turns = (0..3).flat_map(|turn| texts.iter().map(move |text| text[turn].clone()));
    smsc.deliver(&turns.collect::<Vec<_>>());
    wait_for("the callbacks", || {
        (receiver.count() >= orders.len()).then_some(())
    });
    wait_for("the answers to all parts", || {
        let events = smsc.events();
        let is_accepted =
            |event: &&NodeJsEvent| matches!(event, NodeJsEvent::Text { status: 0, .. });
        (events.iter().filter(is_accepted).count() == 3 * orders.len()).then_some(())
    });
    let requests = receiver.received();
    let mut callbacks: Vec<Value> = requests.iter().map(ReceivedRequest::json).collect();
    callbacks.sort_by_key(|message| message["from"].to_string());
    assert_eq!(callbacks.len(), orders.len(), "{callbacks:?}");
    for (handset, message) in callbacks.iter().enumerate() {
        assert_eq!(message["from"], format!("+3712000000{handset}"));
        assert_eq!(message["message"], GREEK, "{:?}", orders[handset]);
        let fields = [
            &message["parts"],
            &message["coding"],
            &message["incomplete"],
        ];
        assert_eq!(fields, [&json!(3), &json!(2), &json!(false)], "{message}");
    }
    let inbox = cluster.nodes[1].get("/sms/inbox").json();
    assert_eq!(inbox.as_array().map(Vec::len), Some(orders.len()));
    for node in &cluster.nodes {
        let metrics = node.raw("GET", "/metrics", &[], b"").text();
        let stored = "switchboard_inbound_parts_total{outcome=\"stored\"} 9";
        assert!(metrics.lines().any(|line| line == stored), "{metrics}");
        node.check_health();
    }
}
