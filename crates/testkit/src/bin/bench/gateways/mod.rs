//! `bench gateways`: the whole way by SMPP, from a caller's request to the callback answered, in this service and in
//! Kannel, one after the other on the same machine, with the same SMSC, the same receiver and the same generator.

mod flow;
mod kannel;
mod options;
mod ours;
mod report;

pub(crate) use options::Options;

use anyhow::{Context, Result};
use std::process::Command;
use testkit::Process;

use flow::Flow;

/// Requests under way at once.
const CONNECTIONS: usize = 64;

/// Whose way is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    Ours,
    Kannel,
    KannelWithSpool,
}

impl Gateway {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "Switchboard, SQLite",
            Self::Kannel => "Kannel, no store",
            Self::KannelWithSpool => "Kannel, spool store",
        }
    }
}

/// One gateway's best of its turns.
struct Row {
    gateway: Gateway,
    flow: Flow,
    /// The highest resident memory of its processes together.
    peak_kib: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for turn in 1..=options.turns {
        for gateway in [Gateway::Ours, Gateway::Kannel, Gateway::KannelWithSpool] {
            eprintln!("turn {turn}: {} …", gateway.name());
            // A fresh one for each run: what an earlier run left to do cannot disturb it.
            let smsc = smsc(options)?;
            let row = match gateway {
                Gateway::Ours => ours::run(options, smsc.addr())?,
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

/// The simulated network, as an SMSC.
fn smsc(options: &Options) -> Result<Process> {
    let mut command = Command::new(&options.switchboard);
    command.args(["smsc", "--quiet", "--listen", "127.0.0.1:0"]);
    command.args(["--delay-ms", &options.delay_ms.to_string()]);
    Process::start(command).context("the SMSC did not start")
}
