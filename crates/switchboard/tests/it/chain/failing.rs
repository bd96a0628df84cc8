//! When the second service does not take what the first one brings.

use std::process::Command;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::Receiver;

use super::lossy::Lossy;
use super::{Chain, carrier, reported};
use crate::rest::service::{Service, message, wait_for};

/// The only carrier, as `carrier list` shows it.
fn shown(service: &Service) -> Value {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    list[0].clone()
}

fn wait_for_health(service: &Service, health: &str) -> Value {
    wait_for(&format!("the carrier's health {health}"), || {
        let shown = shown(service);
        (shown["health"] == health).then_some(shown)
    })
}

/// Nothing is lost to a wrong token: it shows, and what was accepted goes out once the right one is there.
fn a_wrong_token_shows_and_costs_no_message(backend: Backend) {
    let far = Service::start(backend);
    let wrong = far.create_token("main", &[]);
    let revoked = far.server.cli(&["token", "revoke", &wrong.id]);
    assert!(revoked.status.success(), "{revoked:?}");
    let config = carrier(&far.server.url(""), &wrong.token);
    let chain = Chain::with(far, config, backend);

    let down = wait_for_health(&chain.near, "down");
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
    let status = chain.near.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["state"], "queued");

    let folder = chain.near.server.data_dir();
    let file = folder.parent().expect("a folder").join("switchboard.toml");
    let config = carrier(&chain.far.server.url(""), &chain.far.token);
    std::fs::write(file, config).expect("a file");
    let pid = chain.near.server.pid().to_string();
    let asked = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(asked.expect("a kill command").success());
    assert_eq!(reported(&receiver, 1), [(id, 1, 0)]);
    let up = wait_for_health(&chain.near, "up");
    assert_eq!(up["note"], Value::Null);
}

/// An upstream that has run out of money is named as the reason, without anybody's number.
fn an_account_without_money_over_there_shows(backend: Backend) {
    let far = Service::start(backend);
    let poor = ["account", "create", "--name", "poor", "--json"];
    far.server.cli_json(&poor);
    let token = far.create_token("poor", &[]).token;
    let config = carrier(&far.server.url(""), &token);
    let chain = Chain::with(far, config, backend);
    let receiver = Receiver::start();
    let id = chain.send(&receiver, &json!({}));
    let strained = wait_for_health(&chain.near, "strained");
    let note = strained["note"].as_str().expect("a reason");
    let start = "the upstream answers 403: The balance does not cover this request";
    assert!(note.starts_with(start), "{note}");

    let credit = ["account", "credit", "poor", "5"];
    let credited = chain.far.server.cli(&credit);
    assert!(credited.status.success(), "{credited:?}");
    assert_eq!(reported(&receiver, 1), [(id, 1, 0)]);
}

/// The second service took the message, and its answer got lost. The next try is known there by its key: by the same
/// body, or, when the time that is left has changed, by another.
fn a_lost_answer_sends_nothing_twice(backend: Backend) {
    for expire_in in [259_200, 421] {
        let far = Service::with(backend, |builder| {
            builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        });
        let way = Lossy::start(far.server.addr());
        let config = carrier(&way.url(), &far.token);
        let chain = Chain::with(far, config, backend);
        let receiver = Receiver::start();
        // One on a connection that was kept, and one on the new connection that follows it at once.
        way.lose_answers(2);
        let id = chain.send(&receiver, &json!({"expireIn": expire_in}));
        assert_eq!(reported(&receiver, 1), [(id, 1, 0)], "{expire_in}");
        assert_eq!(way.left(), 0, "{expire_in}");
        assert_eq!(chain.far.stored(), 1, "{expire_in}");
        assert_eq!(chain.near.balance(), chain.far.balance());
        let next = chain.send(&receiver, &json!({}));
        assert!(reported(&receiver, 2).contains(&(next, 1, 0)));
        assert_eq!(receiver.count(), 2, "{expire_in}");
    }
}

/// Only addresses that the service has made are doors.
fn a_forged_report_changes_nothing(backend: Backend) {
    let chain = Chain::start(backend);
    let receiver = Receiver::start();
    let scheduled = json!({"scheduled": crate::rest::service::tomorrow()});
    let id = chain.send(&receiver, &scheduled);
    let body = json!({"id": "1", "status": 1, "error": 0}).to_string();
    let forged = "0".repeat(32);
    for path in [
        format!("/carriers/up/reports/{id}/{forged}"),
        format!("/carriers/simulator/reports/{id}/{forged}"),
        format!("/carriers/up/reports/x/{forged}"),
    ] {
        let answer = chain.near.call_as("", "POST", &path, body.as_bytes());
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(message(&answer), "No report is expected at this address.");
    }
    let status = chain.near.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["state"], "scheduled");
    let document = chain.near.raw("GET", "/openapi.json", &[], b"").text();
    assert!(!document.contains("/carriers/"), "it is no part of the API");
}

crate::rest::on_both_backends!(
    a_wrong_token_shows_and_costs_no_message,
    an_account_without_money_over_there_shows,
    a_lost_answer_sends_nothing_twice,
    a_forged_report_changes_nothing,
);
