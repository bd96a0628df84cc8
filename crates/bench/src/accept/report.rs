//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::soak::{self, Soak};
use super::{Pair, goals};
use crate::goals::{hundredths, mebibytes};
use crate::measure::Row;
use crate::options::Options;
use crate::report::{machine, milliseconds, write_goals};
use std::fmt::Write as _;

pub(super) fn markdown(options: &Options, pairs: &[Pair], soak: Option<&Soak>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, pairs, soak);
    text
}

fn write_all(
    text: &mut String,
    options: &Options,
    pairs: &[Pair],
    soak: Option<&Soak>,
) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Load generator and server share it; the server only accepts (`--roles api`); server and bare handler have the same \
         allocator, mimalloc. Each row: a new server, {} s after a warm-up of {} s; “of bare” is \
         the rate divided by that of the bare handler, which was measured right before.\n",
        machine(),
        options.measured.as_secs(),
        options.warm_up.as_secs(),
    )?;
    write_rows(text, pairs)?;
    if let Some(soak) = soak {
        write_soak(text, soak)?;
    }
    write_goals(text, &goals::evaluate(pairs, soak))?;
    write_failures(text, pairs, soak)
}

fn write_rows(text: &mut String, pairs: &[Pair]) -> std::fmt::Result {
    writeln!(
        text,
        "| connections | server | requests/s | of bare | p50 ms | p99 ms | max ms | memory MiB | peak MiB | failures |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for pair in pairs {
        write_row(text, &pair.bare, "1.00")?;
        write_row(text, &pair.service, &hundredths(pair.percent_of_bare()))?;
    }
    Ok(())
}

fn write_row(text: &mut String, row: &Row, of_bare: &str) -> std::fmt::Result {
    let (load, memory) = (&row.load, row.memory);
    let missing = row.connections.saturating_sub(load.served_connections) as u64;
    writeln!(
        text,
        "| {} | {} | {} | {of_bare} | {} | {} | {} | {} | {} | {} |",
        row.connections,
        row.subject.name(),
        load.rate(),
        milliseconds(load.latency.percentile(50)),
        milliseconds(load.latency.percentile(99)),
        milliseconds(load.latency.max()),
        mebibytes(memory.now_kib),
        mebibytes(memory.peak_kib),
        load.wrong + load.failed_connections.max(missing),
    )
}

fn write_soak(text: &mut String, soak: &Soak) -> std::fmt::Result {
    writeln!(
        text,
        "\nOne server on SQLite, {} connections, {} bytes of database for each message:\n\n\
         | messages | requests/s | memory MiB | peak MiB |\n|--:|--:|--:|--:|",
        soak::CONNECTIONS,
        soak.bytes_per_message,
    )?;
    for step in &soak.steps {
        let (now, peak) = (
            mebibytes(step.memory.now_kib),
            mebibytes(step.memory.peak_kib),
        );
        writeln!(
            text,
            "| {} | {} | {now} | {peak} |",
            step.messages, step.rate
        )?;
    }
    Ok(())
}

/// Writes the first wrong answer of each row that had one, because a rate of errors is no result.
fn write_failures(text: &mut String, pairs: &[Pair], soak: Option<&Soak>) -> std::fmt::Result {
    let rows = pairs.iter().flat_map(|pair| [&pair.bare, &pair.service]);
    for row in rows.filter(|row| !row.is_clean()) {
        let load = &row.load;
        let sample = load.wrong_sample.as_ref().or(load.failure_sample.as_ref());
        writeln!(
            text,
            "\n{} at {} connections: {} wrong answers, {} failed connections{}; for instance: {}",
            row.subject.name(),
            row.connections,
            load.wrong,
            load.failed_connections,
            if load.stalled {
                ", aborted because answers stopped"
            } else {
                ""
            },
            sample.map_or("no sample", String::as_str),
        )?;
    }
    match soak.and_then(|soak| soak.wrong_sample.as_ref()) {
        Some(sample) => writeln!(text, "\nThe long run had a wrong answer: {sample}"),
        None => Ok(()),
    }
}
