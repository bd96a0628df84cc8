//! The reviewer's commands.

use serde_json::{Value, json};
use testkit::Backend;

use super::{Workspace, run};
use crate::rest::on_both_backends;
use crate::rest::service::Service;

fn register(service: &Service, name: &str) -> String {
    let body = json!({
        "name": name, "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "two\nlines",
    });
    let body = body.to_string();
    let response = service.call_as(&service.token, "POST", "/senderId", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    response.text()
}

/// Each decision is made once, and the lists show it.
fn senders_are_listed_and_reviewed(backend: Backend) {
    let service = Service::start(backend);
    let (alpha, beta) = (register(&service, "Alpha"), register(&service, "Beta"));
    let text = run(&service, &["sender", "approve", &alpha]).assert_success();
    let expected = format!("Sender {alpha}, 'Alpha' of account 'main', is approved.\n");
    assert_eq!(text, expected);
    let reject = ["sender", "reject", &beta, "--reason", "not yours", "--json"];
    let mut rejected = run(&service, &reject).json();
    let created = rejected["created"].take();
    created
        .as_str()
        .expect("a text")
        .parse::<jiff::Timestamp>()
        .expect("RFC 3339");
    let id: u64 = beta.parse().expect("a number");
    let expected = json!({
        "id": id, "account": "main", "name": "Beta", "type": "AlphaNumeric", "status": "rejected", "reason": "not yours",
        "category": "Brand", "categoryDescription": "two\nlines", "notificationUrl": null, "created": null,
    });
    assert_eq!(rejected, expected);

    let listed = |more: &[&str]| -> Vec<Value> {
        let list = run(&service, &[&["sender", "list", "--json"], more].concat()).json();
        let list = list.as_array().expect("a list");
        list.iter().map(|one| one["name"].clone()).collect()
    };
    assert_eq!(listed(&[]), ["Alpha", "Beta"]);
    assert_eq!(listed(&["--state", "approved"]), ["Alpha"]);
    assert_eq!(
        listed(&["--account", "main", "--state", "rejected"]),
        ["Beta"]
    );
    let table = run(&service, &["sender", "list"]).assert_success();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "one line each: {table}");
    assert!(lines[1].ends_with("Brand: two lines"), "{table}");
    assert!(lines[2].ends_with("Brand: not yours"), "{table}");

    for (arguments, fragments) in [
        (
            ["approve", &alpha],
            ["stays as it is", "approved cannot be approved"],
        ),
        (
            ["reject", &alpha],
            ["stays as it is", "approved cannot be rejected"],
        ),
        (
            ["revoke", &beta],
            ["stays as it is", "rejected cannot be revoked"],
        ),
        (["approve", "999"], ["no sender 999", "sender list"]),
    ] {
        let arguments = [&["sender"], &arguments[..]].concat();
        run(&service, &arguments).assert_refused(&fragments);
    }
    run(&service, &["sender", "list", "--account", "nobody"]).assert_refused(&["'nobody'"]);
    run(&service, &["sender", "revoke", &alpha]).assert_success();
    assert_eq!(listed(&["--state", "revoked"]), ["Alpha"]);
}

on_both_backends!(senders_are_listed_and_reviewed);

#[test]
fn a_wrong_call_says_what_is_expected() {
    let workspace = Workspace::new();
    let long = "x".repeat(201);
    for (arguments, fragments) in [
        (
            &["list", "--state", "fine"][..],
            &["'fine'", "awaiting_confirmation"][..],
        ),
        (&["approve", "x"], &["whole number"]),
        (&["approve"], &["<ID>"]),
        (
            &["reject", "1", "--reason", &long],
            &["at most 200 characters"],
        ),
        (&["reject", "1", "--reason", "a\nb"], &["one line"]),
    ] {
        workspace
            .run(&[&["sender"], arguments].concat())
            .assert_usage_error(fragments);
    }
}
