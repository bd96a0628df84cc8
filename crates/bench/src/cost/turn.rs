//! One turn: a new server, a warm-up, and the measured messages.

use super::database_work::{DatabaseWork, Position, Postgres, Statement};
use super::{Options, Path, Subject};
use crate::gateways::flow::{self, FlowSettings};
use crate::gateways::kannel;
use crate::gateways::switchboard::{self, Nodes};
use crate::gateways::{CONNECTIONS, RunningGateway, start_smsc};
use crate::processor_time::{self, ProcessorTime};
use crate::{measure, memory};
use anyhow::{Context, Result};
use std::env;
use std::net::SocketAddr;
use std::ops::Sub;
use std::process::Command;
use std::thread;
use std::time::Duration;
use testkit::Process;
use testkit::load::{Report, Requests, RunLimit};

pub(crate) const WINDOW: u64 = 500;
const OUTSTANDING: usize = 5_000;
pub(crate) const SMSC_DELAY_MS: u64 = 50;
/// A turn ends when its processes take less than [`QUIET_LIMIT`] in this time, or after [`MAX_WAITS`] of them.
const QUIET_TIME: Duration = Duration::from_millis(200);
const QUIET_LIMIT: Duration = Duration::from_millis(20);
const MAX_WAITS: u32 = 25;

/// The result of a turn.
pub(crate) struct Turn {
    pub(crate) messages: u64,
    /// Of all nodes.
    pub(crate) nodes: ProcessorTime,
    pub(crate) database: ProcessorTime,
    /// The load generator and the receiver of callbacks.
    pub(crate) benchmark: ProcessorTime,
    /// Messages a second: accepted ones, or those that were called back.
    pub(crate) rate: u64,
    /// Of a request.
    pub(crate) p99: Duration,
    /// Requests that were not answered 200, and messages without a callback.
    pub(crate) failures: u64,
    pub(crate) peak_kib: u64,
    pub(crate) work: Option<DatabaseWork>,
    pub(crate) statements: Vec<Statement>,
}

impl Turn {
    /// Microseconds for each message.
    pub(crate) fn per_message(&self, time: Duration) -> u64 {
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / self.messages.max(1)
    }

    /// Microseconds for each message, in the service and its database.
    pub(crate) fn service_and_database(&self) -> u64 {
        self.per_message(self.nodes.total() + self.database.total())
    }

    /// In one line, for the progress.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} + {} µs, {}/s, {} failures",
            self.per_message(self.nodes.total()),
            self.per_message(self.database.total()),
            self.rate,
            self.failures
        )
    }
}

/// What a turn sends, and what it reports.
#[derive(Clone, Copy)]
pub(crate) struct TurnSettings {
    pub(crate) path: Path,
    pub(crate) messages: u64,
    /// Whether to report the statements that took the most time.
    pub(crate) statements: bool,
}

/// What a turn measures besides the processor time.
struct Load {
    rate: u64,
    p99: Duration,
    failures: u64,
}

pub(super) fn run(options: &Options, path: Path, subject: Subject) -> Result<Turn> {
    let settings = TurnSettings {
        path,
        messages: options.messages,
        statements: options.statements,
    };
    let smsc = match path {
        Path::Accept => None,
        Path::Whole => Some(start_smsc(&options.switchboard, SMSC_DELAY_MS)?),
    };
    let smsc = smsc.as_ref().map(Process::addr);
    match subject {
        Subject::Bare => run_on(&Bare::start()?, None, settings),
        Subject::Kannel => {
            let smsc = smsc.context("Kannel does not store messages for later")?;
            run_on(&kannel::start(smsc, WINDOW, false)?, None, settings)
        }
        Subject::Service {
            build,
            backend,
            nodes,
        } => {
            let config = smsc.map_or_else(String::new, |smsc| switchboard::config(smsc, WINDOW));
            let arguments: &[&str] = match path {
                Path::Accept => &["--roles", "api"],
                Path::Whole => &[],
            };
            let nodes = Nodes::start(options.binary(build)?, backend, nodes, &config, arguments)?;
            let postgres = nodes.first().database().map(Postgres::new).transpose()?;
            run_on(&nodes, postgres.as_ref(), settings)
        }
    }
}

