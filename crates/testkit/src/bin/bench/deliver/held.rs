//! `bench held`: what a transaction that somebody holds open costs everybody else.
//!
//! While it is open no version of a row that was replaced since can be swept, so whatever looks at a row that changes
//! fast steps over more of them every second.

mod options;

pub(crate) use options::Options;

use super::flow::{self, Flow, Plan};
use super::report::write_failures;
use super::site::Site;
use super::{CONNECTIONS, Options as Flows};
use crate::accept::check_site;
use crate::goals::{Goal, hundredths};
use crate::report::{machine, write_goals};
use anyhow::{Context, Result};
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};
use testkit::Backend;

const PERCENT_OF_FREE: u64 = 90;
/// What counts is the end, when most has piled up: this share of the slices, at least one.
const LAST_SHARE: usize = 3;

/// The same time on both databases, one after the other: a machine's speed drifts, and what slows one slows its
/// neighbour.
struct Slice {
    /// For how long the transaction had been open when both had run.
    held_for: Duration,
    free: Flow,
    held: Flow,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let flows = &options.flows;
    check_site(&flows.switchboard)?;
    let free = Site::start(flows, Backend::Postgres)?;
    let held = Site::start(flows, Backend::Postgres)?;
    free.warm_up(flows)?;
    held.warm_up(flows)?;
    let database = held.server.database().context("a PostgreSQL database")?;
    let mut snapshot = database.hold_snapshot()?;
    let since = Instant::now();
    let mut slices = Vec::new();
    for turn in 0..options.slices() {
        slices.push(slice(options, turn, since, &free, &held)?);
    }
    snapshot
        .release()
        .context("the transaction did not last until the end")?;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, &slices);
    print!("{text}");
    Ok(())
}

/// Each second turn is in the other order.
fn slice(options: &Options, turn: u64, since: Instant, free: &Site, held: &Site) -> Result<Slice> {
    eprintln!("slice {} of {} …", turn + 1, options.slices());
    let plan = Plan::new(options.slice, options.flows.outstanding);
    let free_first = turn.is_multiple_of(2);
    let early = free_first.then(|| flow::run(free, &plan)).transpose()?;
    let held = flow::run(held, &plan)?;
    let free = match early {
        Some(free) => free,
        None => flow::run(free, &plan)?,
    };
    let held_for = since.elapsed();
    Ok(Slice {
        held_for,
        free,
        held,
    })
}

/// The rate with the transaction as hundredths of the rate without it.
fn percent(slices: &[Slice]) -> u64 {
    let sum = |flow: fn(&Slice) -> &Flow| -> u64 {
        slices
            .iter()
            .map(|slice| flow(slice).delivered_rate())
            .sum()
    };
    sum(|slice| &slice.held) * 100 / sum(|slice| &slice.free).max(1)
}

/// The slices that count.
fn last(slices: &[Slice]) -> &[Slice] {
    let count = slices.len().div_ceil(LAST_SHARE);
    &slices[slices.len() - count..]
}

fn write_all(text: &mut String, options: &Options, slices: &[Slice]) -> fmt::Result {
    let Flows {
        simulator_delay_ms,
        outstanding,
        ..
    } = &options.flows;
    writeln!(
        text,
        "Machine: {}. Load generator, servers, PostgreSQL and callback receiver share it. Two fresh databases on one \
         PostgreSQL with its default settings, each with one server, measured in turns of {} s. In one of them a \
         transaction (REPEATABLE READ, one SELECT done) is open from the first slice to the last. {CONNECTIONS} \
         connections, at most {outstanding} messages under way; the simulated network reports after \
         {simulator_delay_ms} ms; “delivered/s” counts callbacks answered `OK`.\n",
        machine(),
        options.slice.as_secs(),
    )?;
    writeln!(
        text,
        "| held for s | delivered/s | with the transaction | of that | messages since it began |\n|--:|--:|--:|--:|--:|"
    )?;
    let mut messages = 0;
    for slice in slices {
        messages += slice.held.tally.called_back;
        writeln!(
            text,
            "| {} | {} | {} | {} | {messages} |",
            slice.held_for.as_secs(),
            slice.free.delivered_rate(),
            slice.held.delivered_rate(),
            hundredths(percent(std::slice::from_ref(slice))),
        )?;
    }
    write_goals(text, &judge(slices))?;
    for flow in slices.iter().flat_map(|slice| [&slice.free, &slice.held]) {
        write_failures(text, Backend::Postgres, flow)?;
    }
    Ok(())
}

fn judge(slices: &[Slice]) -> [Goal; 2] {
    let last = last(slices);
    let ratio = percent(last);
    let mut flows = slices.iter().flat_map(|slice| [&slice.free, &slice.held]);
    let clean = flows.all(Flow::is_clean);
    let shown = if clean { "nothing else" } else { "see below" };
    [
        Goal::new(
            format!(
                "PostgreSQL: with a transaction held open at least 0.90 of the rate without, over the last {} slices",
                last.len()
            ),
            (!last.is_empty()).then(|| (hundredths(ratio), ratio >= PERCENT_OF_FREE)),
        ),
        Goal::new(
            "every request answered 200, every message called back as delivered",
            Some((shown.into(), clean)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Tally;
    use super::{CONNECTIONS, Flow, Slice, judge, last};
    use std::time::Duration;
    use testkit::load::Report;

    fn flow(rate: u64) -> Flow {
        Flow {
            load: Report {
                served_connections: CONNECTIONS,
                ..Report::default()
            },
            tally: Tally {
                accepted: rate,
                called_back: rate,
                last_callback: Duration::from_secs(1),
                ..Tally::default()
            },
            outstanding: 1,
            backlog: 0,
        }
    }

    fn slices(held: &[u64]) -> Vec<Slice> {
        let slice = |held: &u64| Slice {
            held_for: Duration::ZERO,
            free: flow(1_000),
            held: flow(*held),
        };
        held.iter().map(slice).collect()
    }

    #[test]
    fn the_end_counts() {
        let cases: [(&str, &[u64], &str, bool); 3] = [
            ("even", &[1_000, 1_000, 1_000], "1.00", true),
            (
                "a slow start",
                &[100, 100, 100, 100, 900, 900],
                "0.90",
                true,
            ),
            (
                "a slow end",
                &[1_000, 1_000, 1_000, 1_000, 900, 880],
                "0.89",
                false,
            ),
        ];
        for (case, held, shown, reached) in cases {
            let slices = slices(held);
            assert_eq!(last(&slices).len(), held.len() / 3, "{case}");
            let [goal, clean] = judge(&slices);
            assert_eq!(
                (goal.measured.as_str(), goal.reached),
                (shown, Some(reached)),
                "{case}"
            );
            assert_eq!(clean.reached, Some(true), "{case}");
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut slices = slices(&[1_000]);
        slices[0].held.tally.accepted += 1;
        assert_eq!(judge(&slices)[1].reached, Some(false));
    }
}
