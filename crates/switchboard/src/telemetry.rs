//! The set-up of logs and metrics.

mod catalogue;
mod traces;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Log, LogFormat, Traces};
pub(crate) use traces::TraceExport;

/// Upper bounds of the buckets of response times, in seconds.
const ANSWER_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0, 10.0];
/// From a second to three days.
const MESSAGE_BUCKETS: [f64; 11] = [
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 259_200.0,
];
const COMMIT_BUCKETS: [f64; 9] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];
/// A gauge that is not set for this long is no longer shown.
const GAUGE_LIFETIME: Duration = Duration::from_mins(10);

/// Starts logging to standard error: as text on a terminal, as JSON otherwise. Returns the export of traces, if the
/// configuration has one.
pub(crate) fn start_logs(log: &Log, traces: &Traces) -> anyhow::Result<Option<TraceExport>> {
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
    let (spans, export) = traces::layer(traces)?.unzip();
    tracing_subscriber::registry()
        .with(lines.with_filter(log.targets()?.and(not_rmcp)))
        .with(spans)
        .init();
    Ok(export)
}

/// Starts recording metrics; the handle renders them.
pub(crate) fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let mut builder =
        PrometheusBuilder::new().idle_timeout(MetricKindMask::GAUGE, Some(GAUGE_LIFETIME));
    for (name, buckets) in [
        ("switchboard_http_request_seconds", &ANSWER_BUCKETS[..]),
        ("switchboard_message_seconds", &MESSAGE_BUCKETS),
        ("switchboard_database_commit_seconds", &COMMIT_BUCKETS),
    ] {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("another metrics recorder is set already")?;
    catalogue::describe();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::catalogue::{Kind, METRICS, Metric};

    #[test]
    fn the_page_lists_every_metric() {
        let page = include_str!("../../../docs/METRICS.md");
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `switchboard_"));
        let rows: BTreeSet<&str> = rows.collect();
        let expected: BTreeSet<String> = METRICS
            .iter()
            .map(|metric| {
                let kind = match metric.kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Histogram => "histogram",
                };
                format!("| `{}` | {kind} | {} |", metric.series, metric.help)
            })
            .collect();
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(rows, expected);
    }

    /// The names in the sources of all crates.
    fn names_in_use() -> BTreeSet<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = std::fs::read_dir(crates).expect("the crates");
        let mut folders: Vec<PathBuf> = crates
            .map(|entry| entry.expect("a folder").path().join("src"))
            .filter(|folder| folder.is_dir())
            .collect();
        let mut names = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("telemetry.rs")
                    && !path.ends_with("telemetry/catalogue.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap_or_default();
                    let starts = text.match_indices("\"switchboard_");
                    let name = |(at, _)| text[at + 1..].split('"').next().map(str::to_owned);
                    let is_name =
                        |name: &String| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                    names.extend(starts.filter_map(name).filter(is_name));
                }
            }
        }
        names
    }

    #[test]
    fn the_catalogue_has_exactly_the_metrics_in_use() {
        let known = METRICS.iter().map(|metric| metric.name().to_owned());
        assert_eq!(names_in_use(), known.collect());
    }

    /// The metrics that a text names, without the endings of the series of histograms.
    fn names_in(text: &str) -> BTreeSet<&str> {
        let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let words = text.split(is_other);
        let names = words.filter(|word| word.starts_with("switchboard_"));
        names
            .map(|name| name.strip_suffix("_bucket").unwrap_or(name))
            .collect()
    }

    #[test]
    fn dashboard_and_alerts_use_only_metrics_that_exist() {
        let dashboard = include_str!("../../../deploy/grafana/switchboard.json");
        let parsed: serde_json::Value = serde_json::from_str(dashboard).expect("valid JSON");
        let panels = parsed["panels"].as_array().expect("panels");
        let ids: BTreeSet<u64> = panels
            .iter()
            .filter_map(|panel| panel["id"].as_u64())
            .collect();
        assert_eq!(ids.len(), panels.len(), "each panel has an ID of its own");
        let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
        let tests = include_str!("../../../deploy/prometheus/alerts_test.yml");
        let known: BTreeSet<&str> = METRICS.iter().map(Metric::name).collect();
        for (file, text) in [
            ("dashboard", dashboard),
            ("alerts", alerts),
            ("tests", tests),
        ] {
            let names = names_in(text);
            assert!(names.len() >= 5, "{file}");
            assert_eq!(names.difference(&known).next(), None, "{file}");
        }
    }

    /// Every alert rule is on the page.
    #[test]
    fn the_page_lists_every_alert() {
        let page = include_str!("../../../docs/METRICS.md");
        let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
        let lines = alerts.lines().map(str::trim_start);
        for name in lines.filter_map(|line| line.strip_prefix("- alert: ")) {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn names_follow_the_conventions() {
        let names: BTreeSet<&str> = METRICS.iter().map(Metric::name).collect();
        assert_eq!(names.len(), METRICS.len(), "a name twice");
        for metric in METRICS {
            let name = metric.name();
            let is_counter = metric.kind == Kind::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            let is_time = metric.kind == Kind::Histogram;
            assert!(!is_time || name.ends_with("_seconds"), "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
        }
    }
}
