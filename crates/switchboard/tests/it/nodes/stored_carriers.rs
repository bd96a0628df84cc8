//! A carrier that a command stores is used by every node, and so is each change of it.

use std::fs;

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::temp_dir;

use super::{Cluster, sms};
use crate::http_carrier::{SECRET, provider, taken, wait_for_request};
use crate::rest::service::wait_for;

const NODES: usize = 2;

/// Sends a message through each node, and waits until the provider has them.
fn send_through_each(cluster: &Cluster, provider: &Receiver) {
    let before = provider.count();
    for node in 0..NODES {
        cluster.send(node, &sms(&format!("through node {node}")));
    }
    let request = wait_for_request(provider, before + NODES);
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
}

/// Waits until this many nodes have the carrier.
fn wait_for_nodes(cluster: &Cluster, expected: usize) {
    wait_for("the nodes that have the carrier", || {
        let list = cluster.cli(&["carrier", "list", "--json"]);
        let list = list.as_array().expect("a list");
        let has_it = |one: &&Value| {
            one["name"] == "beta" && one["source"] == "database" && one["node"].is_u64()
        };
        (list.iter().filter(has_it).count() == expected).then_some(())
    });
}

#[test]
fn a_stored_carrier_is_used_by_every_node() {
    let cluster = Cluster::start([|node| node, |node| node]);
    let [first, second] = [(), ()].map(|()| provider(|_| taken()));
    let description = format!(
        "kind = \"http\"\n[request]\nurl = \"{}\"\n\
         headers = {{ Authorization = \"Bearer {{{{ secret.key }}}}\" }}\n\
         json = {{ to = \"{{{{ to }}}}\", text = \"{{{{ text }}}}\", callback = \"{{{{ report_url }}}}\" }}\n",
        first.url("/send")
    );
    let folder = temp_dir("carrier").expect("a temporary folder");
    let file = folder.path().join("beta.toml");
    fs::write(&file, description).expect("the file is written");
    let file = file.to_str().expect("a plain path");
    let secret = format!("secret.key={SECRET}");
    let set = |settings: &[&str]| {
        cluster.run_command(&[&["carrier", "set", "beta"], settings].concat());
    };

    set(&["--from", file, &secret]);
    wait_for_nodes(&cluster, NODES);
    send_through_each(&cluster, &first);

    // The other provider gets the messages of both nodes, a moment after the change.
    set(&[&format!("request.url={}", second.url("/send"))]);
    for node in 0..NODES {
        wait_for("the change is in effect", || {
            let text = format!("node {node} follows");
            cluster.send(node, &sms(&text));
            let is_there = |request: &testkit::receiver::ReceivedRequest| {
                request.json()["text"] == text.as_str()
            };
            second.received().iter().any(is_there).then_some(())
        });
    }
    send_through_each(&cluster, &second);

    // No carrier is left but the simulated network.
    cluster.run_command(&["carrier", "remove", "beta"]);
    wait_for_nodes(&cluster, 0);
    let counts = (first.count(), second.count());
    for node in 0..NODES {
        let id = cluster.send(node, &sms("to the simulated network"));
        assert_eq!(cluster.wait_for_end(node, &id), "delivered");
    }
    assert_eq!((first.count(), second.count()), counts);
    let history = cluster.cli(&["carrier", "history", "--json"]);
    assert_eq!(history.as_array().map(Vec::len), Some(3), "{history}");
    assert!(!history.to_string().contains(SECRET));
    assert_eq!(history[0]["change"], json!("carrier.remove carrier beta"));
}
