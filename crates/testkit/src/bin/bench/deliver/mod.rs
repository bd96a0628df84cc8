//! `bench deliver`: the whole way of a message, from `POST /sms` to the callback answered `OK`.

pub(crate) mod cluster;
mod flow;
mod goals;
mod growth;
pub(crate) mod held;
mod history;
mod ledger;
mod options;
pub(crate) mod receivers;
mod report;
mod site;

pub(crate) use history::{HistoryOptions, run_history};
pub(crate) use options::{Options, backend};

use crate::accept::check_site;
use crate::measure::Subject;
use crate::memory::{self, Memory};
use anyhow::Result;
use flow::{Flow, Plan};
use site::Site;
use testkit::Backend;

/// So many are under way in the row that shows the delay of a service that is not full: one for
/// each connection.
const CALM_OUTSTANDING: usize = CONNECTIONS;
const CONNECTIONS: usize = 64;

/// The sustained run on one store.
struct Sustained {
    backend: Backend,
    /// As much at once as the bound lets through.
    full: Flow,
    /// Far below that.
    calm: Flow,
    memory: Memory,
    bytes_per_message: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_site(&options.switchboard)?;
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
    let site = Site::start(options, backend)?;
    site.warm_up(options)?;
    let before = site.database_bytes()?;
    let full = flow::run(&site, &Plan::new(options.sustained, options.outstanding))?;
    let grown = site.database_bytes()?.saturating_sub(before);
    let memory = memory::of_process(site.server.pid())?;
    let calm = flow::run(&site, &Plan::new(options.step, CALM_OUTSTANDING))?;
    Ok(Sustained {
        backend,
        bytes_per_message: grown / full.tally.called_back.max(1),
        full,
        calm,
        memory,
    })
}
