//! Receivers of reports that take seconds for an answer, beside one that answers at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, StallControl};

use super::lone_node::{LoneNode, verdict};
use super::scenario::Ran;
use crate::faults::subject::builder;
use crate::faults::waiting::wait_until;

const SLOW_HOSTS: usize = 6;
const SLOWLY: Duration = Duration::from_secs(4);
const HEALTHY: usize = SLOW_HOSTS + 1;
/// Reports for each slow receiver and cycle, and for the healthy one.
const SLOW_REPORTS: usize = 100;
const HEALTHY_REPORTS: usize = 100;
/// A report for the healthy receiver comes within this, apart from the time that the machine stood still.
const COMES_WITHIN: Duration = Duration::from_secs(5);
const NUMBER: u64 = 37_120_001_000;

/// A hundred reports for each slow receiver a cycle.
pub(super) fn beside(cycles: usize) -> Ran {
    let control = StallControl::start();
    let mut breaches = Vec::new();
    for backend in Backend::ALL {
        breaches.extend(deliver(backend, cycles * SLOW_REPORTS, &control));
    }
    let messages = SLOW_HOSTS * cycles * SLOW_REPORTS + HEALTHY_REPORTS;
    Ran::Through(cycles, verdict(Backend::ALL.len() * messages, breaches))
}

fn deliver(backend: Backend, slow_reports: usize, control: &StallControl) -> Option<String> {
    let receiver = start_receivers();
    let port = receiver.addr().port();
    let url = |host: usize, path: &str| format!("http://{}:{port}{path}", address(host));
    let node = LoneNode::start(builder(backend).env("SWITCHBOARD_SIMULATOR__DELAY_MS", "0"));
    let (crowd, other) = (node.account("crowd"), node.account("other"));
    let numbers: Vec<u64> = (NUMBER..).take(slow_reports).collect();
    for host in 1..=SLOW_HOSTS {
        crowd.send(&numbers, &json!({ "dlrUrl": url(host, "/slow") }));
    }
    wait_until("the slow receivers are called", || {
        receiver.count() >= SLOW_HOSTS
    });
    let mut accepted: HashMap<String, Instant> = HashMap::new();
    for report in 0..HEALTHY_REPORTS {
        let path = format!("/healthy/{report}");
        let at = other.send(&[NUMBER], &json!({ "dlrUrl": url(HEALTHY, &path) }));
        accepted.insert(path, at);
    }
    let mut delays: Vec<(Instant, Instant)> = Vec::new();
    wait_until("the healthy receiver has its reports", || {
        let reports = receiver.received();
        let reports = reports.iter();
        delays = reports
            .filter_map(|report| Some((*accepted.get(&report.path)?, report.at)))
            .collect();
        delays.len() >= HEALTHY_REPORTS
    });
    let slowest = delays
        .iter()
        .max_by_key(|(from, until)| control.running(*from, *until));
    let (from, until) = *slowest.expect("reports came");
    let (took, running) = (
        until.saturating_duration_since(from),
        control.running(from, until),
    );
    println!(
        "{backend:?}: the slowest of {HEALTHY_REPORTS} reports took {took:?} ({running:?} without stalls)"
    );
    (running > COMES_WITHIN)
        .then(|| format!("{backend:?}: a report for the healthy receiver took {took:?}"))
}

fn address(host: usize) -> String {
    format!("127.0.3.{host}")
}

/// All receivers are one, under many addresses: to a node they are as many hosts.
fn start_receivers() -> Receiver {
    let healthy = format!("{}:", address(HEALTHY));
    let receivers = Receiver::builder()
        .bind("0.0.0.0:0")
        .script(move |request| {
            let called = request.header("host").unwrap_or_default();
            if called.starts_with(&healthy) {
                Reply::ok()
            } else {
                Reply::ok().after(SLOWLY)
            }
        });
    receivers.start()
}
