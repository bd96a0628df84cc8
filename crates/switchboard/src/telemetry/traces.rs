//! Exports the steps of traced messages as spans to an OpenTelemetry collector, by OTLP over HTTP as JSON.
//!
//! The log lines of those steps are what is exported: a line that has a `parent_id` is a span. Spans are best effort: they
//! wait in a bounded queue, and those that find it full, or that the collector does not take, are dropped and counted.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use domain::Clock as _;
use engine::clock::SystemClock;
use outbound::ApiClient;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{Collector, Traces};

/// How many spans wait for the collector at most.
const QUEUE: usize = 16_384;
/// How many spans a request has at most.
const BATCH: usize = 512;
const EXPORT_EVERY: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often a request is sent before its spans are dropped.
const TRIES: u32 = 3;
/// Kinds of spans, as OTLP numbers them.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// A layer that queues spans, and what sends them; `None` without a collector.
pub(super) fn layer<S>(
    traces: &Traces,
) -> anyhow::Result<Option<(impl Layer<S> + use<S>, TraceExport)>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let Some(collector) = traces.collector()? else {
        return Ok(None);
    };
    let (queue, spans) = mpsc::channel(QUEUE);
    let is_span = filter_fn(|line| line.fields().field("parent_id").is_some());
    let export = TraceExport {
        client: ApiClient::new(&collector.base, TIMEOUT),
        collector,
        spans,
        is_failing: false,
    };
    Ok(Some((SpanLayer { queue }.with_filter(is_span), export)))
}

struct SpanLayer {
    queue: mpsc::Sender<Span>,
}

impl<S: Subscriber> Layer<S> for SpanLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut span = Span::default();
        event.record(&mut span);
        if !span.is_sampled {
            return;
        }
        span.ended_us = SystemClock.now().as_microsecond();
        if self.queue.try_send(span).is_err() {
            count("dropped", 1);
        }
    }
}

fn count(outcome: &'static str, spans: usize) {
    let spans = u64::try_from(spans).unwrap_or(u64::MAX);
    metrics::counter!("switchboard_spans_total", "outcome" => outcome).increment(spans);
}

/// A step of a message.
#[derive(Debug, Default)]
struct Span {
    name: String,
    trace_id: String,
    parent_id: String,
    /// Its ID, if others know it.
    id: Option<String>,
    is_sampled: bool,
    /// When it began; by default, when it ended.
    began_us: Option<i64>,
    ended_us: i64,
    attributes: Vec<Value>,
    has_failed: bool,
}

impl Span {
    fn add(&mut self, field: &Field, value: &Value) {
        let key = format!("switchboard.{}", field.name());
        self.attributes.push(json!({ "key": key, "value": value }));
    }

    fn add_text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.name = text,
            "trace_id" => self.trace_id = text,
            "parent_id" => self.parent_id = text,
            "span_id" => self.id = Some(text),
            name => {
                self.has_failed |= name == "outcome" && text == "failed";
                self.add(field, &json!({ "stringValue": text }));
            }
        }
    }

    fn to_json(&self) -> Value {
        let (kind, span_id) = match &self.id {
            Some(id) => (CLIENT, id.clone()),
            None => (INTERNAL, random_id()),
        };
        let nanoseconds = |microseconds: i64| format!("{microseconds}000");
        let mut span = json!({
            "traceId": self.trace_id,
            "spanId": span_id,
            "parentSpanId": self.parent_id,
            "name": self.name,
            "kind": kind,
            "startTimeUnixNano": nanoseconds(self.began_us.unwrap_or(self.ended_us)),
            "endTimeUnixNano": nanoseconds(self.ended_us),
            "attributes": self.attributes,
        });
        if self.has_failed {
            span["status"] = json!({ "code": 2 });
        }
        span
    }
}

fn random_id() -> String {
    let mut id = [0; 8];
    getrandom::fill(&mut id).expect("the operating system gives random bytes");
    format!("{:016x}", u64::from_ne_bytes(id).max(1))
}

impl Visit for Span {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "began_us" {
            self.began_us = Some(value);
        } else {
            // OTLP writes whole numbers as text.
            self.add(field, &json!({ "intValue": value.to_string() }));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, &json!({ "intValue": value.to_string() }));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "sampled" {
            self.is_sampled = value;
        } else {
            self.add(field, &json!({ "boolValue": value }));
        }
    }
}

/// Sends spans to the collector.
pub(crate) struct TraceExport {
    client: ApiClient,
    collector: Collector,
    spans: mpsc::Receiver<Span>,
    /// Whether the last request failed, which is logged once.
    is_failing: bool,
}

/// A running export.
pub(crate) struct RunningExport {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningExport {
    /// Sends what is queued, once.
    pub(crate) async fn finish(self) {
        if self.stop.send(()).is_ok() {
            let _ = self.task.await;
        }
    }
}

impl TraceExport {
    pub(crate) fn start(self) -> RunningExport {
        let (stop, stopped) = oneshot::channel();
        RunningExport {
            stop,
            task: tokio::spawn(self.run(stopped)),
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(EXPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tries = TRIES;
        while tries > 1 {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = &mut stopped => tries = 1,
            }
            loop {
                let mut batch = Vec::new();
                while batch.len() < BATCH
                    && let Ok(span) = self.spans.try_recv()
                {
                    batch.push(span.to_json());
                }
                if batch.is_empty() {
                    break;
                }
                self.export(batch, tries).await;
            }
        }
    }

    async fn export(&mut self, spans: Vec<Value>, tries: u32) {
        let count_spans = spans.len();
        let body = Bytes::from(request_body(&spans).to_string());
        let mut result = self.send(body.clone()).await;
        for _ in 1..tries {
            match &result {
                Err(ExportError { may_work_later, .. }) if *may_work_later => {
                    tokio::time::sleep(EXPORT_EVERY).await;
                    result = self.send(body.clone()).await;
                }
                _ => break,
            }
        }
        let was_failing = std::mem::replace(&mut self.is_failing, result.is_err());
        match result {
            Ok(()) => count("exported", count_spans),
            Err(failed) => {
                count("dropped", count_spans);
                if !was_failing {
                    let error = format!("{:#}", failed.error);
                    tracing::warn!(error, "the collector takes no traces; they are dropped");
                }
            }
        }
    }

    async fn send(&self, body: Bytes) -> Result<(), ExportError> {
        let mut request = Request::post("/v1/traces").header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.collector.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(body).context("invalid request");
        let request = request.map_err(|error| ExportError {
            error,
            may_work_later: false,
        })?;
        let answered = self.client.ask(request).await;
        let status = answered
            .map_err(|error| ExportError {
                error: error.into(),
                may_work_later: true,
            })?
            .status();
        if status.is_success() {
            return Ok(());
        }
        Err(ExportError {
            error: anyhow::anyhow!("it answered {status}"),
            may_work_later: status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error(),
        })
    }
}

struct ExportError {
    error: anyhow::Error,
    may_work_later: bool,
}

fn request_body(spans: &[Value]) -> Value {
    let attribute =
        |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute("service.name", "switchboard"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
        ] },
        "scopeSpans": [{ "scope": { "name": "switchboard" }, "spans": spans }],
    }] })
}
