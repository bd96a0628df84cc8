//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::{CachedResult, CorrectionResult};
use crate::goals::{Goal, hundredths};
use crate::report::{machine, write_goals};
use std::fmt::Write as _;
use std::time::Duration;
use testkit::load::Report;

const MIN_TIMES_PYTHON: u64 = 20;
const MIN_PERCENT_OF_BARE: u64 = 80;

pub(super) fn markdown(
    seconds: u64,
    corrections: &[CorrectionResult],
    cached: &[CachedResult],
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, seconds, corrections, cached);
    text
}

fn write_all(
    text: &mut String,
    seconds: u64,
    corrections: &[CorrectionResult],
    cached: &[CachedResult],
) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Load generator and server share it. {seconds} s for each figure; Python is phonenumbers on one core with \
         the same list; over HTTP in arrays of 1,000; “of bare” compares with a handler that has the same bytes in memory.\n",
        machine(),
    )?;
    writeln!(
        text,
        "| corrections a second | numbers | Python | one thread | all cores | over HTTP | times Python, over HTTP | failures |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for list in corrections {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            list.name,
            list.numbers,
            list.python,
            list.process.corrections,
            list.process.corrections_on_all_cores,
            list.over_http(),
            list.over_http() / list.python.max(1),
            failures(&list.http),
        )?;
    }
    writeln!(
        text,
        "\n| answer | bytes | bare requests/s | requests/s | of bare | failures |\n|---|--:|--:|--:|--:|--:|"
    )?;
    for row in cached {
        writeln!(
            text,
            "| `GET {}` | {} | {} | {} | {} | {} |",
            row.path,
            row.bytes,
            row.bare.rate(),
            row.service.rate(),
            hundredths(percent(row)),
            failures(&row.service),
        )?;
    }
    if let Some(list) = corrections.first() {
        writeln!(
            text,
            "\nPrefix lookups by one thread: {} a second. The reference data is loaded in {:.1} ms.",
            list.process.lookups,
            Duration::from_micros(list.process.load_us).as_secs_f64() * 1e3
        )?;
    }
    write_goals(text, &goals(corrections, cached))
}

fn goals(corrections: &[CorrectionResult], cached: &[CachedResult]) -> Vec<Goal> {
    let lowest = |rate: &dyn Fn(&CorrectionResult) -> u64| {
        let times = corrections
            .iter()
            .map(|list| rate(list) / list.python.max(1))
            .min();
        times.map(|times| {
            (
                format!("{times} times, on the slower list"),
                times >= MIN_TIMES_PYTHON,
            )
        })
    };
    let mut goals = vec![
        Goal::new(
            "corrections in one process at least 20 times Python's",
            lowest(&|list| list.process.corrections),
        ),
        Goal::new(
            "corrections over HTTP at least 20 times Python's",
            lowest(&CorrectionResult::over_http),
        ),
    ];
    goals.extend(cached.iter().map(|row| {
        let shown = (
            hundredths(percent(row)),
            percent(row) >= MIN_PERCENT_OF_BARE,
        );
        Goal::new(
            format!("`GET {}` at least 0.80 of bare", row.path),
            Some(shown),
        )
    }));
    let lookups = corrections.iter().map(|list| list.process.lookups).min();
    goals.push(Goal::new(
        "a prefix lookup under 500 ns",
        lookups.map(|rate| {
            let nanoseconds = 1_000_000_000 / rate.max(1);
            (format!("{nanoseconds} ns"), nanoseconds < 500)
        }),
    ));
    goals
}

fn percent(row: &CachedResult) -> u64 {
    row.service.rate() * 100 / row.bare.rate().max(1)
}

fn failures(report: &Report) -> u64 {
    report.wrong + report.failed_connections
}
