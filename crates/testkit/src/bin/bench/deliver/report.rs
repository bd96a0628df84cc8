//! The run as Markdown, ready for `docs/PERFORMANCE.md`.

use super::growth::{Step, rate};
use super::{CONNECTIONS, Flow, Options, Sustained, goals};
use crate::goals::{hundredths, mebibytes};
use crate::measure::Subject;
use crate::report::{machine, milliseconds, write_goals};
use std::fmt::{Result, Write as _};
use std::time::Duration;
use testkit::Backend;

pub(super) fn markdown(options: &Options, sustained: &[Sustained], steps: &[Step]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, sustained, steps);
    text
}

fn write_all(
    text: &mut String,
    options: &Options,
    sustained: &[Sustained],
    steps: &[Step],
) -> Result {
    write_preamble(text, options)?;
    write_rates(text, sustained)?;
    write_delays(text, sustained)?;
    if !steps.is_empty() {
        write_steps(text, steps)?;
    }
    write_goals(text, &goals::judge(sustained, steps))?;
    let runs = sustained
        .iter()
        .flat_map(|run| [&run.full, &run.calm].map(|flow| (run.backend, flow)));
    let neighbours = steps
        .iter()
        .flat_map(|step| step.flows().map(|flow| (step.backend, flow)));
    for (backend, flow) in runs.chain(neighbours) {
        write_failures(text, backend, flow)?;
    }
    Ok(())
}

fn write_preamble(text: &mut String, options: &Options) -> Result {
    writeln!(
        text,
        "Machine: {}. Load generator, server, database and callback receiver share it; server and \
         generator have the same allocator, mimalloc. {CONNECTIONS} connections, one receiver. The \
         simulated network reports after {} ms. At most {} messages are under way: beyond, the \
         generator waits, so messages come in as fast as they go out. {} s after a warm-up of \
         {} s; “delivered/s” counts callbacks answered `OK`, from the first request to the last \
         callback.\n",
        machine(),
        options.simulator_delay_ms,
        options.outstanding,
        options.sustained.as_secs(),
        options.warm_up.as_secs(),
    )
}

fn write_rates(text: &mut String, sustained: &[Sustained]) -> Result {
    writeln!(
        text,
        "| server | messages | accepted/s | delivered/s | left at the end | request p50 ms | request p99 ms | peak MiB | bytes a message | missing | repeated |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for run in sustained {
        let (load, tally) = (&run.full.load, &run.full.tally);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            name(run.backend),
            tally.accepted,
            load.rate(),
            run.full.delivered_rate(),
            run.full.backlog,
            milliseconds(load.latency.percentile(50)),
            milliseconds(load.latency.percentile(99)),
            mebibytes(run.memory.peak_kib),
            run.bytes_per_message,
            tally.missing(),
            tally.repeated,
        )?;
    }
    Ok(())
}

fn write_delays(text: &mut String, sustained: &[Sustained]) -> Result {
    writeln!(
        text,
        "\nFrom the answer to the request until its callback, the simulated network's time \
         included; with the most under way, and with few:\n\n\
         | server | under way, at most | delivered/s | delay p50 ms | p99 ms | max ms |\n\
         |---|--:|--:|--:|--:|--:|"
    )?;
    for run in sustained {
        for flow in [&run.full, &run.calm] {
            let delay = &flow.tally.delay;
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                name(run.backend),
                flow.outstanding,
                flow.delivered_rate(),
                milliseconds(delay.percentile(50)),
                milliseconds(delay.percentile(99)),
                milliseconds(delay.max()),
            )?;
        }
    }
    Ok(())
}

fn write_steps(text: &mut String, steps: &[Step]) -> Result {
    writeln!(
        text,
        "\nWith scheduled messages waiting, beside a fresh server with none, measured by turns:\n\n\
         | server | waiting | delivered/s | with none waiting | of that | delay p99 ms, worst turn |\n\
         |---|--:|--:|--:|--:|--:|"
    )?;
    for step in steps {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            name(step.backend),
            step.waiting,
            rate(&step.with),
            rate(&step.none),
            hundredths(step.percent_of_none()),
            milliseconds(worst_p99(&step.with)),
        )?;
    }
    Ok(())
}

pub(super) fn worst_p99(turns: &[Flow]) -> Duration {
    let p99 = turns.iter().map(|flow| flow.tally.delay.percentile(99));
    p99.max().unwrap_or_default()
}

/// Why a flow is not clean: a rate made of errors is no rate.
pub(super) fn write_failures(text: &mut String, backend: Backend, flow: &Flow) -> Result {
    if flow.is_clean() {
        return Ok(());
    }
    let (load, tally) = (&flow.load, &flow.tally);
    let sample = load.wrong_sample.as_ref().or(load.failure_sample.as_ref());
    writeln!(
        text,
        "\n{} with at most {} under way: {} wrong answers, {} failed connections, {} connections \
         served, {} messages without callback, {} not delivered, {} unreadable{}; for instance: {}",
        name(backend),
        flow.outstanding,
        load.wrong,
        load.failed_connections,
        load.served_connections,
        tally.missing(),
        tally.undelivered,
        tally.unreadable,
        if load.stalled {
            ", given up without answers"
        } else {
            ""
        },
        sample.map_or("no sample", String::as_str),
    )
}

fn name(backend: Backend) -> &'static str {
    Subject::Switchboard(backend).name()
}
