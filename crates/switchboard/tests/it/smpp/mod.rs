//! Carriers that speak SMPP, from outside: the real binary on one side, on the other an SMSC that is another's work.
//!
//! Where an SMSC has to do what no good one does, or only counts, the scripted one of `testkit` serves.

mod killed;
mod late;
mod mass;
mod octets;
mod refused;
mod reload;
mod shared;
mod stopping;
mod variants;
mod ways;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::node::{NodeSmsc, NodeSubmit};
use testkit::receiver::Receiver;

use crate::rest::service::{Service, sms_with, wait_for};

/// Never shown to anybody.
const PASSWORD: &str = "s3cret";

/// A carrier in the configuration, with more settings of its own.
fn carrier(name: &str, address: impl std::fmt::Display, more: &str) -> String {
    format!(
        "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{address}\"\nsystem_id = \"acme\"\n\
         password = \"{PASSWORD}\"\n{more}\n"
    )
}

/// A service with this configuration.
fn start(backend: Backend, config: impl Into<String>) -> Service {
    Service::with(backend, |builder| builder.config(config))
}

/// Sends a message that is reported to the receiver, and returns its ID.
fn send(service: &Service, receiver: &Receiver, fields: &Value) -> String {
    let mut body = sms_with(fields);
    body["dlrUrl"] = json!(receiver.url("/dlr"));
    service.accept(&body).remove(0)
}

/// What an SMSC got, once there is so much. More would be seen as well.
fn wait_for_submits(smsc: &NodeSmsc, count: usize) -> Vec<NodeSubmit> {
    wait_for("the messages at the SMSC", || {
        Some(smsc.submits()).filter(|submits| submits.len() >= count)
    })
}

/// `carrier list`, in the order of the configuration.
fn carrier_list(service: &Service) -> Vec<Value> {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    list.as_array().expect("a list").clone()
}
