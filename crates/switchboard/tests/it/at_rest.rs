//! Data at rest: file permissions, encryption and keys.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::{Backend, Server, temp_dir};

use crate::rest::service::{Service, binary, sms_with, wait_for};

const DATABASE: &str = "SWITCHBOARD_DATABASE__URL";
const KEY: &str = "SWITCHBOARD_SECURITY__KEY";
const NEW_KEY: &str = "bmV3IGtleSBuZXcga2V5IG5ldyBrZXkgbmV3IGtleSE=";

fn mode(path: &Path) -> u32 {
    let found = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    found.permissions().mode() & 0o777
}

fn printed(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn only_the_owner_can_read_the_data_folder_and_its_files() {
    let mut service = Service::with(Backend::Sqlite, testkit::ServerBuilder::without_key);
    let data = service.server.data_dir();
    let files = ["service.key", "switchboard.db", "switchboard.db-wal"];
    let check = |case: &str| {
        assert_eq!(mode(&data), 0o700, "{case}");
        for file in files {
            assert_eq!(mode(&data.join(file)), 0o600, "{case}: {file}");
        }
    };
    check("new");
    assert!(service.server.output().contains("service.key"));
    fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("set");
    for file in &files[1..] {
        fs::set_permissions(data.join(file), Permissions::from_mode(0o644)).expect("set");
    }
    service.server.restart();
    check("made by an older version");
}

/// Nodes without a configured key use the one in the database, even if their data folders contain another.
#[test]
fn nodes_without_a_key_share_the_one_in_the_database() {
    let first = Service::with(Backend::Postgres, testkit::ServerBuilder::without_key);
    assert!(first.server.output().contains("security.key is not set"));
    assert!(!first.server.data_dir().join("service.key").exists());
    let url = first.server.database_url().expect("a server").to_owned();
    let another = || Server::builder(binary(), Backend::Sqlite).env(DATABASE, &url);
    let second = another().without_key().start();
    // This node has a key in its folder that the database does not use.
    let third = another().start();
    let rotate = ["account", "rotate-secret", "main", "--json"];
    printed(&second.cli(&rotate));
    printed(&third.cli(&rotate));
    let refused = refused(&second.cli(&["key", "rotate"]));
    assert!(refused.contains("set it to a new key"), "{refused}");
}

#[test]
fn a_configured_key_replaces_the_one_in_the_database() {
    let mut service = Service::with(Backend::Postgres, testkit::ServerBuilder::without_key);
    let url = service.server.database_url().expect("a server").to_owned();
    let another = || {
        Server::builder(binary(), Backend::Sqlite)
            .env(DATABASE, &url)
            .without_key()
    };
    service.server.set_env(KEY, Some(NEW_KEY));
    service.server.restart();
    let rotate = |service: &Service| {
        let rotated = printed(&service.server.cli(&["key", "rotate", "--json"]));
        rotated["encrypted"].as_u64().expect("a number")
    };
    assert_eq!(rotate(&service), 1, "one account");
    assert_eq!(rotate(&service), 0);
    // The database no longer contains a key.
    let error = format!("{:?}", another().try_start().expect_err("no key"));
    for part in ["security.key", "docs/SECURITY.md"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    another().env(KEY, NEW_KEY).start();
}

/// A backup contains encrypted values; nothing decrypts them without the key.
#[test]
fn a_backup_needs_the_key() {
    let service = Service::start(Backend::Sqlite);
    let folder = temp_dir("at-rest").expect("a folder");
    let file = folder.path().join("backup.db").display().to_string();
    let made = printed(&service.server.cli(&["backup", "--to", &file, "--json"]));
    let key = format!("{file}.key");
    assert_eq!(made["keyFile"], json!(key));
    let key_elsewhere = folder.path().join("apart");
    fs::rename(&key, &key_elsewhere).expect("moved away");
    let backup = fs::read(&file).expect("a backup");
    let account = ["account", "create", "--name", "x", "--json"];
    let secret = printed(&service.server.cli(&account))["callbackSecret"].clone();
    assert!(secret.as_str().expect("a secret").starts_with("whsec_"));
    let contains = |text: &[u8]| backup.windows(text.len()).any(|part| part == text);
    assert!(contains(b"encrypted:") && !contains(b"whsec_"));

    let data = folder.path().join("data");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(binary());
        command.args(arguments).arg("--data-dir").arg(&data);
        command
            .current_dir(folder.path())
            .output()
            .expect("it runs")
    };
    printed(&run(&["restore", "--from", &file, "--json"]));
    let error = refused(&run(&["account", "list", "--json"]));
    assert!(error.contains("security.key"), "{error}");
    assert!(
        !data.join("service.key").exists(),
        "a useless key was created"
    );
    fs::remove_dir_all(&data).expect("removed");
    fs::rename(&key_elsewhere, &key).expect("moved back");
    printed(&run(&["restore", "--from", &file, "--json"]));
    let accounts = printed(&run(&["account", "list", "--json"]));
    assert_eq!(accounts[0]["name"], json!("main"));
}

/// Configures a new key beside the old one, rotates, and removes the old one.
fn the_key_is_rotated_by_command(backend: Backend) {
    let mut service = Service::start(backend);
    let rotate = |service: &Service| {
        let rotated = printed(&service.server.cli(&["key", "rotate", "--json"]));
        rotated["encrypted"].as_u64().expect("a number")
    };
    if backend == Backend::Sqlite {
        assert_eq!(rotate(&service), 0, "there is no newer key");
    }
    service.server.set_env(KEY, Some(NEW_KEY));
    service.server.restart();
    assert_eq!(rotate(&service), 1, "one account");
    assert_eq!(rotate(&service), 0);
    fs::remove_file(service.server.data_dir().join("service.key")).expect("removed");
    service.server.restart();
    assert_eq!(service.get("/token").status, 200);
    service.server.set_env(KEY, None);
    let error = refused(&service.server.cli(&["account", "list"]));
    assert!(error.contains("security.key"), "{error}");
    service.server.set_env(KEY, Some(NEW_KEY));
}

/// Both secrets sign during the overlap, so a receiver can change its secret at any time.
fn a_replaced_webhook_secret_still_signs_during_the_overlap(backend: Backend) {
    let service = Service::start(backend);
    let receiver = Receiver::start();
    let rotate = ["account", "rotate-secret", "main", "--json"];
    let rotated = printed(&service.server.cli(&rotate));
    assert_eq!(rotated["overlapHours"], json!(24));
    let secret = rotated["callbackSecret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"));
    service.accept(&sms_with(&json!({ "dlrUrl": receiver.url("/dlr") })));
    let report = wait_for("the report", || receiver.received().into_iter().next());
    let header = report.header("webhook-signature").expect("signed");
    let signatures: Vec<&str> = header.split(' ').collect();
    assert_eq!(signatures.len(), 2, "{header}");
    assert!(signatures.iter().all(|one| one.starts_with("v1,")));
    let unknown = service.server.cli(&["account", "rotate-secret", "nobody"]);
    assert!(refused(&unknown).contains("nobody"));
    let log = service.server.cli_json(&["audit", "--json"]).to_string();
    assert!(log.contains("secret.rotate") && !log.contains("whsec_"));
}

crate::rest::on_both_backends!(
    the_key_is_rotated_by_command,
    a_replaced_webhook_secret_still_signs_during_the_overlap,
);
