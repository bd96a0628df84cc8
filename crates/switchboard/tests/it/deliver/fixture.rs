//! Starts services, sends messages with delivery reports, and reads callbacks.

use serde_json::{Value, json};
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::{Backend, ServerBuilder, TEST_TIMEOUT};

use crate::rest::service::{Service, sms_with};

/// A service whose network reports within milliseconds.
pub(super) fn start(backend: Backend) -> Service {
    start_with(backend, |builder| builder)
}

/// [`start`] with more settings.
pub(super) fn start_with(
    backend: Backend,
    configure: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Service {
    Service::with(backend, |builder| {
        configure(builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20"))
    })
}

/// Sends one message that is reported to `url`, and returns its ID.
pub(super) fn send(service: &Service, url: &str) -> String {
    send_with(service, url, &json!({}))
}

/// [`send`] with fields added or replaced.
pub(super) fn send_with(service: &Service, url: &str, fields: &Value) -> String {
    let mut body = sms_with(fields);
    body["dlrUrl"] = json!(url);
    let mut ids = service.accept(&body);
    assert_eq!(ids.len(), 1, "{body}");
    ids.remove(0)
}

/// The body of a report on a message to the recipient of [`sms_with`].
pub(super) fn payload(id: &str, status: u8, error: u64) -> String {
    payload_to("+37120000001", id, status, error)
}

/// The body of a report on a message to a Latvian number of Tele2, or to a magic number of the simulator, whose prefix
/// belongs to O2.
pub(super) fn payload_to(number: &str, id: &str, status: u8, error: u64) -> String {
    let (mcc, mnc) = if number.starts_with("+4477") {
        ("234", "02")
    } else {
        ("247", "02")
    };
    format!(r#"{{"id":"{id}","status":{status},"error":{error},"mcc":"{mcc}","mnc":"{mnc}"}}"#)
}

/// Waits for this many requests, and returns all that came.
pub(super) fn wait_for_reports(receiver: &Receiver, count: usize) -> Vec<ReceivedRequest> {
    let all_came = receiver.wait_for(count, TEST_TIMEOUT);
    let reports = receiver.received();
    assert!(all_came, "{} of {count} reports came", reports.len());
    reports
}

pub(super) fn state(service: &Service, id: &str) -> String {
    let status = service.get(&format!("/sms/status/{id}")).json();
    let state = status["state"].as_str();
    state
        .unwrap_or_else(|| panic!("no state: {status}"))
        .to_owned()
}

/// `callbacks list`, the newest first.
pub(super) fn callbacks(service: &Service, more: &[&str]) -> Vec<Value> {
    let arguments = [&["callbacks", "list", "--json"], more].concat();
    let list = service.server.cli_json(&arguments);
    list.as_array().expect("a list").clone()
}

/// `callbacks show`: every attempt of a callback, in order.
pub(super) fn attempts(service: &Service, callback: &Value) -> Vec<Value> {
    let id = callback["id"].to_string();
    let list = service
        .server
        .cli_json(&["callbacks", "show", &id, "--json"]);
    list.as_array().expect("a list").clone()
}
