//! Logs and metrics: where they go.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Upper bounds of the buckets that answer times are counted in, in seconds.
const ANSWER_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0];

/// Reads `info`, or a list such as `info,access=debug`.
pub(crate) fn parse_level(level: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(level).with_context(|| format!("log.level '{level}' is not understood"))
}

/// From here on, log lines go to standard error: as text on a terminal, as JSON otherwise.
pub(crate) fn start_logs(log: &Log) -> anyhow::Result<()> {
    let json = match log.format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(parse_level(&log.level)?)
        .with_writer(std::io::stderr);
    if json {
        lines.json().flatten_event(true).init();
    } else {
        lines.with_ansi(std::io::stderr().is_terminal()).init();
    }
    Ok(())
}

/// From here on, what is counted is kept; the handle writes it out.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let answers = Matcher::Full("switchboard_http_request_seconds".to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(answers, &ANSWER_BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics are kept by something else already")?;
    describe();
    Ok(handle)
}

fn describe() {
    metrics::describe_counter!(
        "switchboard_http_requests_total",
        "Requests answered, by class of status."
    );
    metrics::describe_counter!(
        "switchboard_http_requests_shed_total",
        "Requests answered 503 because too many were in flight."
    );
    metrics::describe_histogram!(
        "switchboard_http_request_seconds",
        "Time from a request's head to its answer."
    );
    metrics::describe_counter!(
        "switchboard_messages_accepted_total",
        "Messages stored, one for each recipient."
    );
    metrics::describe_counter!("switchboard_parts_accepted_total", "SMS parts stored.");
    metrics::describe_counter!(
        "switchboard_accept_batches_total",
        "Transactions that stored messages."
    );
    metrics::describe_counter!(
        "switchboard_accept_failures_total",
        "Transactions that failed to store messages."
    );
    metrics::describe_counter!(
        "switchboard_messages_cancelled_total",
        "Scheduled messages that were cancelled."
    );
}
