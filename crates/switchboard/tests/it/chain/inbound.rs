//! Texts from handsets that come through both services.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::{self, Response};
use testkit::receiver::Receiver;

use super::Chain;
use crate::rest::service::{Service, wait_for};

const NUMBER: &str = "+37120000009";

fn command(service: &Service, arguments: &[&str]) {
    let output = service.server.cli(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// The path to which the upstream sends texts, with its proof.
fn inbound_path(front: &Service) -> String {
    let carriers = front.server.cli_json(&["carrier", "list", "--json"]);
    let url = carriers[0]["inboundUrl"].as_str().expect("a URL");
    let at = url.find("/carriers/up/inbound/").expect("the address");
    url[at..].to_owned()
}

fn inbox(service: &Service) -> Vec<Value> {
    let inbox = service.get("/sms/inbox").json();
    inbox.as_array().expect("a list").clone()
}

fn post(front: &Service, path: &str, record: &Value) -> Response {
    let headers = [("Content-Type", "application/json")];
    let body = record.to_string();
    http::request(front.server.addr(), "POST", path, &headers, body.as_bytes())
        .unwrap_or_else(|error| panic!("no answer: {error}"))
}

/// How often the upstream has sent its callbacks.
fn upstream_tries(upstream: &Service) -> u64 {
    let listed = upstream
        .server
        .cli_json(&["callbacks", "list", "--all", "--json"]);
    let list = listed.as_array().expect("a list");
    list.iter().filter_map(|one| one["tries"].as_u64()).sum()
}

fn a_text_passes_both_services_once(backend: Backend) {
    let chain = Chain::start(backend);
    let (front, upstream) = (&chain.front, &chain.upstream);
    let receiver = Receiver::start();
    let own = ["number", "add", "--number", NUMBER, "--account", "main"];
    let url = receiver.url("/inbound");
    command(front, &[&own[..], &["--url", &url]].concat());
    command(upstream, &own);
    let path = inbound_path(front);
    let address = format!("inbound_url={}", front.server.url(&path));
    command(upstream, &["account", "set", "main", &address]);

    let reply = ["simulator", "reply", "--from", "+37120000001"];
    let reply = [&reply[..], &["--to", NUMBER, "--text", "Да, €"]].concat();
    command(upstream, &reply);
    let callback = wait_for("the text", || receiver.received().into_iter().next());
    let record: Value = serde_json::from_slice(&callback.body).expect("JSON");
    assert_eq!(record["message"], "Да, €", "{record}");
    assert_eq!(record["from"], "+37120000001", "{record}");
    assert_eq!(
        (&record["to"], &record["coding"]),
        (&json!(NUMBER), &json!(2))
    );
    let theirs = inbox(upstream);

    // The upstream sends it again, and so does somebody who knows the address.
    wait_for("the first answer", || {
        (upstream_tries(upstream) == 1).then_some(())
    });
    command(upstream, &["callbacks", "replay", "--all", "--url", "http"]);
    wait_for("the replay", || {
        (upstream_tries(upstream) == 2).then_some(())
    });
    let repeated = post(front, &path, &theirs[0]);
    assert_eq!((repeated.status, repeated.text().as_str()), (200, "OK"));
    assert_eq!(inbox(front), std::slice::from_ref(&record));

    let other = json!({
        "id": "55", "from": "+37120000002", "to": NUMBER, "message": "01ff", "received": "2030-01-31 07:30:00",
        "parts": 3, "coding": 1, "udh": "%03%70%01%09", "mcc": null, "mnc": null, "keyword": null,
        "inReplyTo": null, "incomplete": true,
    });
    for _ in 0..2 {
        assert_eq!(post(front, &path, &other).status, 200);
    }
    let listed = inbox(front);
    assert_eq!(listed.len(), 2, "{listed:?}");
    for field in ["from", "message", "parts", "coding", "udh", "incomplete"] {
        assert_eq!(listed[0][field], other[field], "{field}");
    }

    let (start, proof) = path.rsplit_once('/').expect("a path");
    let forged = format!("{start}/{}", proof.chars().rev().collect::<String>());
    let unknown = format!("/carriers/down/inbound/{proof}");
    for wrong in [&forged, &unknown, &format!("{start}/0")] {
        let refused = post(front, wrong, &json!({ "id": "56" }));
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    let nonsense = post(front, &path, &json!({ "id": "56" }));
    assert_eq!(nonsense.status, 400, "{}", nonsense.text());
    assert_eq!(inbox(front).len(), 2);
    for service in [front, upstream] {
        let output = service.server.output();
        assert!(!output.contains(proof), "{output}");
    }
}

crate::rest::on_both_backends!(a_text_passes_both_services_once);
