//! `bench deliver`: messages end to end, from `POST /sms` to the callback that is answered with `OK`.

pub(crate) mod cluster;
mod flow;
mod goals;
mod growth;
mod history;
mod message_tracker;
pub(crate) mod open_transaction;
mod options;
pub(crate) mod receivers;
mod report;
mod target;

pub(crate) use history::{HistoryOptions, run_history};
pub(crate) use message_tracker::number_after;
pub(crate) use options::Options;

use crate::accept::check_prerequisites;
use crate::measure::Subject;
use crate::memory::{self, Memory};
use anyhow::Result;
use flow::{Flow, FlowSettings};
use target::Target;
use testkit::Backend;

/// The number of messages in flight for the row with light load: one for each connection.
const LIGHT_OUTSTANDING: usize = CONNECTIONS;
const CONNECTIONS: usize = 64;

/// The result of the sustained run on one database.
struct Sustained {
    backend: Backend,
    /// With as many messages in flight as allowed.
    full: Flow,
    /// With few messages in flight.
    light: Flow,
    memory: Memory,
    bytes_per_message: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let mut sustained = Vec::new();
    for backend in options.backends() {
        sustained.push(sustain(options, backend)?);
    }
    let mut steps = Vec::new();
    for backend in options.growth_backends() {
        for &waiting in &options.waiting {
            steps.push(growth::step(options, backend, waiting)?);
        }
    }
    print!("{}", report::markdown(options, &sustained, &steps));
    Ok(())
}

fn sustain(options: &Options, backend: Backend) -> Result<Sustained> {
    let name = Subject::Switchboard(backend).name();
    eprintln!("{name}, {} s …", options.sustained.as_secs());
    let target = Target::start(options, backend)?;
    target.warm_up(options)?;
    let before = target.database_bytes()?;
    let full = flow::run(
        &target,
        &FlowSettings::new(options.sustained, options.outstanding),
    )?;
    let grown = target.database_bytes()?.saturating_sub(before);
    let memory = memory::of_process(target.server.pid())?;
    let light = flow::run(&target, &FlowSettings::new(options.step, LIGHT_OUTSTANDING))?;
    Ok(Sustained {
        backend,
        bytes_per_message: grown / full.totals.called_back.max(1),
        full,
        light,
        memory,
    })
}
