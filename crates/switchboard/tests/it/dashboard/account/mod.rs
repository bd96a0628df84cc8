//! The pages of an account, over plain HTTP: what they do, what they refuse, and what they never show.

mod numbers;
mod refusing;
mod settings;

use serde_json::Value;
use serde_json::json;

use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::service::{Service, sms_with, tomorrow, wait_for};

/// The token of every form behind the sign-in.
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

/// Somebody who runs the first account.
fn admin<'a>(service: &'a Service) -> Browser<'a> {
    let more = ["--role", "admin", "--account", "main"];
    joined(service, "admin@example.com", &more)
}

/// A message of the first account that waits for tomorrow.
fn schedule(service: &Service, text: &str) -> String {
    let body = sms_with(&json!({ "scheduled": tomorrow(), "message": text }));
    service.accept(&body).remove(0)
}

/// A callback of the first account to a receiver that does not take it.
fn failed_callback(service: &Service, url: &str) -> Value {
    service.accept(&sms_with(&json!({ "dlrUrl": url })));
    wait_for("a try that failed", || {
        let list = service.server.cli_json(&["callbacks", "list", "--json"]);
        let tried = |one: &&Value| one["tries"].as_u64() > Some(0);
        list.as_array()
            .and_then(|list| list.iter().find(tried).cloned())
    })
}
