//! The command line next to a running service, and the configuration.

use std::process::Output;

use serde_json::{Value, json};
use testkit::{Backend, Server};

use super::service::{Service, binary};

fn fails(server: &Server, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = server.cli(arguments);
    assert!(!status.success(), "{arguments:?} must fail");
    String::from_utf8(stderr).expect("text")
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

/// Removes a value that a test cannot predict, and returns it.
fn remove(value: &mut Value, key: &str) -> Value {
    value
        .as_object_mut()
        .expect("an object")
        .remove(key)
        .unwrap_or_else(|| panic!("no {key}"))
}

/// Create, list, suspend, resume.
fn accounts(backend: Backend) {
    let service = Service::start(backend);
    let server = &service.server;
    let mut created = server.cli_json(&[
        "account",
        "create",
        "--name",
        "acme",
        "--balance",
        "12.5",
        "--json",
    ]);
    let secret = remove(&mut created, "callbackSecret");
    assert!(
        secret
            .as_str()
            .is_some_and(|secret| secret.starts_with("whsec_") && secret.len() == 38),
        "{secret}"
    );
    let at: jiff::Timestamp = remove(&mut created, "created")
        .as_str()
        .expect("a time")
        .parse()
        .expect("RFC 3339");
    assert!(at <= super::service::in_seconds(1), "{at}");
    let id = remove(&mut created, "id");
    assert!(id.is_u64(), "{id}");
    assert_eq!(
        created,
        json!({"name": "acme", "balance": "12.50", "suspended": false})
    );

    let suspended = |name: &str| {
        let list = server.cli_json(&["account", "list", "--json"]);
        let list = list.as_array().expect("a list");
        assert_eq!(
            keys(&list[0]),
            [
                "adminsConsentOnly",
                "approvedSendersOnly",
                "balance",
                "codesPerDay",
                "countries",
                "created",
                "creditLimit",
                "dailyCap",
                "id",
                "lowBalance",
                "name",
                "perRecipientHour",
                "portedNumbers",
                "requestsPerSecond",
                "suspended",
                "textsFor",
                "verifyPrice"
            ]
        );
        let names: Vec<&Value> = list.iter().map(|account| &account["name"]).collect();
        assert_eq!(names, ["main", "acme"]);
        list.iter()
            .find(|account| account["name"] == name)
            .expect("listed")["suspended"]
            .clone()
    };
    assert_eq!(suspended("acme"), false);
    assert!(server.cli(&["account", "suspend", "acme"]).status.success());
    assert_eq!(
        (suspended("acme"), suspended("main")),
        (json!(true), json!(false))
    );
    assert!(server.cli(&["account", "resume", "acme"]).status.success());
    assert_eq!(suspended("acme"), false);

    let text = String::from_utf8(server.cli(&["account", "list"]).stdout).expect("text");
    assert!(
        text.contains("acme") && text.contains("12.50") && text.contains("active"),
        "{text}"
    );
}

/// Create, list, revoke.
fn tokens(backend: Backend) {
    let service = Service::start(backend);
    let server = &service.server;
    server.cli_json(&["account", "create", "--name", "acme", "--json"]);
    let flags = [
        "--permission",
        "sms:send",
        "--permission",
        "sms:read",
        "--allow-ip",
        "192.0.2.9/24",
        "--name",
        "till",
    ];
    let arguments = [
        &[
            "token",
            "create",
            "--account",
            "acme",
            "--expires",
            "12h",
            "--json",
        ][..],
        &flags,
    ]
    .concat();
    let created = server.cli_json(&arguments);
    assert_eq!(keys(&created), ["id", "token"]);
    let secret = created["token"].as_str().expect("a string");
    assert!(secret.starts_with("sb_"), "it can be recognised");

    let list = server.cli_json(&["token", "list", "--account", "acme", "--json"]);
    let mut listed = list.as_array().expect("a list").clone();
    assert_eq!(listed.len(), 1);
    assert!(!list.to_string().contains(secret), "a token is shown once");
    for time in ["created", "expires"] {
        remove(&mut listed[0], time)
            .as_str()
            .expect("a time")
            .parse::<jiff::Timestamp>()
            .expect("RFC 3339");
    }
    let expected = json!({
        "id": created["id"], "account": "acme", "name": "till", "permissions": ["sms:send", "sms:read"],
        "ips": ["192.0.2.0/24"], "dailyCap": null,
    });
    assert_eq!(listed[0], expected);
    let count = |arguments: &[&str]| server.cli_json(arguments).as_array().expect("a list").len();
    assert_eq!(count(&["token", "list", "--json"]), 2, "of all accounts");
    assert!(
        server
            .cli(&["token", "revoke", &created["id"].to_string()])
            .status
            .success()
    );
    assert_eq!(count(&["token", "list", "--account", "acme", "--json"]), 0);

    let text = String::from_utf8(server.cli(&["token", "create", "--account", "acme"]).stdout)
        .expect("text");
    assert!(
        text.contains("sb_") && text.contains("shown only once"),
        "{text}"
    );
}

on_both_backends!(accounts, tokens);

#[test]
fn a_failing_command_says_why_and_what_to_do() {
    let service = Service::start(Backend::Sqlite);
    let create = "token create --account main";
    let cases = [
        (
            "token create --account nobody",
            ["'nobody'", "account list"],
        ),
        ("token list --account nobody", ["'nobody'", "account list"]),
        ("account suspend nobody", ["'nobody'", "account list"]),
        ("account resume nobody", ["'nobody'", "account list"]),
        ("account create --name main", ["'main'", "exists already"]),
        ("account create --name=", ["''", "1 to 64 characters"]),
        (
            "account create --name x --balance much",
            ["'much'", "100.00"],
        ),
        ("token revoke 999", ["999", "token list"]),
        ("token revoke x", ["'x'", "whole number"]),
        (&format!("{create} --permission sms"), ["'sms'", "sms:send"]),
        (
            &format!("{create} --allow-ip here"),
            ["'here'", "192.0.2.0/24"],
        ),
        (&format!("{create} --expires soon"), ["'soon'", "30d"]),
        ("acount list", ["acount", "account"]),
    ];
    for (command, fragments) in cases {
        let arguments: Vec<&str> = command.split(' ').collect();
        let error = fails(&service.server, &arguments);
        for fragment in fragments {
            assert!(
                error.contains(fragment),
                "{command}: no {fragment:?} in: {error}"
            );
        }
        assert!(
            !error.contains("SQL") && !error.contains("panicked"),
            "{command}: {error}"
        );
    }
}

#[test]
fn a_configuration_is_checked_before_anything_starts() {
    let service = Service::start(Backend::Sqlite);
    let shown = service.server.cli(&["config", "check"]);
    assert!(shown.status.success());
    let shown = String::from_utf8(shown.stdout).expect("text");
    for line in ["header_prefix = \"X-Service\"", "body_bytes = 2097152"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let cases = [
        ("no TOML", "listen = ", "not valid TOML"),
        (
            "an unknown section",
            "[sever]\nlisten = '127.0.0.1:1'\n",
            "sever",
        ),
        ("an unknown key", "[server]\nport = 1\n", "port"),
        (
            "a wrong type",
            "[limits]\nin_flight = 'many'\n",
            "in_flight",
        ),
        ("half of TLS", "[tls]\ncert = 'a.pem'\n", "tls.key"),
        (
            "nothing allowed",
            "[limits]\nconnections = 0\n",
            "limits.connections is 0",
        ),
        (
            "an unknown database",
            "[database]\nurl = 'mysql://db'\n",
            "database.url",
        ),
        (
            "not a network",
            "[auth]\ntrusted_proxies = ['proxy']\n",
            "trusted_proxies",
        ),
    ];
    for (case, toml, fragment) in cases {
        let folder = testkit::temp_dir("config").expect("a temporary folder");
        let file = folder.path().join("bad.toml");
        std::fs::write(&file, toml).expect("written");
        for command in [
            &["config", "check"][..],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            let output = std::process::Command::new(binary())
                .args(command)
                .arg("--config")
                .arg(&file)
                .current_dir(folder.path())
                .output()
                .expect("it runs");
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{case}: {command:?}: {error}"
            );
            assert!(error.contains(fragment), "{case}: {command:?}: {error}");
        }
    }
}

#[test]
fn a_port_in_use_says_what_to_do() {
    let service = Service::start(Backend::Sqlite);
    let address = service.server.addr().to_string();
    let folder = testkit::temp_dir("second").expect("a temporary folder");
    let output = std::process::Command::new(binary())
        .args(["serve", "--listen", &address, "--data-dir"])
        .arg(folder.path().join("data"))
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(&address) && error.contains("--listen 127.0.0.1:PORT"),
        "{error}"
    );
    service.check_health();
}

#[test]
fn a_second_service_on_the_same_file_says_what_to_do() {
    let service = Service::start(Backend::Sqlite);
    let error = fails(&service.server, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        error.contains("switchboard.db") && error.contains("--data-dir"),
        "{error}"
    );
    service.check_health();
}
