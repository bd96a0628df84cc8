//! What a node says of a pooler that is not set up as it needs it.

use std::process::{Command, Output};

use testkit::{Backend, PooledDatabase, Server, TempDir};

use crate::rest::service::{binary, wait_for};

const STARTED: &str = "\"message\":\"started\"";
const NOT_KEPT: &str = "does not keep to the settings of a connection";

/// A node on this database, once it has said all that it says at its start.
fn node(url: &str) -> Server {
    let builder = Server::builder(binary(), Backend::Sqlite);
    let node = builder.env("SWITCHBOARD_DATABASE__URL", url).start();
    wait_for("the node has started", || {
        node.output().contains(STARTED).then_some(())
    });
    node
}

/// A command on this database.
fn command(url: &str, arguments: &[&str]) -> Output {
    let folder = TempDir::create("pooler").expect("a temporary folder");
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .env("SWITCHBOARD_DATABASE__URL", url)
        .current_dir(folder.path());
    command.output().expect("the program runs")
}

#[test]
fn a_node_says_when_its_settings_are_not_in_force() {
    let pooled = PooledDatabase::create_bare("");
    let said = node(&pooled.url()).output();
    assert!(said.contains(NOT_KEPT), "{said}");
    assert!(said.contains("lock_timeout is 0 and not 5s"), "{said}");

    let pooled = PooledDatabase::create();
    let said = node(&pooled.url()).output();
    assert!(!said.contains(NOT_KEPT), "{said}");
    let said = node(pooled.database().url()).output();
    assert!(!said.contains(NOT_KEPT), "{said}");
}

#[test]
fn poolers_that_a_node_cannot_work_with_are_refused() {
    for (name, settings, reason) in [
        (
            "names of statements are not translated",
            "max_prepared_statements = 0",
            "does not keep the prepared statements of its clients apart",
        ),
        (
            "settings are refused",
            "ignore_startup_parameters = extra_float_digits",
            "unsupported startup parameter in options: statement_timeout",
        ),
    ] {
        let pooled = PooledDatabase::create_bare(settings);
        let refused = command(&pooled.url(), &["serve", "--listen", "127.0.0.1:0"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn statements_that_other_sessions_prepared_do_not_matter_in_session_mode() {
    let pooled = PooledDatabase::create_bare(
        "pool_mode = session\nmax_prepared_statements = 0\ndefault_pool_size = 20",
    );
    pooled.set_for_user();
    for _ in 0..2 {
        let mut node = node(&pooled.url());
        assert!(!node.output().contains(NOT_KEPT), "{}", node.output());
        assert!(node.terminate().success());
    }
}

/// What a copy sets for itself would stay on a connection that others get next.
#[test]
fn a_copy_goes_to_the_server_itself() {
    let pooled = PooledDatabase::create();
    let mut node = node(&pooled.url());
    assert!(node.terminate().success());
    let folder = TempDir::create("backup").expect("a temporary folder");
    let file = folder.path().join("backup.db");
    let backup = ["backup", "--to", file.to_str().expect("a plain path")];
    let refused = command(&pooled.url(), &backup);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("a copy cannot go through a pooler"), "{said}");
    let made = command(pooled.database().url(), &backup);
    assert!(made.status.success(), "{made:?}");
}
