//! `bench accept`: all rows, the soak, and the report.

use crate::measure::{self, Row, Subject};
use crate::options::Options;
use crate::{report, soak};
use anyhow::{Result, ensure};
use std::path::Path;
use testkit::{Backend, TestDatabase};

/// A row of the service and the bare handler measured right before it: a machine's speed drifts,
/// so each ratio is to its own neighbour.
pub(crate) struct Pair {
    pub(crate) bare: Row,
    pub(crate) service: Row,
}

impl Pair {
    /// The service's rate as hundredths of the bare handler's.
    pub(crate) fn percent_of_bare(&self) -> u64 {
        self.service.load.rate() * 100 / self.bare.load.rate().max(1)
    }
}

/// Fails now rather than after the first minute when something is missing.
pub(crate) fn check_site(binary: &Path) -> Result<()> {
    ensure!(
        binary.exists(),
        "no switchboard binary at {}; build it first",
        binary.display()
    );
    drop(TestDatabase::create_blocking());
    Ok(())
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_site(&options.switchboard)?;
    let mut pairs = Vec::new();
    for &connections in options.connections {
        for backend in Backend::ALL {
            pairs.push(Pair {
                bare: measure::row(options, Subject::Bare, connections)?,
                service: measure::row(options, Subject::Switchboard(backend), connections)?,
            });
        }
    }
    let soak = if options.soak_messages > 0 {
        Some(soak::run(options)?)
    } else {
        None
    };
    print!("{}", report::markdown(options, &pairs, soak.as_ref()));
    Ok(())
}
