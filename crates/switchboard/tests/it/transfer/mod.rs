//! Databases that are moved, backed up and restored, beside the real service: nothing lost, nothing sent twice.

mod backups;
mod moving;
mod refusing;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testkit::{Backend, Server};

use crate::rest::service::{Service, binary};

/// The variable that names the database of a service.
const DATABASE: &str = "SWITCHBOARD_DATABASE__URL";

/// The database of a service, as a URL.
fn url(service: &Service) -> String {
    match service.server.database_url() {
        Some(url) => url.to_owned(),
        None => file_url(&service.server.data_dir().join("switchboard.db")),
    }
}

fn file_url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// A service on a database that is there already.
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

/// Why a service does not start on a database.
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

/// What a command that must succeed printed as JSON.
fn json(output: &Output) -> Value {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// `migrate`, which must succeed.
fn migrate(service: &Service, to: &str) -> Value {
    let from = url(service);
    let arguments = ["migrate", "--from", &from, "--to", to, "--json"];
    json(&service.server.cli(&arguments))
}
