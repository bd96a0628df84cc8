//! A carrier with a backlog of one account, beside another account and an idle carrier.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::smsc::{Action, Smsc};
use testkit::{Backend, StallMonitor};

use super::scenario::ScenarioResult;
use super::single_node::{Account, SingleNode, verdict};
use crate::faults::test_service::builder;
use crate::faults::waiting::wait_until;

/// The backlog of the first account, and the pace of its carrier.
const BACKLOG: usize = 3000;
const MAX_PER_SECOND: u64 = 50;
const WINDOW: usize = 50;
/// A message of the other account is sent within this time, not counting stalls of the machine.
const SENT_WITHIN: Duration = Duration::from_secs(2);
/// Messages of the first account between two of the other account: about three seconds.
const BETWEEN: usize = 150;
/// The first numbers of the backlog, of the other account on the same carrier, and of the idle carrier.
const FIRST: u64 = 37_120_001_000;
const OTHER: u64 = 37_120_005_000;
const IDLE: u64 = 37_250_000_000;

/// In each cycle a message of another account overtakes the backlog of the first, and one goes by the idle carrier. A
/// cycle takes about three seconds.
pub(super) fn shared(cycles: usize) -> ScenarioResult {
    let monitor = StallMonitor::start();
    let mut violations = Vec::new();
    for backend in Backend::ALL {
        violations.extend(run_on(backend, cycles, &monitor));
    }
    let messages = Backend::ALL.len() * (BACKLOG + 2 * cycles);
    ScenarioResult::Completed(cycles, verdict(messages, violations))
}

fn run_on(backend: Backend, cycles: usize, monitor: &StallMonitor) -> Vec<String> {
    let (busy, idle) = (Network::start(), Network::start());
    let node = SingleNode::start(builder(backend).config(carriers(&busy, &idle)));
    let (first, other) = (node.account("first"), node.account("other"));
    let numbers: Vec<u64> = (FIRST..).take(BACKLOG).collect();
    first.send(&numbers, &json!({}));
    wait_for_submits(&busy, BETWEEN);
    let attempts = node.max_attempts();
    let mut violations = Vec::new();
    for cycle in 0..cycles {
        let past_backlog = BypassingMessage {
            what: "of another account behind a backlog",
            number: OTHER + cycle as u64,
            network: &busy,
        };
        let by_idle = BypassingMessage {
            what: "by the idle carrier",
            number: IDLE + cycle as u64,
            network: &idle,
        };
        for message in [past_backlog, by_idle] {
            violations.extend(message.check(&other, monitor));
        }
        let so_far = busy.submits().len();
        wait_for_submits(&busy, so_far + BETWEEN);
    }
    let attempts_now = node.max_attempts();
    if attempts_now > attempts {
        violations.push(format!(
            "attempts of queued messages grew from {attempts} to {attempts_now}"
        ));
    }
    violations.extend(check_order(&busy));
    let named = violations.iter();
    named
        .map(|violation| format!("{backend:?}: {violation}"))
        .collect()
}

/// A message that must not wait for the backlog.
struct BypassingMessage<'a> {
    what: &'static str,
    number: u64,
    network: &'a Network,
}

impl BypassingMessage<'_> {
    fn check(&self, account: &Account, monitor: &StallMonitor) -> Option<String> {
        let accepted = account.send(&[self.number], &json!({}));
        let mut sent_at = accepted;
        wait_until("the message is sent", || {
            let submits = self.network.submits();
            let mut submits = submits.iter();
            let found = submits.find(|(number, _)| *number == self.number);
            sent_at = found.map_or(sent_at, |(_, at)| *at);
            found.is_some()
        });
        let took = sent_at.saturating_duration_since(accepted);
        let running = monitor.running(accepted, sent_at);
        println!(
            "a message {} was sent after {took:?} ({running:?} without stalls)",
            self.what
        );
        (running > SENT_WITHIN).then(|| format!("a message {} was sent after {took:?}", self.what))
    }
}

/// The backlog belongs to one account and one lane, so it is sent in order, and nothing is sent twice.
fn check_order(network: &Network) -> Option<String> {
    let submits = network.submits();
    let numbers = submits.iter().map(|(number, _)| *number);
    let numbers: Vec<u64> = numbers.filter(|number| *number < OTHER).collect();
    let wrong = numbers.windows(2).find(|pair| pair[0] >= pair[1])?;
    Some(format!("{} was sent after {}", wrong[1], wrong[0]))
}

fn wait_for_submits(network: &Network, count: usize) {
    wait_until("the carrier gets more messages", || {
        network.submits().len() >= count
    });
}

type Submits = Vec<(u64, Instant)>;

/// An SMSC that records the number and the time of each message.
struct Network {
    smsc: Smsc,
    submits: Arc<Mutex<Submits>>,
}

impl Network {
    fn start() -> Self {
        let submits: Arc<Mutex<Submits>> = Arc::default();
        let recorded = submits.clone();
        let smsc = Smsc::builder().on_submit(move |submit| {
            let to = submit.destination.2.parse().unwrap_or(0);
            let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.push((to, submit.at));
            vec![Action::Answer]
        });
        Self {
            smsc: smsc.start(),
            submits,
        }
    }

    fn submits(&self) -> std::sync::MutexGuard<'_, Submits> {
        self.submits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn carriers(busy: &Network, idle: &Network) -> String {
    let carrier = |name: &str, network: &Network, more: &str| {
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n\
             binds = 1\nwindow = {WINDOW}\nresponse_timeout_s = 60\n{more}\n",
            network.smsc.addr()
        )
    };
    carrier("busy", busy, &format!("max_per_second = {MAX_PER_SECOND}"))
        + &carrier("idle", idle, "")
        + "[[route]]\nprefix = \"371\"\ncarriers = [\"busy\"]\n[[route]]\ncarriers = [\"idle\"]\n"
}
