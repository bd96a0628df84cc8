//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::database_work::DatabaseWork;
use super::turn::Turn;
use super::{Build, Options, Path, Series, Subject, goals};
use crate::gateways::CONNECTIONS;
use crate::goals::mebibytes;
use crate::report::{machine, median, milliseconds, write_goals};
use std::fmt::{Result, Write as _};
use std::time::Duration;

pub(super) fn markdown(options: &Options, series: &[Series]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, series);
    text
}

impl Series {
    /// The median over the turns.
    pub(super) fn median(&self, value: impl Fn(&Turn) -> u64) -> u64 {
        median(self.turns.iter().map(value))
    }
}

fn write_all(text: &mut String, options: &Options, series: &[Series]) -> Result {
    writeln!(
        text,
        "Machine: {}. Everything shares it. {CONNECTIONS} connections, {} messages a turn after a warm-up of a tenth of \
         that, a new server and database each turn, medians of {} turns. Processor time in microseconds a message.",
        machine(),
        options.messages,
        options.turns,
    )?;
    for (path, heading) in [
        (Path::Accept, "Accepted and stored (`--roles api`)"),
        (
            Path::Whole,
            "From the request over SMPP to the answered callback",
        ),
    ] {
        let rows = series.iter().filter(|series| series.path == path);
        write_times(text, heading, rows)?;
    }
    write_work(text, series)?;
    for series in series {
        if let Some(turn) = series.turns.last().filter(|_| is_this_build(series)) {
            write_statements(text, &format!("{:?}", series.path), turn)?;
        }
    }
    write_goals(text, &goals::evaluate(series))
}

fn write_times<'a>(
    text: &mut String,
    heading: &str,
    rows: impl Iterator<Item = &'a Series>,
) -> Result {
    writeln!(
        text,
        "\n| {heading} | service | of it system | database | generator and receiver | messages/s | request p99 ms | peak MiB | failures |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        let time = |time: fn(&Turn) -> Duration| row.median(|turn| turn.per_message(time(turn)));
        let p99 = row.median(|turn| u64::try_from(turn.p99.as_micros()).unwrap_or(u64::MAX));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.subject.name(),
            time(|turn| turn.nodes.total()),
            time(|turn| turn.nodes.system),
            time(|turn| turn.database.total()),
            time(|turn| turn.benchmark.total()),
            row.median(|turn| turn.rate),
            milliseconds(Duration::from_micros(p99)),
            mebibytes(row.median(|turn| turn.peak_kib)),
            row.turns.iter().map(|turn| turn.failures).sum::<u64>(),
        )?;
    }
    Ok(())
}

fn write_work(text: &mut String, series: &[Series]) -> Result {
    writeln!(
        text,
        "\n| PostgreSQL, for each message | statements | commits | rows inserted | updated | of it HOT | deleted | index entries | WAL bytes | and whole pages |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in series {
        // The median would mix turns; the counts hardly differ between them.
        let Some((turn, work)) = row.turns.last().and_then(|turn| Some((turn, turn.work?))) else {
            continue;
        };
        let path = match row.path {
            Path::Accept => "accepted",
            Path::Whole => "end to end",
        };
        write!(text, "| {path}, {} |", row.subject.name())?;
        for count in counts(&work) {
            write!(text, " {} |", decimal(count, turn.messages))?;
        }
        for bytes in [work.record_bytes, work.page_bytes] {
            write!(text, " {} |", bytes / turn.messages.max(1))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn counts(work: &DatabaseWork) -> [u64; 7] {
    [
        work.statements,
        work.commits,
        work.inserted,
        work.hot_updated + work.updated,
        work.hot_updated,
        work.deleted,
        work.index_entries,
    ]
}

/// A quotient with two decimal places.
fn decimal(count: u64, messages: u64) -> String {
    crate::goals::hundredths(count * 100 / messages.max(1))
}

fn is_this_build(series: &Series) -> bool {
    matches!(
        series.subject,
        Subject::Service {
            build: Build::This,
            nodes: 1,
            ..
        }
    )
}

/// Writes the statements of a turn, if it has any.
pub(crate) fn write_statements(text: &mut String, name: &str, turn: &Turn) -> Result {
    if turn.statements.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\nStatements, {name}, in the last turn:\n\n| calls | rows | µs a message | statement |\n|--:|--:|--:|---|",
    )?;
    for statement in &turn.statements {
        let time = decimal(statement.microseconds, turn.messages);
        let text_start: String = statement.text.chars().take(160).collect();
        let shown = text_start.replace('|', "\\|");
        writeln!(
            text,
            "| {} | {} | {time} | `{shown}` |",
            statement.calls, statement.rows
        )?;
    }
    Ok(())
}
