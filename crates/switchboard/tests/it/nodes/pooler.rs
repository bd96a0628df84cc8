//! What a node says about a pooler with the wrong settings.

use std::process::{Command, Output};

use testkit::{Backend, PooledDatabase, Server, temp_dir};

use crate::rest::service::{binary, wait_for};

const STARTED: &str = "\"message\":\"started\"";
const DROPS_SETTINGS: &str = "does not keep to the settings of a connection";

/// Starts a node on this database and waits for the end of its start-up messages.
fn node(url: &str) -> Server {
    let builder = Server::builder(binary(), Backend::Sqlite);
    let node = builder.env("SWITCHBOARD_DATABASE__URL", url).start();
    wait_for("the node has started", || {
        node.output().contains(STARTED).then_some(())
    });
    node
}

/// Runs a command on this database.
fn command(url: &str, arguments: &[&str]) -> Output {
    let folder = temp_dir("pooler").expect("a temporary folder");
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .env("SWITCHBOARD_DATABASE__URL", url)
        .current_dir(folder.path());
    command.output().expect("the program runs")
}

#[test]
fn a_node_warns_when_a_pooler_drops_its_settings() {
    let pooled = PooledDatabase::create_without_user_settings("");
    let output = node(&pooled.url()).output();
    assert!(output.contains(DROPS_SETTINGS), "{output}");
    assert!(output.contains("lock_timeout is 0 and not 5s"), "{output}");

    let pooled = PooledDatabase::create();
    let output = node(&pooled.url()).output();
    assert!(!output.contains(DROPS_SETTINGS), "{output}");
    let output = node(pooled.database().url()).output();
    assert!(!output.contains(DROPS_SETTINGS), "{output}");
}

#[test]
fn poolers_that_a_node_cannot_work_with_are_refused() {
    for (name, settings, reason) in [
        (
            "names of prepared statements are not translated",
            "max_prepared_statements = 0",
            "does not keep the prepared statements of its clients apart",
        ),
        (
            "settings are refused",
            "ignore_startup_parameters = extra_float_digits",
            "unsupported startup parameter in options: statement_timeout",
        ),
    ] {
        let pooled = PooledDatabase::create_without_user_settings(settings);
        let refused = command(&pooled.url(), &["serve", "--listen", "127.0.0.1:0"]);
        let output = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{name}: {output}");
        assert!(output.contains(reason), "{name}: {output}");
    }
}

#[test]
fn statements_that_other_sessions_prepared_do_not_matter_in_session_mode() {
    let pooled = PooledDatabase::create_without_user_settings(
        "pool_mode = session\nmax_prepared_statements = 0\ndefault_pool_size = 20",
    );
    pooled.apply_user_settings();
    for _ in 0..2 {
        let mut node = node(&pooled.url());
        assert!(!node.output().contains(DROPS_SETTINGS), "{}", node.output());
        assert!(node.terminate().success());
    }
}

/// The settings of a copy would stay on the connection and affect its next user.
#[test]
fn a_copy_through_a_pooler_is_refused() {
    let pooled = PooledDatabase::create();
    let mut node = node(&pooled.url());
    assert!(node.terminate().success());
    let folder = temp_dir("backup").expect("a temporary folder");
    let file = folder.path().join("backup.db");
    let backup = ["backup", "--to", file.to_str().expect("a plain path")];
    let refused = command(&pooled.url(), &backup);
    let output = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{output}");
    assert!(
        output.contains("a copy cannot go through a pooler"),
        "{output}"
    );
    let made = command(pooled.database().url(), &backup);
    assert!(made.status.success(), "{made:?}");
}
