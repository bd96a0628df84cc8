//! A client that nobody here wrote connects by OAuth: from the 401 to a tool, with a person who approves less than all.

use serde_json::{Value, json};

use super::clients::{python, run};
use super::start;
use crate::rest::service::Service;

/// Where a new member of the first account sets a password.
fn invitation(service: &Service) -> String {
    let invited =
        service
            .server
            .cli_json(&["invite", "create", "--email", "ann@example.com", "--json"]);
    let link = invited["link"].as_str().expect("a link");
    let path = link.find("/dashboard").map(|start| &link[start..]);
    service.server.url(path.expect("a page of the dashboard"))
}

fn names(tokens: &Value) -> Vec<(&str, &Value)> {
    let tokens = tokens.as_array().expect("tokens");
    let of_clients = tokens.iter().filter_map(|token| {
        let name = token["name"].as_str()?;
        name.starts_with("oauth:")
            .then_some((name, &token["permissions"]))
    });
    of_clients.collect()
}

#[test]
fn the_sdk_for_python_connects_by_oauth_and_may_do_what_was_approved() {
    let service = start();
    let order = json!({
        "url": service.server.url("/mcp"),
        "invitation": invitation(&service),
        "password": "a horse that is correct",
        "approve": ["sms:rates"],
        "calls": [
            ["get_sms_rates", { "country": "LV" }],
            ["send_sms", { "to": "+37120000001", "from": "Acme", "message": "Hi" }],
        ],
    });
    let written = run(python("connect.py"), &order);
    assert_eq!(written["client"], "Python SDK", "{written}");
    assert_eq!(written["scope"], "sms:rates", "{written}");
    let page = written["shown"].as_str().expect("a page");
    for told in ["Python SDK", "127.0.0.1:33418", "sms:send", "costs money"] {
        assert!(page.contains(told), "{told}: {page}");
    }

    let results = written["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "rates, and nothing else: {written}");
    assert!(results[0]["structuredContent"]["rates"].is_array());
    let again = written["askedAgain"].as_str().unwrap_or_default();
    assert!(again.contains("sms:send"), "it asks for more: {written}");

    let listed = service.server.cli_json(&["token", "list", "--json"]);
    let permissions = json!(["sms:rates"]);
    let expected = ["oauth:access:Python SDK", "oauth:refresh:Python SDK"];
    assert_eq!(names(&listed), expected.map(|name| (name, &permissions)));
}
