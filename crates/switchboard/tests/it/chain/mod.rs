//! Two services in a chain: the first hands everything to the second, which has the simulated network.
//!
//! Callers of the first see nothing of the second: its own IDs, one report for each message, the network's codes.

mod failing;
mod lossy;
mod passing;

use serde_json::{Value, json};
use testkit::receiver::{Received, Receiver};
use testkit::{Backend, PATIENCE};

use crate::rest::service::{Service, ids};

/// Approved in both services.
const SENDER: &str = "Acme & Co";

/// The two services.
struct Chain {
    /// Whom callers talk to.
    near: Service,
    /// Whom the first one talks to.
    far: Service,
}

impl Chain {
    fn start(backend: Backend) -> Self {
        let far = Service::with(backend, |builder| {
            builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        });
        let config = carrier(&far.server.url(""), &far.token);
        Self::with(far, config, backend)
    }

    /// A first service with this configuration in front of one that runs.
    fn with(far: Service, config: String, backend: Backend) -> Self {
        let near = Service::with(backend, |builder| builder.config(config));
        Self { near, far }
    }

    /// Posts to the first service what it must accept.
    fn accept(&self, path: &str, body: &Value) -> Value {
        let near = &self.near;
        let response = near.call_as(&near.token, "POST", path, body.to_string().as_bytes());
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        response.json()
    }

    /// Sends an SMS through both, and returns its ID.
    fn send(&self, receiver: &Receiver, fields: &Value) -> String {
        let mut body = crate::rest::service::sms_with(fields);
        body["dlrUrl"] = json!(receiver.url("/dlr"));
        let response = self.near.send(&body);
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        ids(&response).remove(0)
    }
}

/// A configuration whose only carrier is another service.
fn carrier(url: &str, token: &str) -> String {
    format!(
        "[[carrier]]\nname = \"up\"\nkind = \"upstream\"\nurl = \"{url}\"\ntoken = \"{token}\"\nwindow = 50\n"
    )
}

/// What was reported, once there is so much: for each the ID, the status and the error, in any order.
pub(crate) fn reported(receiver: &Receiver, count: usize) -> Vec<(String, u64, u64)> {
    let came = receiver.wait_for(count, PATIENCE);
    let reports = receiver.received();
    assert!(came, "{} of {count} reports came", reports.len());
    let read = |report: &Received| {
        let report = report.json();
        let number = |name: &str| report[name].as_u64().expect("a number");
        let id = report["id"].as_str().expect("an ID").to_owned();
        (id, number("status"), number("error"))
    };
    let mut reports: Vec<_> = reports.iter().map(read).collect();
    reports.sort();
    reports
}
