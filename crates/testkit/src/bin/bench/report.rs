//! The run as Markdown, ready for `docs/PERFORMANCE.md`.

use crate::accept::Pair;
use crate::goals::{self, Goal, hundredths, mebibytes};
use crate::measure::Row;
use crate::options::Options;
use crate::soak::{self, Soak};
use std::fmt::Write as _;
use std::time::Duration;
use std::{fs, thread};

pub(crate) fn markdown(options: &Options, pairs: &[Pair], soak: Option<&Soak>) -> String {
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
         allocator, mimalloc. Each row: a fresh server, {} s after a warm-up of {} s; “of bare” is \
         the rate beside the bare handler measured right before.\n",
        machine(),
        options.measured.as_secs(),
        options.warm_up.as_secs(),
    )?;
    write_rows(text, pairs)?;
    if let Some(soak) = soak {
        write_soak(text, soak)?;
    }
    write_goals(text, &goals::judge(pairs, soak))?;
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

/// The table of goals, under whatever was measured.
pub(crate) fn write_goals(text: &mut String, goals: &[Goal]) -> std::fmt::Result {
    writeln!(text, "\n| goal | measured | reached |\n|---|--:|---|")?;
    for goal in goals {
        let reached = match goal.reached {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        writeln!(text, "| {} | {} | {reached} |", goal.text, goal.measured)?;
    }
    Ok(())
}

/// The first wrong answer of each row that had one: a rate made of errors is no rate.
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
                ", given up without answers"
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

pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// `2 cores, MODEL, 8 GiB`, as far as the system tells.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|total| total.trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(String::new(), |kib| {
            format!(", {} GiB", (kib + (1 << 19)) >> 20)
        });
    format!("{cores} cores, {model}{memory}")
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
