//! The pages of an account, over plain HTTP: what they do, refuse and never show.

mod numbers;
mod opt_outs;
mod records;
mod refusing;
mod settings;
mod tokens;
mod verify;

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};

use super::inbox;
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::service::{Service, sms_with, tomorrow, wait_for};

/// The token of every form after sign-in.
fn form_token(browser: &mut Browser<'_>) -> String {
    browser.get("/dashboard/senders/number");
    browser.hidden("form_token").expect("a form")
}

/// Sends a form of the dashboard.
fn send<'a>(
    browser: &mut Browser<'_>,
    path: &str,
    fields: &[(&'a str, &'a str)],
) -> testkit::http::Response {
    let token = form_token(browser);
    let mut all = vec![("form_token", token.as_str())];
    all.extend_from_slice(fields);
    browser.post(path, &all)
}

/// A browser in which an admin of the first account is signed in.
fn admin(service: &Service) -> Browser<'_> {
    let more = ["--role", "admin", "--account", "main"];
    joined(service, "admin@example.com", &more)
}

/// A message of the first account that waits for tomorrow.
fn schedule(service: &Service, text: &str) -> String {
    let body = sms_with(&json!({ "scheduled": tomorrow(), "message": text }));
    service.accept(&body).remove(0)
}

/// A callback of the first account to a receiver that does not accept it.
fn failed_callback(service: &Service, url: &str) -> Value {
    service.accept(&sms_with(&json!({ "dlrUrl": url })));
    wait_for("a failed attempt", || {
        let list = service.server.cli_json(&["callbacks", "list", "--json"]);
        let tried = |one: &&Value| one["tries"].as_u64() > Some(0);
        list.as_array()
            .and_then(|list| list.iter().find(tried).cloned())
    })
}

/// Creates an item for each page of the first account. Returns the placeholders for their IDs, and the IDs.
pub(super) fn sample_items(service: &Service) -> Vec<(&'static str, String)> {
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(200, "no"))
        .start();
    let callback = failed_callback(service, &receiver.url("/dlr"));
    let post = |path: &str, body: Value| {
        let body = body.to_string();
        service.call_as(&service.token, "POST", path, body.as_bytes())
    };
    let sender = json!({ "name": "+37120000007", "type": "MSISDN" });
    let lookup = json!({ "msisdn": "+447700900800", "callBackUrl": receiver.url("/hlr") });
    // A conversation with a text and a reply, and a text that nobody owns.
    let (own, handset) = ("+37120000009", "+37120000001");
    inbox::add_number(service, own, "main");
    let inbound = inbox::text(service, handset, own, "Is it open today?");
    service.accept(&sms_with(
        &json!({ "from": own, "to": handset, "message": "Until six" }),
    ));
    vec![
        ("{inbound}", inbound),
        (
            "{unclaimed}",
            inbox::text(service, handset, "4321", "Anybody?"),
        ),
        ("{callback}", callback["id"].to_string()),
        ("{scheduled}", schedule(service, "Hello, tomorrow")),
        ("{sender}", post("/senderId", sender).text()),
        ("{lookup}", post("/hlr", lookup).json()[0].to_string()),
        (
            "{verification}",
            post("/verify", json!({ "to": "+37120000008" })).json()["id"].to_string(),
        ),
    ]
}
