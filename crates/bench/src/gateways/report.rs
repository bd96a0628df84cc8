//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::{CONNECTIONS, Gateway, Options, Row};
use crate::goals::{hundredths, mebibytes};
use crate::report::machine;
use std::fmt::{Result, Write as _};
use testkit::Backend;

/// The minimum rate on `SQLite`, in percent of that of the other gateway.
const GOALS: [(Gateway, u64); 2] = [(Gateway::Kannel, 200), (Gateway::KannelWithSpool, 300)];

pub(super) fn markdown(options: &Options, rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rows);
    text
}

fn write_all(text: &mut String, options: &Options, rows: &[Row]) -> Result {
    writeln!(
        text,
        "Machine: {}. Load generator, gateway, SMSC and callback receiver share it. {CONNECTIONS} connections, {} submits \
         in flight, receipts after {} ms, at most {} messages accepted and not called back. {} s after a warm-up of {} s, \
         in turns; a new gateway and SMSC each time.\n",
        machine(),
        options.window,
        options.delay_ms,
        options.outstanding,
        options.measured.as_secs(),
        options.warm_up.as_secs(),
    )?;
    writeln!(
        text,
        "| gateway | messages | end to end a second | peak MiB | missing | refused |\n|---|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.gateway.name(),
            row.flow.accepted,
            row.flow.rate(),
            mebibytes(row.peak_kib),
            row.flow.missing(),
            row.flow.refused,
        )?;
    }
    writeln!(
        text,
        "\n| rate on SQLite compared with | goal | reached |\n|---|--:|--:|"
    )?;
    let own_rate = mean(rows, Gateway::Switchboard(Backend::Sqlite));
    for (gateway, goal) in GOALS {
        let ratio = own_rate * 100 / mean(rows, gateway).max(1);
        let reached = if ratio >= goal { "yes" } else { "no" };
        writeln!(
            text,
            "| {}: {} | {} | {reached} |",
            gateway.name(),
            hundredths(ratio),
            hundredths(goal),
        )?;
    }
    Ok(())
}

/// The mean rate of the turns of a gateway.
fn mean(rows: &[Row], gateway: Gateway) -> u64 {
    let rates: Vec<u64> = rows
        .iter()
        .filter(|row| row.gateway == gateway)
        .map(|row| row.flow.rate())
        .collect();
    rates.iter().sum::<u64>() / u64::try_from(rates.len()).unwrap_or(1).max(1)
}
