//! The set-up of logs and metrics.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Log, LogFormat};

/// Upper bounds of the buckets of response times, in seconds.
const ANSWER_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0];

/// Starts logging to standard error: as text on a terminal, as JSON otherwise.
pub(crate) fn start_logs(log: &Log) -> anyhow::Result<()> {
    let terminal = std::io::stderr().is_terminal();
    let json = match log.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.with_ansi(terminal).boxed()
    };
    // The MCP library logs whole requests, including message texts; we log what is needed ourselves.
    let not_rmcp = filter_fn(|line| !line.target().starts_with("rmcp"));
    tracing_subscriber::registry()
        .with(lines.with_filter(log.targets()?.and(not_rmcp)))
        .init();
    Ok(())
}

/// Starts recording metrics; the handle renders them.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let answers = Matcher::Full("switchboard_http_request_seconds".to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(answers, &ANSWER_BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("another metrics recorder is set already")?;
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
    metrics::describe_counter!(
        "switchboard_http_connections_refused_total",
        "Connections closed at once because their address had too many."
    );
    metrics::describe_counter!(
        "switchboard_http_connections_stalled_total",
        "Connections closed because the client did not read its answer."
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
