//! Databases are migrated, backed up and restored with the real service: nothing is lost or sent twice.

mod backups;
mod migrations;
mod refusals;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testkit::{Backend, Server};

use crate::rest::service::{Service, binary};

/// The variable that names the database of a service.
const DATABASE: &str = "SWITCHBOARD_DATABASE__URL";

/// The URL of the database of a service.
fn url(service: &Service) -> String {
    match service.server.database_url() {
        Some(url) => url.to_owned(),
        None => file_url(&service.server.data_dir().join("switchboard.db")),
    }
}

fn file_url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Starts a service on an existing database.
fn start_on(url: &str, token: &str) -> Service {
    let server = Server::builder(binary(), Backend::Sqlite)
        .env(DATABASE, url)
        .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        .start();
    Service {
        server,
        token: token.to_owned(),
    }
}

/// Returns why a service does not start on a database.
fn refusal(url: &str) -> String {
    let started = Server::builder(binary(), Backend::Sqlite)
        .env(DATABASE, url)
        .try_start();
    let error = started.expect_err("it must not start");
    format!("{error:?}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON output of a command that must succeed.
fn json(output: &Output) -> Value {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Runs `migrate`, which must succeed.
fn migrate(service: &Service, to: &str) -> Value {
    let from = url(service);
    let arguments = ["migrate", "--from", &from, "--to", to, "--json"];
    json(&service.server.cli(&arguments))
}
