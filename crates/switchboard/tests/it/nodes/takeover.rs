//! The remaining nodes take over the work of a node that is gone.

use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use testkit::ServerBuilder;

use super::{Cluster, sms};
use crate::rest::service::wait_for;

const MESSAGES: usize = 20;
const KNOWN_AFTER: SignedDuration = SignedDuration::from_secs(4);

fn reports_soon(builder: ServerBuilder) -> ServerBuilder {
    builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "100")
}

/// Its reports come later than any test waits.
fn reports_never(builder: ServerBuilder) -> ServerBuilder {
    builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "3600000")
}

/// Sends through a node whose network does not report, ends that node, and waits until the other one has reported.
fn check_takeover_after(end: impl FnOnce(&mut testkit::Server)) {
    let mut cluster = Cluster::start([reports_soon, reports_never]);
    let sent: Vec<String> = (0..MESSAGES)
        .map(|number| cluster.send(1, &sms(&format!("number {number}"))))
        .collect();
    wait_for("all are in transit", || {
        let is_sent = |id: &String| cluster.state(0, id) == "sent";
        sent.iter().all(is_sent).then_some(())
    });
    // By then the other node knows it: it reads the list of nodes every two seconds.
    wait_for("the node is known to the other", || {
        let started = cluster.list_nodes()[1]["started"].clone();
        let started: Timestamp = started.as_str()?.parse().ok()?;
        let age = SystemClock.now().duration_since(started);
        (age > KNOWN_AFTER).then_some(())
    });
    end(&mut cluster.nodes[1]);
    wait_for("the node is removed", || {
        (cluster.list_nodes().len() == 1).then_some(())
    });
    for id in &sent {
        assert_eq!(cluster.wait_for_end(0, id), "delivered", "{id}");
    }
}

#[test]
fn parts_of_a_killed_node_are_reported_by_another() {
    check_takeover_after(testkit::Server::kill9);
}

#[test]
fn parts_of_a_stopped_node_are_reported_by_another() {
    check_takeover_after(|node| assert!(node.terminate().success()));
}
