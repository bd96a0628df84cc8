//! How much scheduled messages slow down the delivery of others.

use super::Options;
use super::flow::{self, Flow, FlowSettings};
use super::target::Target;
use crate::fill;
use crate::measure::Subject;
use anyhow::Result;
use testkit::Backend;

/// The speed of a machine drifts, so the two servers are measured in turns. Every second turn has the reverse order.
pub(super) const TURNS: u32 = 4;

/// The results of a server with scheduled messages and of one without.
pub(super) struct Step {
    pub(super) backend: Backend,
    pub(super) waiting: u64,
    pub(super) none: Vec<Flow>,
    pub(super) with: Vec<Flow>,
}

impl Step {
    /// The rate in percent of the rate without scheduled messages.
    pub(super) fn percent_of_none(&self) -> u64 {
        rate(&self.with) * 100 / rate(&self.none).max(1)
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.none.iter().chain(&self.with)
    }
}

/// The mean rate of callbacks over all turns, which have the same length.
pub(super) fn rate(turns: &[Flow]) -> u64 {
    let sum: u64 = turns.iter().map(Flow::delivered_rate).sum();
    sum / (turns.len() as u64).max(1)
}

pub(super) fn step(options: &Options, backend: Backend, waiting: u64) -> Result<Step> {
    let name = Subject::Switchboard(backend).name();
    eprintln!("{name}, {waiting} waiting …");
    let empty = Target::start(options, backend)?;
    let full = Target::start(options, backend)?;
    fill::messages::schedule(full.server.addr(), &full.token, waiting)?;
    empty.warm_up(options)?;
    full.warm_up(options)?;
    let mut step = Step {
        backend,
        waiting,
        none: Vec::new(),
        with: Vec::new(),
    };
    let settings = FlowSettings::new(options.step / TURNS, options.outstanding);
    for turn in 0..TURNS {
        let mut order = [(&empty, &mut step.none), (&full, &mut step.with)];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (target, flows) in order {
            flows.push(flow::run(target, &settings)?);
        }
    }
    Ok(step)
}
