//! `bench open-transaction`: how much an open transaction slows down the delivery of messages.
//!
//! While it is open, vacuum cannot remove row versions that were replaced since. Queries for rows that change often
//! have to skip more of them every second.

mod options;

pub(crate) use options::Options;

use super::flow::{self, Flow, FlowSettings};
use super::report::write_failures;
use super::target::Target;
use super::{CONNECTIONS, Options as FlowOptions};
use crate::accept::check_prerequisites;
use crate::goals::{Goal, hundredths};
use crate::report::{machine, write_goals};
use anyhow::{Context, Result};
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};
use testkit::Backend;

const MIN_PERCENT_OF_BASELINE: u64 = 90;
/// Only the last third of the slices counts, because the effect grows over time.
const LAST_SHARE: usize = 3;

/// The same time on both databases, one after the other, because the speed of a machine drifts.
struct Slice {
    /// How long the transaction had been open at the end of the slice.
    held_for: Duration,
    baseline: Flow,
    held: Flow,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let flows = &options.flows;
    check_prerequisites(&flows.switchboard)?;
    let baseline = Target::start(flows, Backend::Postgres)?;
    let held = Target::start(flows, Backend::Postgres)?;
    baseline.warm_up(flows)?;
    held.warm_up(flows)?;
    let database = held
        .server
        .database()
        .context("the server has no PostgreSQL database")?;
    let mut snapshot = database.hold_snapshot()?;
    let opened_at = Instant::now();
    let mut slices = Vec::new();
    for turn in 0..options.slices() {
        slices.push(slice(options, turn, opened_at, &baseline, &held)?);
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

/// Every second turn has the reverse order.
fn slice(
    options: &Options,
    turn: u64,
    opened_at: Instant,
    baseline: &Target,
    held: &Target,
) -> Result<Slice> {
    eprintln!("slice {} of {} …", turn + 1, options.slices());
    let settings = FlowSettings::new(options.slice, options.flows.outstanding);
    let baseline_first = turn.is_multiple_of(2);
    let early = baseline_first
        .then(|| flow::run(baseline, &settings))
        .transpose()?;
    let held = flow::run(held, &settings)?;
    let baseline = match early {
        Some(baseline) => baseline,
        None => flow::run(baseline, &settings)?,
    };
    let held_for = opened_at.elapsed();
    Ok(Slice {
        held_for,
        baseline,
        held,
    })
}

/// The rate with the transaction in percent of the rate without it.
fn percent(slices: &[Slice]) -> u64 {
    let sum = |flow: fn(&Slice) -> &Flow| -> u64 {
        slices
            .iter()
            .map(|slice| flow(slice).delivered_rate())
            .sum()
    };
    sum(|slice| &slice.held) * 100 / sum(|slice| &slice.baseline).max(1)
}

/// The slices that count.
fn last(slices: &[Slice]) -> &[Slice] {
    let count = slices.len().div_ceil(LAST_SHARE);
    &slices[slices.len() - count..]
}

fn write_all(text: &mut String, options: &Options, slices: &[Slice]) -> fmt::Result {
    let FlowOptions {
        simulator_delay_ms,
        outstanding,
        ..
    } = &options.flows;
    writeln!(
        text,
        "Machine: {}. Load generator, servers, PostgreSQL and callback receiver share it. Two new databases on one \
         PostgreSQL with its default settings, each with one server, measured in turns of {} s. In one of them a \
         transaction (REPEATABLE READ, one SELECT done) is open from the first slice to the last. {CONNECTIONS} \
         connections, at most {outstanding} messages in flight; the simulated network reports after \
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
        messages += slice.held.totals.called_back;
        writeln!(
            text,
            "| {} | {} | {} | {} | {messages} |",
            slice.held_for.as_secs(),
            slice.baseline.delivered_rate(),
            slice.held.delivered_rate(),
            hundredths(percent(std::slice::from_ref(slice))),
        )?;
    }
    write_goals(text, &evaluate(slices))?;
    for flow in slices
        .iter()
        .flat_map(|slice| [&slice.baseline, &slice.held])
    {
        write_failures(text, Backend::Postgres, flow)?;
    }
    Ok(())
}

fn evaluate(slices: &[Slice]) -> [Goal; 2] {
    let last = last(slices);
    let ratio = percent(last);
    let mut flows = slices
        .iter()
        .flat_map(|slice| [&slice.baseline, &slice.held]);
    let clean = flows.all(Flow::is_clean);
    let shown = if clean { "all" } else { "see below" };
    [
        Goal::new(
            format!(
                "PostgreSQL: with a transaction held open at least 0.90 of the rate without, over the last {} slices",
                last.len()
            ),
            (!last.is_empty()).then(|| (hundredths(ratio), ratio >= MIN_PERCENT_OF_BASELINE)),
        ),
        Goal::new(
            "every request answered 200, every message called back as delivered",
            Some((shown.into(), clean)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Flow, Slice, evaluate, last};
    use std::time::Duration;

    fn slices(held: &[u64]) -> Vec<Slice> {
        let slice = |held: &u64| Slice {
            held_for: Duration::ZERO,
            baseline: Flow::with_rate(1_000),
            held: Flow::with_rate(*held),
        };
        held.iter().map(slice).collect()
    }

    #[test]
    fn the_last_slices_count() {
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
            let [goal, clean] = evaluate(&slices);
            assert_eq!(
                (goal.measured.as_str(), goal.reached),
                (shown, Some(reached)),
                "{case}"
            );
            assert_eq!(clean.reached, Some(true), "{case}");
        }
    }

    #[test]
    fn a_missing_callback_fails_its_goal() {
        let mut slices = slices(&[1_000]);
        slices[0].held.totals.accepted += 1;
        assert_eq!(evaluate(&slices)[1].reached, Some(false));
    }
}
