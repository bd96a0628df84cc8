//! The table of `bench smpp-server`.

use super::{BINDS, CHAIN_WINDOW, CONNECTIONS, IDLE_BINDS, Row, WARM_UP, WINDOW};
use crate::goals::{Goal, hundredths, mebibytes, percent};
use crate::measure::Subject;
use crate::options::Timed;
use crate::report::{machine, write_goals};
use std::fmt::Write as _;

/// SMPP in percent of REST.
const MIN_PERCENT: u64 = 150;
const MAX_IDLE_MIB: u64 = 100;
const MIN_CHAIN_RATE: u64 = 6_000;

pub(super) fn markdown(options: &Timed, rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rows);
    text
}

fn write_all(text: &mut String, options: &Timed, rows: &[Row]) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Clients, servers and database share it. REST: {CONNECTIONS} connections to `POST /sms`; SMPP: {BINDS} \
         binds with a window of {WINDOW}; scheduled messages, so that only their acceptance is measured. Chain: from \
         `submit_sm` to a service, by SMPP with a window of {CHAIN_WINDOW} to a second one, and back to the receipt; \
         or from `POST /sms` to the answered callback. {} s after a warm-up of {} s.\n",
        machine(),
        options.measured.as_secs(),
        WARM_UP.as_secs(),
    )?;
    writeln!(
        text,
        "| server | REST messages/s | SMPP messages/s | SMPP / REST | memory, {IDLE_BINDS} idle binds | chain messages/s | missing, repeated | chain from REST |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} MiB | {} | {}, {} | {} |",
            Subject::Switchboard(row.backend).name(),
            row.rest,
            row.smpp,
            hundredths(percent(row.smpp, row.rest)),
            mebibytes(row.idle_kib),
            row.chain.rate,
            row.chain.missing,
            row.chain.repeated,
            row.chain_from_rest.rate()
        )?;
    }
    let goals: Vec<Goal> = rows.iter().flat_map(goals).collect();
    write_goals(text, &goals)
}

fn goals(row: &Row) -> [Goal; 3] {
    let name = Subject::Switchboard(row.backend).name();
    let times = percent(row.smpp, row.rest);
    let idle = mebibytes(row.idle_kib);
    let chain = row.chain.rate;
    [
        Goal::new(
            format!(
                "{name}: SMPP is at least {} times REST",
                hundredths(MIN_PERCENT)
            ),
            Some((hundredths(times), times >= MIN_PERCENT)),
        ),
        Goal::new(
            format!("{name}: less than {MAX_IDLE_MIB} MiB with {IDLE_BINDS} idle binds"),
            Some((format!("{idle} MiB"), idle < MAX_IDLE_MIB)),
        ),
        Goal::new(
            format!("{name}: at least {MIN_CHAIN_RATE} messages a second through two services"),
            Some((format!("{chain}/s"), chain >= MIN_CHAIN_RATE)),
        ),
    ]
}
