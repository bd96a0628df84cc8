//! `bench smpp gateways`: end to end over SMPP, from a request to the answered callback, in this service and in Kannel,
//! one after the other on the same machine, with the same SMSC, receiver and load generator.

mod flow;
mod kannel;
mod options;
mod report;
mod switchboard;

pub(crate) use options::Options;

use anyhow::{Context, Result};
use std::process::Command;
use testkit::Process;

use flow::Flow;

/// The number of requests in flight.
const CONNECTIONS: usize = 64;

/// The measured gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    Switchboard,
    Kannel,
    KannelWithSpool,
}

impl Gateway {
    const fn name(self) -> &'static str {
        match self {
            Self::Switchboard => "Switchboard, SQLite",
            Self::Kannel => "Kannel, no store",
            Self::KannelWithSpool => "Kannel, spool store",
        }
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
        for gateway in [
            Gateway::Switchboard,
            Gateway::Kannel,
            Gateway::KannelWithSpool,
        ] {
            eprintln!("turn {turn}: {} …", gateway.name());
            // A new SMSC for each run, so that work of an earlier run does not disturb it.
            let smsc = start_smsc(options)?;
            let row = match gateway {
                Gateway::Switchboard => switchboard::run(options, smsc.addr())?,
                Gateway::Kannel | Gateway::KannelWithSpool => {
                    kannel::run(options, gateway, smsc.addr())?
                }
            };
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

/// Starts the simulated network as an SMSC.
fn start_smsc(options: &Options) -> Result<Process> {
    let mut command = Command::new(&options.switchboard);
    command.args(["smsc", "--quiet", "--listen", "127.0.0.1:0"]);
    command.args(["--delay-ms", &options.delay_ms.to_string()]);
    Process::start(command).context("the SMSC did not start")
}
