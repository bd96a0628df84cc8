//! `bench smpp-server`: how fast customers' `submit_sm` are stored, compared with `POST /sms`; the memory of idle binds;
//! and a chain of two services that are connected by SMPP.

mod report;

use crate::accept::check_prerequisites;
use crate::deliver::backend;
use crate::gateways::flow::{self, Flow, FlowSettings};
use crate::gateways::switchboard::Nodes;
use crate::measure;
use crate::memory;
use crate::options::{default_binary, number};
use crate::smpp::{IgnoreIncoming, Progress, rate, send};
use ::smpp::{Address, BindKind, Session, SessionOptions, ShortMessage};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use testkit::load::{self, Load, Requests, RunLimit};
use testkit::{Backend, Server};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const BINDS: usize = 8;
const WINDOW: usize = 100;
const IDLE_BINDS: usize = 500;
/// Connections of the comparison with REST.
const CONNECTIONS: usize = 64;
const OUTSTANDING: usize = 5_000;
const CHAIN_WINDOW: u64 = 500;
const WARM_UP: Duration = Duration::from_secs(2);
const SYSTEM_ID: &str = "bench";
const CONFIG: &str = "[smpp_server]\nlisten = '127.0.0.1:0'\nconnections = 1000\n\
                      [limits]\nconnections = 4000\nconnections_per_address = 2000\n";
/// Messages wait for this long, so that only their acceptance is measured.
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
const AHEAD_RELATIVE: &str = "000001000000000R";

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    measured: Duration,
    only: Option<Backend>,
    switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            measured: Duration::from_secs(15),
            only: None,
            switchboard: default_binary()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            if flag == "--quick" {
                options.measured = Duration::from_secs(2);
                continue;
            }
            let Some(value) = rest.next() else {
                bail!("{flag} is unknown or needs a value\n{}", crate::USAGE);
            };
            match flag.as_str() {
                "--seconds" => options.measured = Duration::from_secs(number(flag, value)?.max(1)),
                "--only" => options.only = Some(backend(value)?),
                "--switchboard" => options.switchboard = PathBuf::from(value),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        // The server has another working folder, so a relative path would not work.
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }

    fn backends(&self) -> impl Iterator<Item = Backend> {
        let only = self.only;
        let all = Backend::ALL.into_iter();
        all.filter(move |backend| only.is_none_or(|only| only == *backend))
    }
}

/// The results on one database.
struct Row {
    backend: Backend,
    /// Messages a second.
    rest: u64,
    smpp: u64,
    /// The resident memory with idle binds.
    idle_kib: u64,
    /// From `POST /sms` of the first service to the answered callback.
    chain: Flow,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for backend in options.backends() {
        let row = Row {
            backend,
            rest: rest(options, backend)?,
            smpp: submits(options, &runtime, backend)?,
            idle_kib: idle(options, &runtime, backend)?,
            chain: chain(options, backend)?,
        };
        eprintln!(
            "{backend:?}: REST {}/s, SMPP {}/s, {} KiB idle, chain {}/s",
            row.rest,
            row.smpp,
            row.idle_kib,
            row.chain.rate()
        );
        rows.push(row);
    }
    print!("{}", report::markdown(options, &rows));
    Ok(())
}

/// A service that customers can bind to.
struct Service {
    server: Server,
    token: String,
    address: String,
    password: String,
}

impl Service {
    fn start(options: &Options, backend: Backend) -> Result<Self> {
        let builder = Server::builder(&options.switchboard, backend).config(CONFIG);
        let server = builder.try_start()?;
        let token = measure::create_account(&server, measure::ACCOUNT)?;
        let created = server.cli_json(&[
            "smpp-user",
            "create",
            "--account",
            measure::ACCOUNT,
            "--system-id",
            SYSTEM_ID,
            "--max-binds",
            "0",
            "--json",
        ]);
        let password = created["password"].as_str().context("no password")?;
        let output = server.output();
        let mut lines = output.lines();
        let line = lines.find_map(|line| line.split_once("SMPP listening on "));
        let (_, address) = line.context("the SMPP server does not listen")?;
        Ok(Self {
            token,
            address: address.trim().to_owned(),
            password: password.to_owned(),
            server,
        })
    }

