//! A client that nobody here wrote connects by OAuth: from the 401 to a tool, with a person who approves less than all.

use std::process::Command;

use serde_json::{Value, json};

use super::clients::{node, python, run, script};
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

/// Has a client connect, with a person who lets it see rates and no more.
fn check_connecting(name: &str, command: Command, mut order: Value) {
    let service = start();
    order["url"] = json!(service.server.url("/mcp"));
    order["invitation"] = json!(invitation(&service));
    order["password"] = json!("a horse that is correct");
    order["approve"] = json!(["sms:rates"]);
    order["calls"] = json!([
        ["get_sms_rates", { "country": "LV" }],
        ["send_sms", { "to": "+37120000001", "from": "Acme", "message": "Hi" }],
    ]);
    let written = run(command, &order);
    assert_eq!(written["client"], name, "{written}");
    assert_eq!(written["scope"], "sms:rates", "{written}");
    let page = written["shown"].as_str().expect("a page");
    for told in [name, "127.0.0.1:33418", "sms:send", "costs money"] {
        assert!(page.contains(told), "{told}: {page}");
    }

    let results = written["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "rates, and nothing else: {written}");
    assert!(results[0]["structuredContent"]["rates"].is_array());
    let again = written["askedAgain"].as_str().unwrap_or_default();
    let asks_for_more = again.contains("sms:send");
    // The older SDK only renews its token, and says what it was told then.
    let told = written["refusals"][0].as_str().unwrap_or_default();
    assert!(asks_for_more || told.contains("403"), "{written}");

    let listed = service.server.cli_json(&["token", "list", "--json"]);
    let permissions = json!(["sms:rates"]);
    let expected = ["access", "refresh"].map(|kind| format!("oauth:{kind}:{name}"));
    let expected = expected.iter().map(|name| (name.as_str(), &permissions));
    assert_eq!(names(&listed), expected.collect::<Vec<_>>());
}

#[test]
fn the_sdk_for_python_connects_by_oauth_and_may_do_what_was_approved() {
    check_connecting("Python SDK", python("connect.py"), json!({}));
}

#[test]
fn the_sdks_for_typescript_connect_by_oauth_and_may_do_what_was_approved() {
    for sdk in [1, 2] {
        let mut command = node();
        command.arg(script("connect.mjs"));
        check_connecting("TypeScript SDK", command, json!({ "sdk": sdk }));
    }
}
