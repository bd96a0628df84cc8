//! The list of nodes that an operator sees.

use super::Cluster;
use crate::rest::service::wait_for;

#[test]
fn nodes_are_listed_with_their_details_until_they_stop() {
    let mut cluster = Cluster::start([
        |builder| builder,
        |builder| builder.arg("--roles").arg("api,mcp"),
    ]);
    let listed = cluster.list_nodes();
    assert_eq!(listed.len(), 2, "{listed:?}");
    for (node, server) in listed.iter().zip(&cluster.nodes) {
        assert_eq!(node["state"], "alive", "{node}");
        assert_eq!(node["listen"], server.addr().to_string(), "{node}");
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"), "{node}");
        assert_eq!(node["schema"], store::Schema::current().level(), "{node}");
        for key in ["host", "started", "aliveUntil"] {
            assert!(!node[key].as_str().expect(key).is_empty(), "{node}");
        }
    }
    assert_eq!(listed[1]["roles"], serde_json::json!(["api", "mcp"]));
    let table = cluster.nodes[0].cli(&["node", "list"]);
    let table = String::from_utf8(table.stdout).expect("text");
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("api,mcp"), "{table}");

    assert!(cluster.nodes[1].terminate().success());
    assert_eq!(
        cluster.list_nodes().len(),
        1,
        "a stopped node is still listed"
    );
    cluster.nodes[0].kill9();
    wait_for("the killed node is listed as dead", || {
        let listed = cluster.list_nodes();
        (listed.len() == 1 && listed[0]["state"] == "dead").then_some(())
    });
}

/// Simulates a newer version that changed the database without the handshake.
#[test]
fn a_node_that_is_too_old_for_the_database_stops_gracefully() {
    let mut cluster = Cluster::start([|builder| builder]);
    let newer = "INSERT INTO schema_migration (number, name, applied_us) VALUES (9999, 'newer', 0)";
    cluster
        .database
        .execute_blocking(newer)
        .expect("the statement is valid");
    wait_for("the node stops by itself", || {
        let output = cluster.nodes[0].output();
        output.contains("start the newer version").then_some(())
    });
    let status = cluster.nodes[0].terminate();
    assert_eq!(status.code(), Some(1), "{}", cluster.nodes[0].output());
    assert!(
        cluster.nodes[0].output().contains("stopped"),
        "not graceful"
    );
    let refused = cluster.nodes[0].cli(&["node", "list"]);
    let stderr = String::from_utf8(refused.stderr).expect("text");
    assert!(stderr.contains("run the newer version"), "{stderr}");

    let older_fits = "INSERT INTO schema_fit (number, oldest) VALUES (9999, 14)";
    cluster
        .database
        .execute_blocking(older_fits)
        .expect("the statement is valid");
    cluster.nodes[0].restart();
    let id = cluster.send(0, &super::sms("by the older version"));
    assert_eq!(cluster.wait_for_end(0, &id), "delivered");
}
