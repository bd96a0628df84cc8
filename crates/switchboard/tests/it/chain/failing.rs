//! The upstream does not accept what the front service sends.

use std::process::Command;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::Receiver;

use super::lossy_proxy::LossyProxy;
use super::{Chain, carrier, wait_for_reported_states};
use crate::rest::service::{Service, message, wait_for};

/// The only carrier of a service, as `carrier list` shows it.
fn carrier_status(service: &Service) -> Value {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    list[0].clone()
}

fn wait_for_health(service: &Service, health: &str) -> Value {
    wait_for(&format!("the carrier's health {health}"), || {
        let carrier_status = carrier_status(service);
        (carrier_status["health"] == health).then_some(carrier_status)
    })
}

/// `carrier list` shows a wrong token. Accepted messages are sent once the token is right.
fn a_wrong_token_is_shown_and_loses_no_message(backend: Backend) {
    let upstream = Service::start(backend);
    let wrong = upstream.create_token("main", &[]);
    let revoked = upstream.server.cli(&["token", "revoke", &wrong.id]);
    assert!(revoked.status.success(), "{revoked:?}");
    let config = carrier(&upstream.server.url(""), &wrong.token);
    let chain = Chain::with(upstream, config, backend);

    let down = wait_for_health(&chain.front, "down");
    assert_eq!(
        (&down["name"], &down["kind"], &down["note"]),
        (
            &json!("up"),
            &json!("upstream"),
            &json!("the upstream refuses the token; check carrier.token")
        )
    );
    let receiver = Receiver::start();
    let id = chain.send(&receiver, &json!({}));
    let status = chain.front.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["state"], "queued");

    let folder = chain.front.server.data_dir();
    let file = folder.parent().expect("a folder").join("switchboard.toml");
    let config = carrier(&chain.upstream.server.url(""), &chain.upstream.token);
    std::fs::write(file, config).expect("a file");
    let pid = chain.front.server.pid().to_string();
    let reloaded = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(reloaded.expect("a kill command").success());
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
    let up = wait_for_health(&chain.front, "up");
    assert_eq!(up["note"], Value::Null);
}

/// The note of the carrier says that the balance at the upstream is too low, and contains no recipient.
fn a_low_balance_at_the_upstream_is_shown(backend: Backend) {
    let upstream = Service::start(backend);
    let poor = ["account", "create", "--name", "poor", "--json"];
    upstream.server.cli_json(&poor);
    let token = upstream.create_token("poor", &[]).token;
    let config = carrier(&upstream.server.url(""), &token);
    let chain = Chain::with(upstream, config, backend);
    let receiver = Receiver::start();
    let id = chain.send(&receiver, &json!({}));
    let strained = wait_for_health(&chain.front, "strained");
    let note = strained["note"].as_str().expect("a reason");
    let start = "the upstream answers 403: The balance does not cover this request";
    assert!(note.starts_with(start), "{note}");

    let credit = ["account", "credit", "poor", "5"];
    let credited = chain.upstream.server.cli(&credit);
    assert!(credited.status.success(), "{credited:?}");
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
}

/// The upstream accepted the message, and its answer got lost. It recognizes the next attempt by its key, with the same
/// body or, when the remaining validity period has changed, with another one.
fn a_lost_answer_sends_nothing_twice(backend: Backend) {
    for expire_in in [259_200, 421] {
        let upstream = Service::with(backend, |builder| {
            builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        });
        let proxy = LossyProxy::start(upstream.server.addr());
        let config = carrier(&proxy.url(), &upstream.token);
        let chain = Chain::with(upstream, config, backend);
        let receiver = Receiver::start();
        // One on a kept connection, and one on the new connection that replaces it.
        proxy.lose_answers(2);
        let id = chain.send(&receiver, &json!({"expireIn": expire_in}));
        assert_eq!(
            wait_for_reported_states(&receiver, 1),
            [(id, 1, 0)],
            "{expire_in}"
        );
        assert_eq!(proxy.losses_left(), 0, "{expire_in}");
        assert_eq!(chain.upstream.stored(), 1, "{expire_in}");
        assert_eq!(chain.front.balance(), chain.upstream.balance());
        let next = chain.send(&receiver, &json!({}));
        assert!(wait_for_reported_states(&receiver, 2).contains(&(next, 1, 0)));
        assert_eq!(receiver.count(), 2, "{expire_in}");
    }
}

/// Reports are only accepted at addresses that the service has made.
fn a_forged_report_changes_nothing(backend: Backend) {
    let chain = Chain::start(backend);
    let receiver = Receiver::start();
    let scheduled = json!({"scheduled": crate::rest::service::tomorrow()});
    let id = chain.send(&receiver, &scheduled);
    let body = json!({"id": "1", "status": 1, "error": 0}).to_string();
    let forged = "0".repeat(32);
    let unknown = "No report is expected at this address.";
    let unproven = "Nothing proves that the carrier sent this.";
    for (carrier, id, status, why) in [
        ("up", id.as_str(), 404, unknown),
        ("simulator", id.as_str(), 403, unproven),
        ("nobody", id.as_str(), 403, unproven),
        ("up", "x", 403, unproven),
    ] {
        let path = format!("/carriers/{carrier}/reports/{id}/{forged}");
        let answer = chain.front.call_as("", "POST", &path, body.as_bytes());
        assert_eq!(
            (answer.status, message(&answer).as_str()),
            (status, why),
            "{path}"
        );
    }
    let status = chain.front.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["state"], "scheduled");
    let document = chain.front.raw("GET", "/openapi.json", &[], b"").text();
    assert!(
        !document.contains("/carriers/"),
        "it is not part of the API"
    );
}

crate::rest::on_both_backends!(
    a_wrong_token_is_shown_and_loses_no_message,
    a_low_balance_at_the_upstream_is_shown,
    a_lost_answer_sends_nothing_twice,
    a_forged_report_changes_nothing,
);
