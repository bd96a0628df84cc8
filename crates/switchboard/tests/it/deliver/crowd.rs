//! One hundred receivers of which one hangs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, StallControl};

use super::post::{send, start_with};
use crate::rest::service::wait_for;

const HOSTS: usize = 100;
const ROUNDS: usize = 5;
/// The host that takes every report and answers none.
const HANGING: usize = 37;
/// More than may be under way at one host at once.
const HELD_UP: usize = 40;
/// What 95 of a hundred reports to the other hosts must keep, apart from the time that the machine stood still.
const P95: Duration = Duration::from_secs(1);

fn host(number: usize) -> String {
    format!("127.0.1.{number}")
}

/// Listens on all of the hosts: to the service they are as many receivers.
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

/// From the answer to the sender until the report is there.
type Delay = (Instant, Instant);

/// The delays of all reports that are there.
fn delays(receiver: &Receiver, sent: &HashMap<String, Instant>) -> Vec<Delay> {
    let reports = receiver.received();
    let reports = reports.iter();
    reports
        .filter_map(|report| Some((*sent.get(&report.path)?, report.at)))
        .collect()
}

/// The times between moments, sorted.
fn sorted(delays: &[Delay], time: impl Fn(Instant, Instant) -> Duration) -> Vec<Duration> {
    let mut times: Vec<Duration> = delays
        .iter()
        .map(|(from, until)| time(*from, *until))
        .collect();
    times.sort();
    times
}

fn one_that_hangs_delays_no_other(backend: Backend) {
    let control = StallControl::start();
    let service = start_with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "0")
    });
    let receiver = hundred_receivers();
    let port = receiver.addr().port();
    let url = |number: usize, path: &str| format!("http://{}:{port}{path}", host(number));
    for _ in 0..HELD_UP {
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
    let delays = wait_for("the reports of those that answer", || {
        Some(delays(&receiver, &sent)).filter(|delays| delays.len() == sent.len())
    });
    let passed = sorted(&delays, |from, until| until.saturating_duration_since(from));
    let running = sorted(&delays, |from, until| control.running(from, until));
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
        "the hanging one was called, too"
    );
    assert!(p95 < P95, "p95 {p95:?}");
}

crate::rest::on_both_backends!(one_that_hangs_delays_no_other);
