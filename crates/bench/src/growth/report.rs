//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::{Comparison, Options, goals};
use crate::cost::report::write_statements;
use crate::cost::turn::Turn;
use crate::gateways::CONNECTIONS;
use crate::goals::hundredths;
use crate::measure::Subject;
use crate::report::{machine, median, write_goals};
use std::fmt::{Result, Write as _};

pub(super) fn markdown(options: &Options, comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, comparisons);
    text
}

fn write_all(text: &mut String, options: &Options, comparisons: &[Comparison]) -> Result {
    writeln!(
        text,
        "Machine: {}. Everything shares it. From the request over SMPP to the answered callback, {CONNECTIONS} \
         connections. Each row compares a grown installation with a small one, which has one account, one carrier and \
         an empty database at first, in {} turns of {} messages each, after a warm-up of a tenth of that. Processor \
         time in microseconds a message; values are medians, ratios are the medians of the ratios of each turn.\n",
        machine(),
        options.turns,
        options.messages,
    )?;
    writeln!(
        text,
        "| database | with | service | database | both | small | ratio | messages/s | small | ratio | within 10 % |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    )?;
    for comparison in comparisons {
        write_row(text, comparison)?;
    }
    for comparison in comparisons {
        for (size, turns) in [("small", &comparison.small), ("grown", &comparison.grown)] {
            if let Some(turn) = turns.last() {
                write_statements(text, &format!("{}, {size}", comparison.name()), turn)?;
            }
        }
    }
    write_goals(text, &goals::evaluate(comparisons))
}

fn write_row(text: &mut String, comparison: &Comparison) -> Result {
    let of = |turns: &[Turn], value: fn(&Turn) -> u64| median(turns.iter().map(value));
    let (small, grown) = (&comparison.small, &comparison.grown);
    let (time, rate) = (comparison.time_percent(), comparison.rate_percent());
    writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        Subject::Switchboard(comparison.backend).name(),
        comparison.size,
        of(grown, |turn| turn.per_message(turn.nodes.total())),
        of(grown, |turn| turn.per_message(turn.database.total())),
        of(grown, Turn::service_and_database),
        of(small, Turn::service_and_database),
        hundredths(time),
        of(grown, |turn| turn.rate),
        of(small, |turn| turn.rate),
        hundredths(rate),
        verdict(goals::is_time_reached(time), goals::is_rate_reached(rate)),
    )
}

fn verdict(is_time_reached: bool, is_rate_reached: bool) -> &'static str {
    match (is_time_reached, is_rate_reached) {
        (true, true) => "yes",
        (false, true) => "**no** (time)",
        (true, false) => "**no** (rate)",
        (false, false) => "**no** (both)",
    }
}
