//! `bench accept`: how fast `POST /sms` accepts messages, compared with a bare handler.

mod goals;
mod report;
mod soak;

use crate::measure::{self, Row, Subject};
use crate::options::Options;
use anyhow::{Result, ensure};
use std::path::Path;
use testkit::{Backend, TestDatabase};

/// A row of the service and one of the bare handler, which is measured right before, because the speed of a machine
/// drifts.
struct Pair {
    bare: Row,
    service: Row,
}

impl Pair {
    /// The rate of the service in percent of the rate of the bare handler.
    fn percent_of_bare(&self) -> u64 {
        self.service.load.rate() * 100 / self.bare.load.rate().max(1)
    }
}

/// Fails early if the binary or `PostgreSQL` is missing.
pub(crate) fn check_prerequisites(binary: &Path) -> Result<()> {
    ensure!(
        binary.exists(),
        "no switchboard binary at {}; build it first",
        binary.display()
    );
    drop(TestDatabase::create_blocking());
    Ok(())
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
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
