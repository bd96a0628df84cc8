//! One measured flow of texts through a running server, from the carrier to callbacks.

use super::smsc::{Job, Smsc};
use super::tracker::{Totals, Tracker};
use crate::measure::ACCOUNT;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testkit::Server;
use testkit::receiver::Receiver;

/// After this time without a callback, missing callbacks count as lost.
const LOST_AFTER: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The settings of a flow.
pub(super) struct Flow<'a> {
    /// The number that the texts are sent to.
    pub(super) number: &'a str,
    pub(super) duration: Duration,
    /// The maximum number of messages that are delivered and not yet called back.
    pub(super) outstanding: usize,
}

impl Flow<'_> {
    /// Delivers texts, then waits until each is answered and called back.
    pub(super) fn run(&self, smsc: &Smsc, server: &Server) -> Result<Totals> {
        let tracker = Arc::new(Tracker::new(self.outstanding));
        let receiver = {
            let tracker = Arc::clone(&tracker);
            Receiver::builder()
                .on_request(move |_, body| tracker.record_callback(body))
                .try_start()?
        };
        self.add_number(server, &receiver.url("/inbound"))?;
        smsc.deliver(Some(Job {
            tracker: Arc::clone(&tracker),
            to: self.number.to_owned().into(),
        }));
        thread::sleep(self.duration);
        tracker.close();
        smsc.deliver(None);
        wait_for_callbacks(&tracker);
        let totals = tracker.totals();
        ensure!(
            totals.called_back > 0,
            "there was no callback; the server wrote:\n{}",
            server.output()
        );
        Ok(totals)
    }

    fn add_number(&self, server: &Server, url: &str) -> Result<()> {
        let number = ["number", "add", "--number", self.number];
        let owner = ["--account", ACCOUNT, "--url", url];
        let added = server.cli(&[number, owner].concat());
        ensure!(
            added.status.success(),
            "`number add` failed: {}",
            String::from_utf8_lossy(&added.stderr)
        );
        Ok(())
    }
}

fn wait_for_callbacks(tracker: &Tracker) {
    while tracker.totals().in_progress() > 0 && tracker.since_last_callback() < LOST_AFTER {
        thread::sleep(POLL_INTERVAL);
    }
}
