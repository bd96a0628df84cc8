//! Traces of callers: from the request through the log to the callback.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::Receiver;

use super::fixture::{start, start_with, wait_for_reports};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, ids, in_seconds, sms_with, wait_for, with_offset};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn header() -> String {
    format!("00-{TRACE}-00f067aa0ba902b7-01")
}

/// Sends a message with this `traceparent`, and returns its ID.
fn send_traced(service: &Service, trace: &str, fields: &Value) -> String {
    let body = sms_with(fields).to_string();
    let headers = [("traceparent", trace)];
    let token = &service.token;
    let response = service.call_with(token, "POST", "/sms", &headers, body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    ids(&response).remove(0)
}

/// The log lines that have this trace: what they say, and the ID of the message.
fn logged(service: &Service) -> Vec<(String, String)> {
    let output = service.server.output();
    let lines = output
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let traced = lines.filter(|line| line["trace_id"] == TRACE);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    traced
        .map(|line| (text(&line["message"]), text(&line["message_id"])))
        .collect()
}

fn a_trace_is_logged_and_sent_along(backend: Backend) {
    let service = start(backend);
    let receiver = Receiver::start();
    let id = send_traced(
        &service,
        &header(),
        &json!({"dlrUrl": receiver.url("/dlr")}),
    );
    let report = &wait_for_reports(&receiver, 1)[0];
    let sent = report.header("traceparent").expect("a trace").to_owned();
    assert!(
        sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-01"),
        "{sent}"
    );
    assert_ne!(sent, header(), "the parent is another one");
    let steps = ["accepted", "attempted", "ended", "callback sent"];
    let expected = steps.map(|step| (step.to_owned(), id.clone()));
    wait_for("a line for each step", || {
        let lines = logged(&service);
        expected
            .iter()
            .all(|line| lines.contains(line))
            .then_some(())
    });

    for invalid in [
        "",
        "00-xyz",
        &header().to_uppercase(),
        &header().replace("00-4", "ff-4"),
    ] {
        send_traced(
            &service,
            invalid,
            &json!({"dlrUrl": receiver.url("/plain")}),
        );
    }
    let reports = wait_for_reports(&receiver, 5);
    let plain = reports.iter().filter(|report| report.path == "/plain");
    let traces: Vec<_> = plain.map(|report| report.header("traceparent")).collect();
    assert_eq!(traces, [None; 4], "an invalid header is ignored");
}

/// The message waits in the database while the service is restarted.
fn a_trace_survives_a_restart(backend: Backend) {
    let mut service = start(backend);
    let receiver = Receiver::start();
    let later = with_offset(in_seconds(3), 0);
    let fields = json!({"dlrUrl": receiver.url("/dlr"), "scheduled": later});
    send_traced(&service, &header(), &fields);
    service.server.kill9();
    service.server.restart();
    let report = &wait_for_reports(&receiver, 1)[0];
    let sent = report.header("traceparent").expect("a trace");
    assert!(sent.contains(TRACE), "{sent}");
}

/// The spans of all requests to a collector.
fn spans(collector: &Receiver) -> Vec<Value> {
    let requests = collector.received();
    let bodies = requests.iter().map(|request| {
        assert_eq!(request.path, "/v1/traces");
        assert_eq!(request.header("authorization"), Some("Bearer collector"));
        serde_json::from_slice::<Value>(&request.body).expect("JSON")
    });
    let spans = bodies
        .map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone())
        .filter_map(|spans| spans.as_array().cloned());
    spans.flatten().collect()
}

#[test]
fn sampled_traces_are_exported() {
    let (collector, receiver) = (Receiver::start(), Receiver::start());
    let mut service = start_with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_TRACES__OTLP_URL", collector.url(""))
            .env("SWITCHBOARD_TRACES__AUTHORIZATION", "Bearer collector")
    });
    let fields = json!({"dlrUrl": receiver.url("/dlr")});
    send_traced(&service, &header().replace("-01", "-00"), &fields);
    let id = send_traced(&service, &header(), &fields);
    let reports = wait_for_reports(&receiver, 2);
    let report = reports.iter().find(|report| {
        report
            .header("traceparent")
            .is_some_and(|it| it.ends_with("-01"))
    });
    let sent = report.and_then(|report| report.header("traceparent"));
    let sent = sent.expect("a sampled trace").to_owned();
    // What is still queued is sent before the service ends.
    service.server.terminate();
    let spans = spans(&collector);
    let mut names: Vec<&str> = spans
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["accepted", "attempted", "callback sent", "ended"]);
    for span in &spans {
        assert_eq!(span["traceId"], TRACE, "{span}");
        assert_eq!(span["parentSpanId"], "00f067aa0ba902b7", "{span}");
        let message = json!({"key": "switchboard.message_id", "value": {"stringValue": id}});
        let attributes = span["attributes"].as_array().expect("attributes");
        assert!(attributes.contains(&message), "{span}");
        let time = |name: &str| {
            span[name]
                .as_str()
                .and_then(|time| time.parse::<u64>().ok())
        };
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano"),
            "{span}"
        );
    }
    let callback = spans.iter().find(|span| span["name"] == "callback sent");
    let span_id = callback
        .and_then(|span| span["spanId"].as_str())
        .expect("a span");
    assert_eq!(sent, format!("00-{TRACE}-{span_id}-01"));
}

on_both_backends!(a_trace_is_logged_and_sent_along, a_trace_survives_a_restart);
