//! `bench history`: how much millions of old messages slow down the delivery of new ones.

use super::Options;
use super::flow::{self, Flow, FlowSettings};
use super::growth::{TURNS, rate};
use super::report::worst_p99;
use super::target::Target;
use crate::accept::check_prerequisites;
use crate::fill::{self, history::DAYS};
use crate::goals::{Goal, hundredths};
use crate::options::number;
use crate::report::{milliseconds, write_goals};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::time::Duration;
use testkit::Backend;

const MIN_PERCENT_OF_EMPTY: u64 = 80;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct HistoryOptions {
    rows: u64,
    flow: Options,
}

impl HistoryOptions {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut rows = 10_000_000;
        let mut rest = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--rows" {
                let value = arguments.next().context("--rows needs a value")?;
                rows = number(argument, value)?.max(DAYS);
            } else {
                rest.push(argument.clone());
            }
        }
        let flow = Options::parse(&rest)?;
        Ok(Self { rows, flow })
    }
}

/// Measures a server with history and an empty one in turns, and prints the table.
pub(crate) fn run_history(options: &HistoryOptions) -> Result<()> {
    check_prerequisites(&options.flow.switchboard)?;
    let empty = Target::start(&options.flow, Backend::Postgres)?;
    let mut full = Target::start(&options.flow, Backend::Postgres)?;
    fill::history::fill(&mut full.server, "simulator", options.rows)?;
    empty.warm_up(&options.flow)?;
    full.warm_up(&options.flow)?;
    let settings = FlowSettings::new(turn(&options.flow), options.flow.outstanding);
    let (mut none, mut with) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let mut order = [(&empty, &mut none), (&full, &mut with)];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (target, flows) in order {
            flows.push(flow::run(target, &settings)?);
        }
    }
    print!(
        "{}",
        table(options.rows, full.database_bytes()?, &none, &with)
    );
    Ok(())
}

/// The length of a turn. All turns together take as long as a sustained run.
fn turn(options: &Options) -> Duration {
    (options.sustained / (2 * TURNS)).max(Duration::from_secs(3))
}

fn table(rows: u64, bytes: u64, none: &[Flow], with: &[Flow]) -> String {
    let (rate_empty, rate_full) = (rate(none), rate(with));
    let mut text = format!(
        "\nWith {rows} messages of history over {DAYS} days ({} MB in total), compared with an empty database, in turns:\n\n\
         | database | delivered/s | of the empty one | delay p99 ms, worst turn |\n|---|--:|--:|--:|\n",
        bytes / 1_000_000
    );
    for (name, rate, flows) in [
        ("empty", rate_empty, none),
        ("with history", rate_full, with),
    ] {
        let share = hundredths(rate * 100 / rate_empty.max(1));
        let delay = milliseconds(worst_p99(flows));
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "| {name} | {rate} | {share} | {delay} |");
    }
    let unclean = none.iter().chain(with).filter(|flow| !flow.is_clean());
    let unclean = unclean.count();
    let ratio = rate_full * 100 / rate_empty.max(1);
    let goals = [
        Goal::new(
            "with history at least 0.80 of the rate of the empty database",
            Some((hundredths(ratio), ratio >= MIN_PERCENT_OF_EMPTY)),
        ),
        Goal::new(
            "no turn with errors or lost callbacks",
            Some((unclean.to_string(), unclean == 0)),
        ),
    ];
    let _infallible = write_goals(&mut text, &goals);
    text
}

#[cfg(test)]
mod tests {
    use super::HistoryOptions;

    fn parse(line: &str) -> anyhow::Result<HistoryOptions> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        HistoryOptions::parse(&arguments)
    }

    #[test]
    fn rows_can_be_combined_with_the_flags_of_the_flow() {
        let options = parse("--seconds 10 --rows 3000 --outstanding 7").expect("valid");
        assert_eq!((options.rows, options.flow.outstanding), (3_000, 7));
        assert_eq!(parse("").expect("valid").rows, 10_000_000);
        for line in ["--rows", "--rows x", "--lines 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
