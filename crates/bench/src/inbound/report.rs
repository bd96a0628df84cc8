//! The result as Markdown, for `docs/PERFORMANCE.md`.

use super::{Options, Row, goals};
use crate::goals::mebibytes;
use crate::report::{machine, milliseconds, write_goals};
use std::fmt::{Result, Write as _};

pub(super) fn markdown(options: &Options, rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rows);
    text
}

fn write_all(text: &mut String, options: &Options, rows: &[Row]) -> Result {
    writeln!(
        text,
        "Machine: {}. Carrier, server, database and callback receiver share it. {} sessions, at most {} unanswered \
         `deliver_sm` on each, at most {} messages delivered and not called back. {} s after a warm-up of {} s, a new \
         server each turn; until every message is called back. {} old messages in the database. Microseconds of \
         processor time for each message.\n",
        machine(),
        options.sessions,
        options.window,
        options.outstanding,
        options.timed.measured.as_secs(),
        options.warm_up.as_secs(),
        options.rows,
    )?;
    write_rates(text, rows)?;
    write_delays(text, rows)?;
    write_goals(text, &goals::evaluate(rows))
}

fn write_rates(text: &mut String, rows: &[Row]) -> Result {
    writeln!(
        text,
        "| server | messages | messages/s | service | of it system | database | carrier and receiver | peak MiB | missing | repeated | refused | unanswered | unreadable |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        let totals = &row.totals;
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name(),
            totals.delivered,
            totals.rate(),
            row.per_message(row.spent.nodes.total()),
            row.per_message(row.spent.nodes.system),
            row.per_message(row.spent.database.total()),
            row.per_message(row.spent.benchmark.total()),
            mebibytes(row.peak_kib),
            totals.missing(),
            totals.repeated,
            totals.refused,
            totals.unanswered(),
            totals.unreadable,
        )?;
    }
    Ok(())
}

fn write_delays(text: &mut String, rows: &[Row]) -> Result {
    writeln!(
        text,
        "\nFrom the `deliver_sm` to its answer, and to the callback:\n\n\
         | server | answer p50 ms | p99 ms | max ms | callback p50 ms | p99 ms | max ms |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        write!(text, "| {} |", row.name())?;
        for latencies in [&row.totals.answer, &row.totals.delay] {
            let percentile = |percent| milliseconds(latencies.percentile(percent));
            let max = milliseconds(latencies.max());
            write!(text, " {} | {} | {max} |", percentile(50), percentile(99))?;
        }
        writeln!(text)?;
    }
    Ok(())
}
