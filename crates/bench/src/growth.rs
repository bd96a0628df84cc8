//! `bench growth`: the rate and the processor time of a message with much data, many accounts or a large configuration,
//! compared with a new installation, in turns.

mod case;
mod goals;
mod installation;
mod options;
mod report;

pub(crate) use options::Options;

use crate::accept::check_prerequisites;
use crate::cost::Path;
use crate::cost::turn::{Turn, TurnSettings};
use crate::goals::percent;
use crate::measure::Subject;
use crate::report::median;
use anyhow::{Context, Result};
use case::Size;
use installation::Installation;
use testkit::Backend;

/// The turns of a grown installation and of a small one. Turns with the same index were measured one after the other.
struct Comparison {
    backend: Backend,
    size: Size,
    small: Vec<Turn>,
    grown: Vec<Turn>,
}

impl Comparison {
    fn name(&self) -> String {
        let database = Subject::Switchboard(self.backend).name();
        format!("{database}, {}", self.size)
    }

    /// The median over the turns of the percentage of the small installation.
    fn percent(&self, value: impl Fn(&Turn) -> u64) -> u64 {
        let turns = self.small.iter().zip(&self.grown);
        median(turns.map(|(small, grown)| percent(value(grown), value(small))))
    }

    fn time_percent(&self) -> u64 {
        self.percent(Turn::service_and_database)
    }

    fn rate_percent(&self) -> u64 {
        self.percent(|turn| turn.rate)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let mut comparisons = Vec::new();
    for backend in options.backends() {
        for &size in &options.sizes {
            let mut comparison = Comparison {
                backend,
                size,
                small: Vec::new(),
                grown: Vec::new(),
            };
            let name = comparison.name();
            eprintln!("{name} …");
            measure(options, &mut comparison).with_context(|| name)?;
            comparisons.push(comparison);
        }
    }
    print!("{}", report::markdown(options, &comparisons));
    Ok(())
}

/// Both installations are removed at the end, so that they need disk space only for one case at a time.
fn measure(options: &Options, comparison: &mut Comparison) -> Result<()> {
    let small = Installation::small(options, comparison.backend)?;
    let grown = Installation::grown(options, comparison.backend, comparison.size, &small)?;
    let settings = TurnSettings {
        path: Path::Whole,
        messages: options.messages,
        statements: options.statements,
    };
    let (small, grown) = (small.metered()?, grown.metered()?);
    for turn in 0..options.turns {
        // The speed of a machine drifts, so every second turn has the reverse order.
        let mut order = [
            ("small", &small, &mut comparison.small),
            ("grown", &grown, &mut comparison.grown),
        ];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (name, installation, turns) in order {
            let measured = installation.turn(settings)?;
            eprintln!("  turn {}, {name}: {}", turn + 1, measured.summary());
            turns.push(measured);
        }
    }
    Ok(())
}
