//! A tool call that waits on one node sees what another node does.

use std::thread;

use serde_json::json;
use testkit::http;

use super::{Cluster, sms};
use crate::rest::service::tomorrow;

#[test]
fn a_wait_ends_when_another_node_ends_the_message() {
    let cluster = Cluster::start([|builder| builder, |builder| builder]);
    let mut body = sms("later");
    body["scheduled"] = tomorrow().into();
    let id = cluster.send(0, &body);
    let (address, bearer) = (cluster.nodes[1].addr(), format!("Bearer {}", cluster.token));
    let get_message = |wait_s: u64| {
        let (bearer, id) = (bearer.clone(), id.clone());
        move || {
            let headers = [
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
            ];
            let arguments = json!({ "id": id, "waitSeconds": wait_s });
            let call = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": "get_message", "arguments": arguments },
            });
            let body = call.to_string();
            let response = http::request(address, "POST", "/mcp", &headers, body.as_bytes());
            let answer = response.expect("an answer").json();
            answer["result"]["structuredContent"]["state"].clone()
        }
    };
    let waiting = thread::spawn(get_message(30));
    // The call above has begun by the time this one has waited.
    assert_eq!(get_message(1)(), "scheduled");
    let cancelled = cluster.call(0, "DELETE", &format!("/sms/{id}"), b"");
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    assert_eq!(waiting.join().expect("an answer"), "cancelled");
}
