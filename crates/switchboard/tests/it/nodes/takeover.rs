//! What a node that is gone leaves behind is taken over by those that live.

use domain::clock::SystemClock;
use domain::{Clock, Timestamp};
use jiff::SignedDuration;
use testkit::ServerBuilder;

use super::{Cluster, sms};
use crate::rest::service::wait_for;

const MESSAGES: usize = 20;
const SEEN_AFTER: SignedDuration = SignedDuration::from_secs(4);

fn reports_soon(builder: ServerBuilder) -> ServerBuilder {
    builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "100")
}

/// Later than any test waits.
fn reports_never(builder: ServerBuilder) -> ServerBuilder {
    builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "3600000")
}

/// Sends by a node whose network does not report, lets it go, and waits until the other has reported for it.
fn taken_over_after(end: impl FnOnce(&mut testkit::Server)) {
    let mut cluster = Cluster::start([reports_soon, reports_never]);
    let sent: Vec<String> = (0..MESSAGES)
        .map(|number| cluster.send(1, &sms(&format!("number {number}"))))
        .collect();
    wait_for("all are in transit", || {
        let is_sent = |id: &String| cluster.state(0, id) == "sent";
        sent.iter().all(is_sent).then_some(())
    });
    // Others have seen it by then: they look every two seconds.
    wait_for("the node is not new any more", || {
        let started = cluster.listed()[1]["started"].clone();
        let started: Timestamp = started.as_str()?.parse().ok()?;
        let age = SystemClock.now().duration_since(started);
        (age > SEEN_AFTER).then_some(())
    });
    end(&mut cluster.nodes[1]);
    wait_for("the node is forgotten", || {
        (cluster.listed().len() == 1).then_some(())
    });
    for id in &sent {
        assert_eq!(cluster.wait_for_end(0, id), "delivered", "{id}");
    }
}

#[test]
fn parts_that_a_dead_nodes_simulator_took_are_reported_by_another() {
    taken_over_after(testkit::Server::kill9);
}

#[test]
fn parts_that_the_simulator_of_a_node_took_that_left_are_reported_by_another() {
    taken_over_after(|node| assert!(node.terminate().success()));
}
