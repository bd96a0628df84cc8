//! SMPP carriers, from outside: the real binary against an SMSC of another project.
//!
//! Tests that need a misbehaving SMSC, or one that only counts, use the scripted SMSC of `testkit`.

mod bulk;
mod inbound;
mod kannel;
mod late_answers;
pub(crate) mod octets;
mod refused;
mod reload;
mod routes;
mod shared;
mod smsc_killed;
mod stopping;
mod variants;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsSmsc, NodeJsSubmit};
use testkit::receiver::Receiver;

use crate::rest::service::{Service, sms_with, wait_for};

/// Must never be shown.
const PASSWORD: &str = "s3cret";

/// The configuration of a carrier, with more settings.
fn carrier(name: &str, address: impl std::fmt::Display, more: &str) -> String {
    format!(
        "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{address}\"\nsystem_id = \"acme\"\n\
         password = \"{PASSWORD}\"\n{more}\n"
    )
}

fn start(backend: Backend, config: impl Into<String>) -> Service {
    Service::with(backend, |builder| builder.config(config))
}

/// Sends a message that is reported to the receiver, and returns its ID.
fn send(service: &Service, receiver: &Receiver, fields: &Value) -> String {
    let mut body = sms_with(fields);
    body["dlrUrl"] = json!(receiver.url("/dlr"));
    service.accept(&body).remove(0)
}

/// Waits until an SMSC has got this many messages, and returns all that it got.
fn wait_for_submits(smsc: &NodeJsSmsc, count: usize) -> Vec<NodeJsSubmit> {
    wait_for("the messages at the SMSC", || {
        Some(smsc.submits()).filter(|submits| submits.len() >= count)
    })
}

/// `carrier list`, in the order of the configuration.
fn carrier_list(service: &Service) -> Vec<Value> {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    list.as_array().expect("a list").clone()
}
