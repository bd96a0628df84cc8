//! The result as Markdown, for `docs/PERFORMANCE.md`.

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
    write_goals(text, &goals::evaluate(sustained, steps))?;
    let runs = sustained
        .iter()
        .flat_map(|run| [&run.full, &run.light].map(|flow| (run.backend, flow)));
    let step_flows = steps
        .iter()
        .flat_map(|step| step.flows().map(|flow| (step.backend, flow)));
    for (backend, flow) in runs.chain(step_flows) {
        write_failures(text, backend, flow)?;
    }
    Ok(())
}

fn write_preamble(text: &mut String, options: &Options) -> Result {
    writeln!(
        text,
        "Machine: {}. Load generator, server, database and callback receiver share it; server and \
         generator have the same allocator, mimalloc. {CONNECTIONS} connections, one receiver. The \
         simulated network reports after {} ms. At most {} messages are in flight: above that, the \
         generator waits, so messages are accepted as fast as they are delivered. {} s after a warm-up of \
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
        let (load, totals) = (&run.full.load, &run.full.totals);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            name(run.backend),
            totals.accepted,
            load.rate(),
            run.full.delivered_rate(),
            run.full.backlog,
            milliseconds(load.latency.percentile(50)),
            milliseconds(load.latency.percentile(99)),
            mebibytes(run.memory.peak_kib),
            run.bytes_per_message,
            totals.missing(),
            totals.repeated,
        )?;
    }
    Ok(())
}

fn write_delays(text: &mut String, sustained: &[Sustained]) -> Result {
    writeln!(
        text,
        "\nFrom the answer to the request until its callback, including the time of the simulated network; \
         with many messages in flight, and with few:\n\n\
         | server | in flight, at most | delivered/s | delay p50 ms | p99 ms | max ms |\n\
         |---|--:|--:|--:|--:|--:|"
    )?;
    for run in sustained {
        for flow in [&run.full, &run.light] {
            let delay = &flow.totals.delay;
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
        "\nWith scheduled messages, compared with a new server without any, in turns:\n\n\
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
    let p99 = turns.iter().map(|flow| flow.totals.delay.percentile(99));
    p99.max().unwrap_or_default()
}

/// Writes why a flow is not clean, because a rate of errors is no result.
pub(super) fn write_failures(text: &mut String, backend: Backend, flow: &Flow) -> Result {
    if flow.is_clean() {
        return Ok(());
    }
    let (load, totals) = (&flow.load, &flow.totals);
    let sample = load.wrong_sample.as_ref().or(load.failure_sample.as_ref());
    writeln!(
        text,
        "\n{} with at most {} in flight: {} wrong answers, {} failed connections, {} connections \
         served, {} messages without callback, {} not delivered, {} unreadable{}; for instance: {}",
        name(backend),
        flow.outstanding,
        load.wrong,
        load.failed_connections,
        load.served_connections,
        totals.missing(),
        totals.undelivered,
        totals.unreadable,
        if load.stalled {
            ", aborted because answers stopped"
        } else {
            ""
        },
        sample.map_or("no sample", String::as_str),
    )
}

fn name(backend: Backend) -> &'static str {
    Subject::Switchboard(backend).name()
}
