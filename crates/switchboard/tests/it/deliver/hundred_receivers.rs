//! One hundred receivers; one of them hangs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, StallMonitor};

use super::fixture::{send, start_with};
use crate::rest::service::wait_for;

const HOSTS: usize = 100;
const ROUNDS: usize = 5;
/// The host that accepts every report and never answers.
const HANGING: usize = 37;
/// Reports for the hanging host: more than one host may have in flight.
const HANGING_REPORTS: usize = 40;
/// 95 percent of the reports to the other hosts must arrive within this time, not counting stalls of the machine.
const MAX_P95: Duration = Duration::from_secs(1);

fn host(number: usize) -> String {
    format!("127.0.1.{number}")
}

/// Listens on all addresses. The service treats each address as another receiver.
fn hundred_receivers() -> Receiver {
    let hanging = format!("{}:", host(HANGING));
    Receiver::builder()
        .bind("0.0.0.0:0")
        .script(move |request| {
            let called = request.header("host").unwrap_or_default();
            if called.starts_with(&hanging) {
                Reply::hang()
            } else {
                Reply::ok()
            }
        })
        .start()
}

/// The times at which the message was accepted and its report arrived.
type Delay = (Instant, Instant);

/// The delays of all reports that have arrived.
fn delays(receiver: &Receiver, sent: &HashMap<String, Instant>) -> Vec<Delay> {
    let reports = receiver.received();
    let reports = reports.iter();
    reports
        .filter_map(|report| Some((*sent.get(&report.path)?, report.at)))
        .collect()
}

/// The durations of all delays, sorted.
fn sorted(delays: &[Delay], time: impl Fn(Instant, Instant) -> Duration) -> Vec<Duration> {
    let mut times: Vec<Duration> = delays
        .iter()
        .map(|(from, until)| time(*from, *until))
        .collect();
    times.sort();
    times
}

fn a_receiver_that_hangs_delays_no_other(backend: Backend) {
    let monitor = StallMonitor::start();
    let service = start_with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "0")
    });
    let receiver = hundred_receivers();
    let port = receiver.addr().port();
    let url = |number: usize, path: &str| format!("http://{}:{port}{path}", host(number));
    for _ in 0..HANGING_REPORTS {
        send(&service, &url(HANGING, "/hangs"));
    }
    let mut sent = HashMap::new();
    for round in 0..ROUNDS {
        for number in 1..=HOSTS {
            let path = format!("/{number}/{round}");
            send(&service, &url(number, &path));
            if number != HANGING {
                sent.insert(path, Instant::now());
            }
        }
    }
    let delays = wait_for("the reports of the other hosts", || {
        Some(delays(&receiver, &sent)).filter(|delays| delays.len() == sent.len())
    });
    let passed = sorted(&delays, |from, until| until.saturating_duration_since(from));
    let running = sorted(&delays, |from, until| monitor.running(from, until));
    let p95_at = passed.len() * 95 / 100;
    let p95 = running[p95_at];
    println!(
        "{backend:?}: p50 {:?}, p95 {:?} ({p95:?} without stalls of the machine), worst {:?}",
        passed[passed.len() / 2],
        passed[p95_at],
        passed[passed.len() - 1]
    );
    assert!(
        receiver.count() > sent.len(),
        "the hanging host was not called"
    );
    assert!(p95 < MAX_P95, "p95 {p95:?}");
}

crate::rest::on_both_backends!(a_receiver_that_hangs_delays_no_other);
