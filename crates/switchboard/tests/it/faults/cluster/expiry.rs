//! Messages whose time is over while no carrier is there.

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::receiver::Receiver;
use testkit::{Backend, PATIENCE, ServerBuilder, StallControl, TempDir};

use super::lone_node::{LoneNode, verdict};
use super::scenario::Ran;
use crate::faults::shim::compile;
use crate::faults::subject::builder;
use crate::faults::waiting::wait_until;

const SOURCE: &str = include_str!("../clock.c");
const MESSAGES: usize = 500;
/// The shortest time that a message may be given.
const LIFETIME: Duration = Duration::from_mins(6);
/// A clock is moved by so much, so often, until their time is over: between two moves a message is tried again, so that
/// its pauses grow as they do while time passes.
const STEP_S: u64 = 30;
const STEPS: u64 = 13;
const STEP_TAKES: Duration = Duration::from_secs(1);
/// Messages have ended and are reported so long after their time, apart from the time that the machine stood still.
const REPORTED_WITHIN: Duration = Duration::from_secs(30);
const NUMBER: u64 = 37_120_001_000;
const EXPIRED: (u64, u64) = (2, 2);

/// On `SQLite` the node's clock is the database's, so it can be moved instead of waiting.
pub(super) fn clock_moved(cycles: usize) -> Ran {
    let folder = TempDir::create("clock").expect("a temporary folder");
    let library = folder.path().join("libclock.so");
    compile(SOURCE, &library);
    let file = folder.path().join("moved");
    let node = builder(Backend::Sqlite)
        .env("LD_PRELOAD", library.to_str().expect("a plain path"))
        .env("FAULT_CLOCK", file.to_str().expect("a plain path"));
    let breaches = expire(node, |_| {
        for step in 1..=STEPS {
            fs::write(&file, (step * STEP_S).to_string()).expect("a file");
            thread::sleep(STEP_TAKES); // tidy: how fast time passes is the subject
        }
        Instant::now()
    });
    Ran::Through(cycles, verdict(MESSAGES, breaches))
}

/// On `PostgreSQL` six minutes have to pass.
pub(super) fn waited(cycles: usize) -> Ran {
    let breaches = expire(builder(Backend::Postgres), |accepted| accepted + LIFETIME);
    Ran::Through(cycles, verdict(MESSAGES, breaches))
}

/// Sends to a carrier that is not there; `pass` lets the time pass and says when it is over for messages accepted at that
/// moment.
fn expire(node: ServerBuilder, pass: impl FnOnce(Instant) -> Instant) -> Vec<String> {
    let control = StallControl::start();
    let receiver = Receiver::start();
    let node = LoneNode::start(node.config(absent_carrier()));
    let account = node.account("crowd");
    let numbers: Vec<u64> = (NUMBER..).take(MESSAGES).collect();
    let fields = json!({ "expireIn": LIFETIME.as_secs(), "dlrUrl": receiver.url("/dlr") });
    let over = pass(account.send(&numbers, &fields));
    let patience = over.saturating_duration_since(Instant::now()) + PATIENCE;
    let mut breaches = Vec::new();
    if !receiver.wait_for(MESSAGES, patience) {
        breaches.push(format!("{} of {MESSAGES} were reported", receiver.count()));
    }
    let reports = receiver.received();
    let last = reports.iter().map(|report| report.at).max().unwrap_or(over);
    let late = control.running(over, last);
    println!(
        "the last of {} reports came {late:?} after its message expired",
        reports.len()
    );
    if late > REPORTED_WITHIN {
        breaches.push(format!("the last report came {late:?} after its time"));
    }
    breaches.extend(reports.iter().find_map(|report| {
        let body = report.json();
        let end = body["status"].as_u64().zip(body["error"].as_u64());
        (end != Some(EXPIRED)).then(|| format!("a report says {body}"))
    }));
    breaches.extend(check_books(&node));
    breaches
}

/// All have ended, and their price is given back.
fn check_books(node: &LoneNode) -> Vec<String> {
    let mut breaches = Vec::new();
    wait_until("the node is up", || node.is_ready());
    let books = node.books();
    let other = books
        .rows
        .iter()
        .filter(|row| row.end != Some(EXPIRED))
        .count();
    if other > 0 || books.rows.len() != MESSAGES {
        breaches.push(format!(
            "{other} of {} messages have not expired",
            books.rows.len()
        ));
    }
    for purse in books
        .purses
        .iter()
        .filter(|purse| purse.traffic != 0 || purse.balance != purse.ledger)
    {
        breaches.push(format!("not everything was given back: {purse:?}"));
    }
    breaches
}

/// Its address was free a moment ago, and nobody listens there.
fn absent_carrier() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    format!(
        "[[carrier]]\nname = \"absent\"\nkind = \"smpp\"\naddress = \"{address}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n"
    )
}
