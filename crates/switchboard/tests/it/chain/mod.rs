//! Two services in a chain: the front service sends everything to the upstream, which has the simulated network.
//!
//! Callers of the front service cannot see the upstream: they get the IDs of the front service, one report for each
//! message, and the codes of the network.

mod failing;
mod inbound;
mod lossy_proxy;
mod next_carrier;
pub(crate) mod passing;

use serde_json::{Value, json};
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::{Backend, TEST_TIMEOUT};

use crate::rest::service::{Service, ids};

/// A sender that is approved in both services.
pub(crate) const SENDER: &str = "Acme & Co";

struct Chain {
    /// The service that callers use.
    front: Service,
    /// The only carrier of the front service.
    upstream: Service,
}

impl Chain {
    fn start(backend: Backend) -> Self {
        let upstream = Service::with(backend, |builder| {
            builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        });
        let config = carrier(&upstream.server.url(""), &upstream.token);
        Self::with(upstream, config, backend)
    }

    /// Starts a front service with this configuration for a running upstream.
    fn with(upstream: Service, config: String, backend: Backend) -> Self {
        let front = Service::with(backend, |builder| builder.config(config));
        Self { front, upstream }
    }

    /// Posts a request that the front service must accept.
    fn accept(&self, path: &str, body: &Value) -> Value {
        let front = &self.front;
        let response = front.call_as(&front.token, "POST", path, body.to_string().as_bytes());
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        response.json()
    }

    /// Sends an SMS through both services, and returns its ID.
    fn send(&self, receiver: &Receiver, fields: &Value) -> String {
        let mut body = crate::rest::service::sms_with(fields);
        body["dlrUrl"] = json!(receiver.url("/dlr"));
        let response = self.front.send(&body);
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        ids(&response).remove(0)
    }
}

/// A configuration whose only carrier is this upstream.
fn carrier(url: &str, token: &str) -> String {
    format!(
        "[[carrier]]\nname = \"up\"\nkind = \"upstream\"\nurl = \"{url}\"\ntoken = \"{token}\"\nwindow = 50\n"
    )
}

/// Waits for this many reports, and returns the ID, status and error of each, sorted.
pub(crate) fn wait_for_reported_states(
    receiver: &Receiver,
    count: usize,
) -> Vec<(String, u64, u64)> {
    let all_came = receiver.wait_for(count, TEST_TIMEOUT);
    let reports = receiver.received();
    assert!(all_came, "{} of {count} reports came", reports.len());
    let read = |report: &ReceivedRequest| {
        let report = report.json();
        let number = |name: &str| report[name].as_u64().expect("a number");
        let id = report["id"].as_str().expect("an ID").to_owned();
        (id, number("status"), number("error"))
    };
    let mut reports: Vec<_> = reports.iter().map(read).collect();
    reports.sort();
    reports
}