/// A warm-up of a tenth of the messages, then the measured messages.
pub(crate) fn run_on(
    gateway: &dyn RunningGateway,
    postgres: Option<&Postgres<'_>>,
    settings: TurnSettings,
) -> Result<Turn> {
    let TurnSettings { path, messages, .. } = settings;
    let meter = Meter {
        pids: gateway.pids(),
        postgres,
    };
    send(path, gateway, messages / 10)?;
    meter.wait_until_quiet()?;
    let position = postgres.map(Postgres::start).transpose()?;
    let before = meter.read()?;
    let load = send(path, gateway, messages)?;
    meter.wait_until_quiet()?;
    let spent = meter.read()? - before;
    let memory = gateway.pids().into_iter().map(memory::of_process);
    Ok(Turn {
        messages,
        nodes: spent.nodes,
        database: spent.database,
        benchmark: spent.benchmark,
        rate: load.rate,
        p99: load.p99,
        failures: load.failures,
        peak_kib: memory
            .map(|memory| Ok(memory?.peak_kib))
            .sum::<Result<u64>>()?,
        work: work_since(postgres, position.as_ref())?,
        statements: match postgres {
            Some(postgres) if settings.statements => postgres.statements()?,
            _ => Vec::new(),
        },
    })
}

fn work_since(
    postgres: Option<&Postgres<'_>>,
    position: Option<&Position>,
) -> Result<Option<DatabaseWork>> {
    let started = postgres.zip(position);
    started
        .map(|(postgres, position)| postgres.work_since(position))
        .transpose()
}

fn send(path: Path, gateway: &dyn RunningGateway, messages: u64) -> Result<Load> {
    let limit = RunLimit::Count(messages);
    match path {
        Path::Accept => {
            let reports = flow::send(gateway, limit, measure::UNANSWERED_URL, None);
            let connections = CONNECTIONS / reports.len();
            let unclean = reports
                .iter()
                .filter(|report| !report.is_clean(connections));
            Ok(Load {
                rate: reports.iter().map(Report::rate).sum(),
                p99: flow::p99(&reports),
                failures: unclean
                    .map(|report| (report.wrong + report.failed_connections).max(1))
                    .sum(),
            })
        }
        Path::Whole => {
            let settings = FlowSettings {
                limit,
                outstanding: OUTSTANDING,
            };
            let flow = flow::run(gateway, settings)?;
            Ok(Load {
                rate: flow.rate(),
                p99: flow.p99,
                failures: flow.refused + flow.missing(),
            })
        }
    }
}

/// Reads the processor time of everything that takes part in a turn.
pub(crate) struct Meter<'a> {
    /// The nodes.
    pub(crate) pids: Vec<u32>,
    pub(crate) postgres: Option<&'a Postgres<'a>>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) nodes: ProcessorTime,
    pub(crate) database: ProcessorTime,
    pub(crate) benchmark: ProcessorTime,
}

impl Sub for Reading {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            nodes: self.nodes - earlier.nodes,
            database: self.database - earlier.database,
            benchmark: self.benchmark - earlier.benchmark,
        }
    }
}

impl Meter<'_> {
    pub(crate) fn read(&self) -> Result<Reading> {
        let pids = self.pids.iter().copied();
        let database = self.postgres.map(Postgres::processor_time);
        Ok(Reading {
            nodes: pids.map(processor_time::of_process).sum::<Result<_>>()?,
            database: database.transpose()?.unwrap_or_default(),
            benchmark: processor_time::of_process(std::process::id())?,
        })
    }

    /// Waits for work that goes on after the last answer, such as storing the result of the last callbacks.
    pub(crate) fn wait_until_quiet(&self) -> Result<()> {
        let mut before = self.read()?;
        for _ in 0..MAX_WAITS {
            thread::sleep(QUIET_TIME);
            let now = self.read()?;
            let spent = now - before;
            if (spent.nodes + spent.database).total() < QUIET_LIMIT {
                break;
            }
            before = now;
        }
        Ok(())
    }
}

/// A handler that parses the request and answers.
struct Bare(Process);

impl Bare {
    fn start() -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("bare");
        Ok(Self(Process::start(command)?))
    }
}

impl RunningGateway for Bare {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.0.addr()]
    }

    fn pids(&self) -> Vec<u32> {
        vec![self.0.pid()]
    }

    fn requests(&self, addr: SocketAddr, callback_url: &str) -> Requests {
        let body = measure::message(callback_url);
        Requests::Fixed(measure::request(addr, "none", &body))
    }
}
