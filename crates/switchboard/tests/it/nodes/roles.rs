//! Nodes with different roles.

use serde_json::json;
use testkit::receiver::Receiver;

use super::{Cluster, sms};
use crate::rest::service::wait_for;

/// A node without the worker role holds and sends nothing; a worker without other roles serves no requests.
#[test]
fn a_message_is_delivered_by_nodes_with_different_roles() {
    let mut cluster = Cluster::start([
        |builder| builder.arg("--roles").arg("api"),
        |builder| builder.arg("--roles").arg("dashboard,auth"),
    ]);
    let receiver = Receiver::start();
    let mut body = sms("through all of them");
    body["dlrUrl"] = receiver.url("/dlr").into();
    let id = cluster.send(0, &body);
    let listed = cluster.list_nodes();
    assert!(listed.iter().all(|node| node["holds"] == 0), "{listed:?}");
    assert_eq!(cluster.state(0, &id), "queued", "there is no worker yet");
    for path in ["/rates", "/sms/status/1"] {
        assert_eq!(cluster.call(1, "GET", path, b"").status, 404, "{path}");
    }

    cluster.add(|builder| builder.arg("--roles").arg("worker"));
    for path in ["/rates", "/mcp", "/dashboard"] {
        assert_eq!(cluster.call(2, "GET", path, b"").status, 404, "{path}");
    }
    assert_eq!(cluster.wait_for_end(0, &id), "delivered");
    wait_for("the report comes", || (receiver.count() > 0).then_some(()));
    let roles: Vec<_> = cluster
        .list_nodes()
        .iter()
        .map(|node| node["roles"].clone())
        .collect();
    assert_eq!(
        roles,
        [
            json!(["api"]),
            json!(["dashboard", "auth"]),
            json!(["worker"])
        ]
    );
}
