//! The SMSC dies in the middle of many messages and comes back after a while.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use testkit::Backend;
use testkit::node::NodeSmsc;

use super::mass::{Tally, enrich, recipients, send_all};
use super::{carrier, carrier_list, start};
use crate::rest::service::wait_for;

const MESSAGES: usize = 50_000;
/// So many are reported when the SMSC dies.
const BEFORE: usize = 10_000;
const AWAY: Duration = Duration::from_secs(10);
const BINDS: usize = 2;
const WINDOW: usize = 50;
/// The SMSC takes its time, so that its window is full when it dies.
const SLOW: &[&str] = &["--answer-after", "40"];

/// Nothing is lost, and no more is sent twice than was without an answer when the SMSC died.
#[test]
fn ten_seconds_without_the_smsc_lose_nothing() {
    let mut smsc = NodeSmsc::start(SLOW);
    let settings = format!("binds = {BINDS}\nwindow = {WINDOW}");
    let mut service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), &settings));
    enrich(&mut service);
    let tally = Tally::start();
    let numbers = recipients(MESSAGES);
    let ids = thread::scope(|scope| {
        let feed = scope.spawn(|| send_all(&service, &tally, "Hello", &numbers));
        tally.wait_for(BEFORE);
        smsc.kill9();
        let back_at = Instant::now() + AWAY;
        wait_for("the carrier is down", || {
            (carrier_list(&service)[0]["health"] == "down").then_some(())
        });
        thread::sleep(back_at.saturating_duration_since(Instant::now())); // tidy: how long it is away is the subject
        let taken = smsc.submits().len();
        println!("taken before: {taken}");
        assert!(taken < MESSAGES, "in the middle: {taken}");
        smsc.restart(SLOW);
        feed.join().expect("all is accepted")
    });
    assert_eq!(ids.len(), MESSAGES);
    tally.check_once(&service, ids);

    let submits = smsc.submits();
    let reached: BTreeSet<_> = submits.iter().map(|submit| submit.to.as_str()).collect();
    assert_eq!(reached.len(), MESSAGES);
    // And one that `check_once` sent.
    let twice = submits.len() - MESSAGES - 1;
    println!("sent twice: {twice}");
    assert!(twice <= WINDOW * BINDS, "{twice} were sent twice");
    service.check_health();
}
