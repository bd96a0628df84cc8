//! What a node that is gone leaves behind is taken over by those that live.

use super::{Cluster, sms};
use crate::rest::service::wait_for;

const MESSAGES: usize = 40;

/// The simulated network reports late, so that the node is gone before it has.
#[test]
fn parts_that_a_dead_nodes_simulator_took_are_reported_by_another() {
    for is_killed in [true, false] {
        let slow = |builder: testkit::ServerBuilder| {
            builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "3000")
        };
        let mut cluster = Cluster::start([slow, slow]);
        let sent: Vec<String> = (0..MESSAGES)
            .map(|number| cluster.send(1, &sms(&format!("number {number}"))))
            .collect();
        wait_for("all are in transit", || {
            let is_sent = |id: &String| cluster.state(0, id) == "sent";
            sent.iter().all(is_sent).then_some(())
        });
        if is_killed {
            cluster.nodes[1].kill9();
        } else {
            assert!(cluster.nodes[1].terminate().success());
        }
        for id in &sent {
            assert_eq!(cluster.wait_for_end(0, id), "delivered", "{is_killed}");
        }
    }
}