    async fn bind(&self, kind: BindKind) -> Result<Session> {
        let options = SessionOptions {
            bind: kind,
            system_id: SYSTEM_ID.to_owned(),
            password: self.password.clone(),
            window: WINDOW,
            ..SessionOptions::default()
        };
        Ok(Session::connect(&self.address, options, Arc::new(IgnoreIncoming)).await?)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server under test runs on the wall clock, so its schedule does too"
)]
fn rest(options: &Options, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend)?;
    let at = jiff::Timestamp::now() + AHEAD;
    let body = format!(
        r#"{{"to":"+37120000001","from":"Switchboard","message":"{TEXT}","scheduled":"{at}"}}"#
    );
    let request = measure::request(service.server.addr(), &service.token, &body);
    let load = Load {
        connections: CONNECTIONS,
        warm_up: WARM_UP,
        limit: RunLimit::Elapsed(options.measured),
        requests: Requests::Fixed(request),
        on_answer: None,
    };
    let report = load::run(service.server.addr(), load);
    ensure!(report.is_clean(CONNECTIONS), "a request was not answered");
    Ok(report.rate())
}

const TEXT: &str = "Your code is 123456. It is valid for 10 minutes.";

fn message() -> ShortMessage {
    ShortMessage {
        source: Address::new(5, 0, "Switchboard"),
        destination: Address::new(1, 1, "37120000001"),
        schedule_delivery_time: AHEAD_RELATIVE.into(),
        short_message: TEXT.into(),
        ..ShortMessage::default()
    }
}

fn submits(options: &Options, runtime: &Runtime, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend)?;
    runtime.block_on(async {
        let progress = Arc::new(Progress::default());
        let mut tasks = Vec::new();
        for _ in 0..BINDS {
            let session = service.bind(BindKind::Transmitter).await?;
            for _ in 0..WINDOW {
                let progress = Arc::clone(&progress);
                tasks.push(tokio::spawn(send(session.clone(), message(), progress)));
            }
        }
        sleep(WARM_UP).await;
        let (start, before) = (Instant::now(), progress.answered.load(Ordering::Relaxed));
        sleep(options.measured).await;
        let stored = progress.answered.load(Ordering::Relaxed) - before;
        let found = rate(stored, start.elapsed());
        progress.stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await??;
        }
        anyhow::Ok(found)
    })
}

fn idle(options: &Options, runtime: &Runtime, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend)?;
    runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..IDLE_BINDS {
            sessions.push(service.bind(BindKind::Transceiver).await?);
        }
        let memory = memory::of_process(service.server.pid())?;
        let open = sessions.iter().filter(|session| session.is_open()).count();
        ensure!(open == IDLE_BINDS, "{open} of {IDLE_BINDS} are bound");
        anyhow::Ok(memory.now_kib)
    })
}

fn chain(options: &Options, backend: Backend) -> Result<Flow> {
    let second = Service::start(options, backend)?;
    let (address, password) = (&second.address, &second.password);
    let config = format!(
        "[[carrier]]\nname = 'second'\nkind = 'smpp'\naddress = '{address}'\nsystem_id = '{SYSTEM_ID}'\n\
         password = '{password}'\nwindow = {CHAIN_WINDOW}\n"
    );
    let first = Nodes::start(&options.switchboard, backend, 1, &config, &[])?;
    let settings = |time| FlowSettings {
        limit: RunLimit::Elapsed(time),
        outstanding: OUTSTANDING,
    };
    flow::run(&first, settings(WARM_UP))?;
    flow::run(&first, settings(options.measured))
}

#[cfg(test)]
mod tests {
    use super::Options;
    use std::time::Duration;
    use testkit::Backend;

    #[test]
    fn flags_change_the_defaults_and_wrong_ones_are_named() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&arguments)
        };
        let given = parse("--quick --only sqlite").expect("valid");
        assert_eq!(given.measured, Duration::from_secs(2));
        assert_eq!(given.backends().collect::<Vec<_>>(), [Backend::Sqlite]);
        for (line, named) in [("--fast", "--fast"), ("--seconds x", "\"x\"")] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
