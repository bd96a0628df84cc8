//! Measures one row of the table: a new server, a number of connections, one run of the load.

use crate::memory::{self, Memory};
use crate::options::Options;
use anyhow::{Context, Result};
use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use testkit::load::{self, Load, Report, Requests, RunLimit};
use testkit::{Backend, Process, Server, http};

/// A callback URL where nobody listens.
pub(crate) const UNANSWERED_URL: &str = "http://127.0.0.1:9/dlr";
/// The account of a benchmark that needs only one.
pub(crate) const ACCOUNT: &str = "bench";
/// More than any run can spend.
const BALANCE: &str = "100000000.00";

/// The measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Bare,
    Switchboard(Backend),
}

impl Subject {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare handler",
            Self::Switchboard(Backend::Sqlite) => "SQLite",
            Self::Switchboard(Backend::Postgres) => "PostgreSQL",
        }
    }
}

/// A measured row.
pub(crate) struct Row {
    pub(crate) subject: Subject,
    pub(crate) connections: usize,
    pub(crate) load: Report,
    pub(crate) memory: Memory,
}

impl Row {
    pub(crate) fn is_clean(&self) -> bool {
        self.load.is_clean(self.connections)
    }
}

/// Starts a new server for each row, so that work of an earlier run does not disturb it and its peak memory is its own.
pub(crate) fn row(options: &Options, subject: Subject, connections: usize) -> Result<Row> {
    eprintln!("{}, {connections} connections …", subject.name());
    let (load, memory) = match subject {
        Subject::Bare => {
            let mut command = Command::new(env::current_exe()?);
            command.arg("bare");
            let process = Process::start(command)?;
            let request = request(process.addr(), "none", &message(UNANSWERED_URL));
            let load = load::run(process.addr(), timed(options, connections, request));
            (load, memory::of_process(process.pid())?)
        }
        Subject::Switchboard(backend) => {
            let (server, request) = switchboard(&options.switchboard, backend)?;
            let load = load::run(server.addr(), timed(options, connections, request));
            let memory = memory::of_process(server.pid())
                .with_context(|| format!("the server is gone; it wrote:\n{}", server.output()))?;
            (load, memory)
        }
    };
    let row = Row {
        subject,
        connections,
        load,
        memory,
    };
    eprintln!(
        "  {} requests/s, p99 {:?}",
        row.load.rate(),
        row.load.latency.percentile(99)
    );
    Ok(row)
}

/// Starts a server without configuration and builds a request for its account. It only accepts messages; `bench
/// deliver` measures their delivery.
pub(crate) fn switchboard(binary: &Path, backend: Backend) -> Result<(Server, Vec<u8>)> {
    let server = Server::builder(binary, backend)
        .arg("--roles")
        .arg("api")
        .try_start()?;
    let token = create_account(&server, ACCOUNT)?;
    let request = request(server.addr(), &token, &message(UNANSWERED_URL));
    Ok((server, request))
}

/// Creates an account that can pay for any run. Returns a token for it.
pub(crate) fn create_account(server: &Server, name: &str) -> Result<String> {
    server.cli_json(&[
        "account",
        "create",
        "--name",
        name,
        "--balance",
        BALANCE,
        "--json",
    ]);
    let created = server.cli_json(&["token", "create", "--account", name, "--json"]);
    let token = created["token"]
        .as_str()
        .context("`token create --json` printed no token")?;
    Ok(token.to_owned())
}

/// The message of every request: one part.
pub(crate) fn message(callback_url: &str) -> String {
    format!(
        r#"{{"to":"+37120000001","from":"Switchboard","message":"Your code is 123456. It is valid for 10 minutes.","dlrUrl":"{callback_url}"}}"#
    )
}

/// The bytes of `POST /sms`.
pub(crate) fn request(addr: SocketAddr, token: &str, body: &str) -> Vec<u8> {
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Service-Token", token),
    ];
    http::encode(addr, "POST", "/sms", &headers, body.as_bytes())
}

fn timed(options: &Options, connections: usize, request: Vec<u8>) -> Load {
    Load {
        connections,
        warm_up: options.warm_up,
        limit: RunLimit::Elapsed(options.measured),
        requests: Requests::Fixed(request),
        on_answer: None,
    }
}
