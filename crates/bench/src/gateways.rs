//! `bench smpp gateways`: end to end over SMPP, from a request to the answered callback, in this service and in Kannel,
//! one after the other on the same machine, with the same SMSC, receiver and load generator.

pub(crate) mod flow;
pub(crate) mod kannel;
mod options;
mod report;
pub(crate) mod switchboard;

pub(crate) use options::Options;

use crate::memory;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use testkit::load::{Requests, RunLimit};
use testkit::{Backend, Process};

use flow::{Flow, FlowSettings};
use switchboard::Nodes;

/// The number of requests in flight, over all nodes.
pub(crate) const CONNECTIONS: usize = 64;

/// A gateway that accepts messages.
pub(crate) trait RunningGateway: Sync {
    /// One for each node.
    fn addresses(&self) -> Vec<SocketAddr>;
    fn pids(&self) -> Vec<u32>;
    /// Requests to send the message of the benchmark.
    fn requests(&self, addr: SocketAddr, callback_url: &str) -> Requests;
}

/// The measured gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    Switchboard(Backend),
    Kannel,
    KannelWithSpool,
}

impl Gateway {
    const ALL: [Self; 4] = [
        Self::Switchboard(Backend::Sqlite),
        Self::Switchboard(Backend::Postgres),
        Self::Kannel,
        Self::KannelWithSpool,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Switchboard(Backend::Sqlite) => "Switchboard, SQLite",
            Self::Switchboard(Backend::Postgres) => "Switchboard, PostgreSQL",
            Self::Kannel => "Kannel, no store",
            Self::KannelWithSpool => "Kannel, spool store",
        }
    }

    fn start(self, options: &Options, smsc: SocketAddr) -> Result<Box<dyn RunningGateway>> {
        let window = options.window;
        Ok(match self {
            Self::Switchboard(backend) => {
                let config = switchboard::config(smsc, window);
                Box::new(Nodes::start(
                    &options.switchboard,
                    backend,
                    1,
                    &config,
                    &[],
                )?)
            }
            Self::Kannel => Box::new(kannel::start(smsc, window, false)?),
            Self::KannelWithSpool => Box::new(kannel::start(smsc, window, true)?),
        })
    }
}

/// The result of one turn.
struct Row {
    gateway: Gateway,
    flow: Flow,
    /// The peak resident memory, the sum over its processes.
    peak_kib: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for turn in 1..=options.turns {
        for gateway in Gateway::ALL {
            eprintln!("turn {turn}: {} …", gateway.name());
            let row = measure(options, gateway)?;
            eprintln!(
                "  {} messages a second end to end, {} missing, {} refused",
                row.flow.rate(),
                row.flow.missing(),
                row.flow.refused
            );
            rows.push(row);
        }
    }
    print!("{}", report::markdown(options, &rows));
    Ok(())
}

fn measure(options: &Options, gateway: Gateway) -> Result<Row> {
    // A new SMSC for each run, so that work of an earlier run does not disturb it.
    let smsc = start_smsc(&options.switchboard, options.delay_ms)?;
    let running = gateway.start(options, smsc.addr())?;
    let settings = |duration| FlowSettings {
        limit: RunLimit::Elapsed(duration),
        outstanding: options.outstanding,
    };
    flow::run(&*running, settings(options.warm_up))?;
    let flow = flow::run(&*running, settings(options.measured))?;
    let memory = running.pids().into_iter().map(memory::of_process);
    let peaks = memory.map(|memory| Ok(memory?.peak_kib));
    Ok(Row {
        gateway,
        flow,
        peak_kib: peaks.sum::<Result<u64>>()?,
    })
}

/// Starts the simulated network as an SMSC.
pub(crate) fn start_smsc(switchboard: &Path, delay_ms: u64) -> Result<Process> {
    let mut command = Command::new(switchboard);
    command.args(["smsc", "--quiet", "--listen", "127.0.0.1:0"]);
    command.args(["--delay-ms", &delay_ms.to_string()]);
    Process::start(command).context("the SMSC did not start")
}
