//! The commands for SMPP users.

use serde_json::{Value, json};

use super::Workspace;

#[test]
fn smpp_users_are_created_changed_listed_and_revoked() {
    let workspace = Workspace::new();
    let created = workspace.run(&["account", "create", "--name", "acme"]);
    created.assert_success();
    let create = |more: &[&str]| {
        let arguments = [&["smpp-user", "create", "--account", "acme"], more].concat();
        workspace.run(&arguments)
    };
    let first = create(&["--json"]).json();
    let generated = first["systemId"].as_str().expect("a text").to_owned();
    assert!(generated.len() <= 15, "{first}");
    assert_eq!(first["password"].as_str().map(str::len), Some(8), "{first}");

    let all = [
        "--system-id",
        "acme-tx",
        "--long-password",
        "--max-binds",
        "0",
        "--max-per-second",
        "50",
        "--allow-bind",
        "transmitter",
        "--allow-ip",
        "192.0.2.0/24",
        "--allow-sender",
        "Acme Inc.",
        "--allow-sender",
        "+37120000001",
        "--allow-country",
        "lv",
        "--receipt-date",
        "seconds",
        "--receipt-id",
        "hex",
        "--receipt-error",
        "zero",
    ];
    let text = create(&all).assert_success();
    let password = text.lines().last().expect("a line");
    let password = password.strip_prefix("password:  ").expect("the password");
    assert_eq!(password.len(), 16, "{text}");

    let listed = || workspace.run(&["smpp-user", "list", "--json"]).json();
    let list = listed();
    let mut second = list[1].clone();
    second["created"].take();
    let expected = json!({
        "systemId": "acme-tx", "account": "acme", "bound": 0, "maxBinds": 0, "maxPerSecond": 50, "binds": ["transmitter"],
        "ips": ["192.0.2.0/24"], "senders": ["Acme Inc.", "+37120000001"], "countries": ["LV"],
        "receipts": { "date": "seconds", "id": "hex", "error": "zero" }, "created": null,
    });
    assert_eq!(second, expected);
    assert_eq!(list[0]["systemId"], generated);
    assert_eq!(list[0]["maxBinds"], 10);
    assert!(!list.to_string().contains("password"), "{list}");
    let table = workspace.run(&["smpp-user", "list", "--account", "acme"]);
    assert_eq!(table.assert_success().lines().count(), 3);

    create(&["--system-id", "acme-tx"]).assert_refused(&["'acme-tx' is taken"]);
    create(&["--system-id", "longer than fifteen"]).assert_usage_error(&["1 to 15 ASCII"]);
    create(&["--allow-bind", "both"]).assert_usage_error(&["transmitter, receiver"]);
    create(&["--receipt-id", "octal"]).assert_usage_error(&["decimal or hex"]);
    let nobody = workspace.run(&["smpp-user", "create", "--account", "nobody"]);
    nobody.assert_refused(&["'nobody'", "account list"]);

    let set = |more: &[&str]| workspace.run(&[&["smpp-user", "set"], more].concat());
    let some = ["acme-tx", "--max-binds", "3", "--allow-ip", "any"];
    let more = ["--allow-sender", "Acme", "--receipt-id", "decimal"];
    let text = set(&[&some[..], &more].concat()).assert_success();
    assert_eq!(text, "SMPP user acme-tx is changed.\n");
    let mut changed = expected;
    changed["maxBinds"] = json!(3);
    changed["ips"] = json!([]);
    changed["senders"] = json!(["Acme"]);
    changed["receipts"]["id"] = json!("decimal");
    let mut second = listed()[1].clone();
    second["created"].take();
    assert_eq!(second, changed, "the other options stay");
    set(&["acme-tx", "--allow-ip", "any", "--allow-ip", "192.0.2.1"]).assert_refused(&["alone"]);
    set(&["acme-tx"]).assert_refused(&["give the options"]);
    set(&["nobody", "--max-binds", "3"]).assert_refused(&["no SMPP user 'nobody'"]);

    let revoke = || workspace.run(&["smpp-user", "revoke", "acme-tx"]);
    let text = revoke().assert_success();
    assert_eq!(text, "SMPP user acme-tx is revoked.\n");
    revoke().assert_refused(&["no SMPP user 'acme-tx'", "smpp-user list"]);
    assert_eq!(listed().as_array().map(Vec::len), Some(1));

    let log = workspace.run(&["audit", "--action", "smpp_user", "--json"]);
    let log = log.json();
    let actions: Vec<&Value> = log.as_array().expect("a list").iter().collect();
    let actions: Vec<&str> = actions
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    for action in ["smpp_user.create", "smpp_user.change", "smpp_user.revoke"] {
        assert!(actions.contains(&action), "{log}");
    }
    assert!(log.to_string().contains("binds any → 3"), "{log}");
    assert!(!log.to_string().contains(password), "{log}");
}
