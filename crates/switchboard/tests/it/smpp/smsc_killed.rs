//! The SMSC dies in the middle of many messages and comes back after a while.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use testkit::Backend;
use testkit::nodejs_smsc::NodeJsSmsc;

use super::bulk::{Tally, recipients, send_all, use_funded_account};
use super::{carrier, carrier_list, start};
use crate::rest::service::wait_for;

const MESSAGES: usize = 50_000;
/// The SMSC dies when this many messages are reported.
const REPORTED_BEFORE: usize = 10_000;
const DOWNTIME: Duration = Duration::from_secs(10);
const BINDS: usize = 2;
const WINDOW: usize = 50;
/// The SMSC answers late, so that the window is full when it dies.
const SLOW: &[&str] = &["--answer-after", "40"];

/// Nothing is lost, and only messages that had no answer when the SMSC died are sent twice.
#[test]
fn ten_seconds_without_the_smsc_lose_no_message() {
    let mut smsc = NodeJsSmsc::start(SLOW);
    let settings = format!("binds = {BINDS}\nwindow = {WINDOW}");
    let mut service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), &settings));
    use_funded_account(&mut service);
    let tally = Tally::start();
    let numbers = recipients(MESSAGES);
    let ids = thread::scope(|scope| {
        let sending = scope.spawn(|| send_all(&service, &tally, "Hello", &numbers));
        tally.wait_for(REPORTED_BEFORE);
        smsc.kill9();
        let back_at = Instant::now() + DOWNTIME;
        wait_for("the carrier is down", || {
            (carrier_list(&service)[0]["health"] == "down").then_some(())
        });
        thread::sleep(back_at.saturating_duration_since(Instant::now())); // tidy: how long it is away is the subject
        let taken = smsc.submits().len();
        println!("{taken} messages before the SMSC died");
        assert!(
            taken < MESSAGES,
            "all {taken} were sent before the SMSC died"
        );
        smsc.restart(SLOW);
        sending.join().expect("all messages are accepted")
    });
    assert_eq!(ids.len(), MESSAGES);
    tally.check_once(&service, ids);

    let submits = smsc.submits();
    let reached: BTreeSet<_> = submits.iter().map(|submit| submit.to.as_str()).collect();
    assert_eq!(reached.len(), MESSAGES);
    // `check_once` sent one more.
    let sent_twice = submits.len() - MESSAGES - 1;
    println!("sent twice: {sent_twice}");
    assert!(sent_twice <= WINDOW * BINDS, "{sent_twice} were sent twice");
    service.check_health();
}
