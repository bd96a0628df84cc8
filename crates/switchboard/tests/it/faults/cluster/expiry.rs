//! Messages that expire while no carrier is connected.

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::receiver::Receiver;
use testkit::{Backend, ServerBuilder, StallMonitor, TEST_TIMEOUT, temp_dir};

use super::scenario::ScenarioResult;
use super::single_node::{SingleNode, verdict};
use crate::faults::faulty_disk::compile;
use crate::faults::test_service::builder;
use crate::faults::waiting::wait_until;

const SOURCE: &str = include_str!("../clock.c");
const MESSAGES: usize = 500;
/// The shortest validity period that a message may have.
const LIFETIME: Duration = Duration::from_mins(6);
/// The clock is moved in steps until the messages expire. They are retried between two steps, so that their pauses grow
/// as they would in real time.
const STEP_S: u64 = 30;
const STEPS: u64 = 13;
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Expired messages are reported within this time, not counting stalls of the machine.
const REPORTED_WITHIN: Duration = Duration::from_secs(30);
const NUMBER: u64 = 37_120_001_000;
const EXPIRED: (u64, u64) = (2, 2);

/// On `SQLite` the database has the clock of the node, so the test can move it instead of waiting.
pub(super) fn clock_moved(cycles: usize) -> ScenarioResult {
    let folder = temp_dir("clock").expect("a temporary folder");
    let library = folder.path().join("libclock.so");
    compile(SOURCE, &library);
    let file = folder.path().join("moved");
    let node = builder(Backend::Sqlite)
        .env("LD_PRELOAD", library.to_str().expect("a plain path"))
        .env("FAULT_CLOCK", file.to_str().expect("a plain path"));
    let violations = expire(node, |_| {
        for step in 1..=STEPS {
            fs::write(&file, (step * STEP_S).to_string()).expect("a file");
            thread::sleep(STEP_INTERVAL); // tidy: how fast time passes is the subject
        }
        Instant::now()
    });
    ScenarioResult::Completed(cycles, verdict(MESSAGES, violations))
}

/// On `PostgreSQL` the test waits six minutes.
pub(super) fn waited(cycles: usize) -> ScenarioResult {
    let violations = expire(builder(Backend::Postgres), |accepted| accepted + LIFETIME);
    ScenarioResult::Completed(cycles, verdict(MESSAGES, violations))
}

/// Sends to a carrier that does not exist. `let_time_pass` gets the time at which the messages were accepted, and
/// returns when they expire.
fn expire(node: ServerBuilder, let_time_pass: impl FnOnce(Instant) -> Instant) -> Vec<String> {
    let monitor = StallMonitor::start();
    let receiver = Receiver::start();
    let node = SingleNode::start(node.config(absent_carrier()));
    let account = node.account("acme");
    let numbers: Vec<u64> = (NUMBER..).take(MESSAGES).collect();
    let fields = json!({ "expireIn": LIFETIME.as_secs(), "dlrUrl": receiver.url("/dlr") });
    let expired_at = let_time_pass(account.send(&numbers, &fields));
    let timeout = expired_at.saturating_duration_since(Instant::now()) + TEST_TIMEOUT;
    let mut violations = Vec::new();
    if !receiver.wait_for(MESSAGES, timeout) {
        violations.push(format!("{} of {MESSAGES} were reported", receiver.count()));
    }
    let reports = receiver.received();
    let last = reports
        .iter()
        .map(|report| report.at)
        .max()
        .unwrap_or(expired_at);
    let late = monitor.running(expired_at, last);
    println!(
        "the last of {} reports came {late:?} after its message expired",
        reports.len()
    );
    if late > REPORTED_WITHIN {
        violations.push(format!(
            "the last report came {late:?} after its message expired"
        ));
    }
    violations.extend(reports.iter().find_map(|report| {
        let body = report.json();
        let end = body["status"].as_u64().zip(body["error"].as_u64());
        (end != Some(EXPIRED)).then(|| format!("a report says {body}"))
    }));
    violations.extend(check_contents(&node));
    violations
}

/// All messages have expired and are refunded.
fn check_contents(node: &SingleNode) -> Vec<String> {
    let mut violations = Vec::new();
    wait_until("the node is up", || node.is_ready());
    let contents = node.contents();
    let other = contents
        .rows
        .iter()
        .filter(|row| row.final_state != Some(EXPIRED))
        .count();
    if other > 0 || contents.rows.len() != MESSAGES {
        violations.push(format!(
            "{other} of {} messages have not expired",
            contents.rows.len()
        ));
    }
    for funds in contents
        .funds
        .iter()
        .filter(|funds| funds.traffic != 0 || funds.balance != funds.ledger)
    {
        violations.push(format!("not everything was refunded: {funds:?}"));
    }
    violations
}

/// A carrier on a port where nobody listens.
fn absent_carrier() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    format!(
        "[[carrier]]\nname = \"absent\"\nkind = \"smpp\"\naddress = \"{address}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n"
    )
}
