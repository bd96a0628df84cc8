//! `bench smpp-server`: how fast customers' `submit_sm` are stored, compared with `POST /sms`; the memory of idle binds;
//! and a chain of two services that are connected by SMPP.

mod chain;
mod report;

use crate::accept::check_prerequisites;
use crate::gateways::flow::Flow;
use crate::measure;
use crate::memory;
use crate::options::Timed;
use crate::smpp::{IgnoreIncoming, Progress, rate, send};
use ::smpp::{Address, BindKind, Incoming, Session, SessionOptions, ShortMessage};
use anyhow::{Context, Result, ensure};
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
const CONFIG: &str = "[smpp_server]\nlisten = '127.0.0.1:0'\nconnections = 1000\nwindow = 500\n\
                      [limits]\nconnections = 4000\nconnections_per_address = 2000\n";
/// Messages wait for this long, so that only their acceptance is measured.
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
const AHEAD_RELATIVE: &str = "000001000000000R";

/// The results on one database.
struct Row {
    backend: Backend,
    /// Messages a second.
    rest: u64,
    smpp: u64,
    /// The resident memory with idle binds.
    idle_kib: u64,
    chain: chain::Chain,
    /// The same with REST at its beginning.
    chain_from_rest: Flow,
}

pub(crate) fn run(options: &Timed) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for backend in options.backends() {
        let row = Row {
            backend,
            rest: rest(options, backend)?,
            smpp: submits(options, &runtime, backend)?,
            idle_kib: idle(options, &runtime, backend)?,
            chain: chain::from_smpp(options, &runtime, backend)?,
            chain_from_rest: chain::from_rest(options, backend)?,
        };
        eprintln!(
            "{backend:?}: REST {}/s, SMPP {}/s, {} KiB idle, chain {}/s, from REST {}/s",
            row.rest,
            row.smpp,
            row.idle_kib,
            row.chain.rate,
            row.chain_from_rest.rate()
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
    fn start(options: &Timed, backend: Backend, config: &str) -> Result<Self> {
        let config = format!("{CONFIG}{config}");
        let builder = Server::builder(&options.switchboard, backend).config(&config);
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

    async fn bind(&self, kind: BindKind, incoming: Arc<dyn Incoming>) -> Result<Session> {
        let options = SessionOptions {
            bind: kind,
            system_id: SYSTEM_ID.to_owned(),
            password: self.password.clone(),
            window: WINDOW,
            ..SessionOptions::default()
        };
        Ok(Session::connect(&self.address, options, incoming).await?)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server under test runs on the wall clock, so its schedule does too"
)]
fn rest(options: &Timed, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend, "")?;
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

fn submits(options: &Timed, runtime: &Runtime, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend, "")?;
    runtime.block_on(async {
        let progress = Arc::new(Progress::default());
        let mut tasks = Vec::new();
        for _ in 0..BINDS {
            let session = service
                .bind(BindKind::Transmitter, Arc::new(IgnoreIncoming))
                .await?;
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

fn idle(options: &Timed, runtime: &Runtime, backend: Backend) -> Result<u64> {
    let service = Service::start(options, backend, "")?;
    runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..IDLE_BINDS {
            let incoming = Arc::new(IgnoreIncoming);
            sessions.push(service.bind(BindKind::Transceiver, incoming).await?);
        }
        let memory = memory::of_process(service.server.pid())?;
        let open = sessions.iter().filter(|session| session.is_open()).count();
        ensure!(open == IDLE_BINDS, "{open} of {IDLE_BINDS} are bound");
        anyhow::Ok(memory.now_kib)
    })
}
