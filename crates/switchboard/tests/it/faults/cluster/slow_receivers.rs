//! Receivers of reports that answer after seconds, beside one that answers at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, StallMonitor};

use super::scenario::ScenarioResult;
use super::single_node::{SingleNode, verdict};
use crate::faults::test_service::builder;
use crate::faults::waiting::wait_until;

const SLOW_HOSTS: usize = 6;
const ANSWER_DELAY: Duration = Duration::from_secs(4);
const HEALTHY: usize = SLOW_HOSTS + 1;
/// Reports for each slow receiver and cycle, and for the healthy one.
const SLOW_REPORTS: usize = 100;
const HEALTHY_REPORTS: usize = 100;
/// A report reaches the healthy receiver within this time, not counting stalls of the machine.
const RECEIVED_WITHIN: Duration = Duration::from_secs(5);
const NUMBER: u64 = 37_120_001_000;

/// Each cycle adds a hundred reports for each slow receiver.
pub(super) fn beside_a_healthy_one(cycles: usize) -> ScenarioResult {
    let monitor = StallMonitor::start();
    let mut violations = Vec::new();
    for backend in Backend::ALL {
        violations.extend(deliver(backend, cycles * SLOW_REPORTS, &monitor));
    }
    let messages = SLOW_HOSTS * cycles * SLOW_REPORTS + HEALTHY_REPORTS;
    ScenarioResult::Completed(cycles, verdict(Backend::ALL.len() * messages, violations))
}

fn deliver(backend: Backend, slow_reports: usize, monitor: &StallMonitor) -> Option<String> {
    let receiver = start_receivers();
    let port = receiver.addr().port();
    let url = |host: usize, path: &str| format!("http://{}:{port}{path}", address(host));
    let node = SingleNode::start(builder(backend).env("SWITCHBOARD_SIMULATOR__DELAY_MS", "0"));
    let (slow_account, healthy_account) = (node.account("slow"), node.account("healthy"));
    let numbers: Vec<u64> = (NUMBER..).take(slow_reports).collect();
    for host in 1..=SLOW_HOSTS {
        slow_account.send(&numbers, &json!({ "dlrUrl": url(host, "/slow") }));
    }
    wait_until("the slow receivers are called", || {
        receiver.count() >= SLOW_HOSTS
    });
    let mut accepted: HashMap<String, Instant> = HashMap::new();
    for report in 0..HEALTHY_REPORTS {
        let path = format!("/healthy/{report}");
        let at = healthy_account.send(&[NUMBER], &json!({ "dlrUrl": url(HEALTHY, &path) }));
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
        .max_by_key(|(from, until)| monitor.running(*from, *until));
    let (from, until) = *slowest.expect("reports came");
    let (took, running) = (
        until.saturating_duration_since(from),
        monitor.running(from, until),
    );
    println!(
        "{backend:?}: the slowest of {HEALTHY_REPORTS} reports took {took:?} ({running:?} without stalls)"
    );
    (running > RECEIVED_WITHIN)
        .then(|| format!("{backend:?}: a report for the healthy receiver took {took:?}"))
}

fn address(host: usize) -> String {
    format!("127.0.3.{host}")
}

/// One receiver listens on all addresses. A node treats each address as another host.
fn start_receivers() -> Receiver {
    let healthy = format!("{}:", address(HEALTHY));
    let receivers = Receiver::builder()
        .bind("0.0.0.0:0")
        .script(move |request| {
            let called = request.header("host").unwrap_or_default();
            if called.starts_with(&healthy) {
                Reply::ok()
            } else {
                Reply::ok().after(ANSWER_DELAY)
            }
        });
    receivers.start()
}
