//! One measured flow: messages go in at one end of a running server and callbacks come out at the
//! other, evenly.

use super::CONNECTIONS;
use super::ledger::{Ledger, Tally};
use super::site::Site;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testkit::load::{self, Gate, Load, Report, Requests, Until};
use testkit::receiver::Receiver;

/// When no callback has come for so long, those that are missing are taken as lost.
const QUIET: Duration = Duration::from_secs(30);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How hard, and for how long.
pub(super) struct Plan {
    duration: Duration,
    outstanding: usize,
}

impl Plan {
    pub(super) fn new(duration: Duration, outstanding: usize) -> Self {
        Self {
            duration,
            outstanding,
        }
    }
}

/// What was measured.
pub(super) struct Flow {
    pub(super) load: Report,
    pub(super) tally: Tally,
    pub(super) outstanding: usize,
    /// Accepted and not called back when the last request was answered.
    pub(super) backlog: u64,
}

impl Flow {
    /// Callbacks a second, from the first request to the last callback.
    pub(super) fn delivered_rate(&self) -> u64 {
        let milliseconds = self.tally.last_callback.as_millis().max(1);
        let rate = u128::from(self.tally.called_back) * 1_000 / milliseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Whether every request was answered 200 and every message was reported as delivered.
    pub(super) fn is_clean(&self) -> bool {
        let tally = &self.tally;
        let all_came = tally.missing() + tally.undelivered + tally.unreadable == 0;
        self.load.is_clean(CONNECTIONS) && all_came
    }
}

/// Sends for the plan's time, then waits until every accepted message was called back.
pub(super) fn run(site: &Site, plan: &Plan) -> Result<Flow> {
    let gate = Arc::new(Gate::new(plan.outstanding));
    let ledger = Arc::new(Ledger::open(Arc::clone(&gate)));
    let receiver = receiver(&ledger);
    let load = messages(site, plan, &receiver, &ledger);
    let load = load::run_gated(site.server.addr(), load, gate);
    let backlog = ledger.tally().missing();
    wait_for_the_rest(&ledger);
    let tally = ledger.tally();
    let flow = Flow {
        load,
        tally,
        outstanding: plan.outstanding,
        backlog,
    };
    announce(&flow);
    ensure!(
        flow.tally.called_back > 0,
        "no callback came; the server wrote:\n{}",
        site.server.output()
    );
    Ok(flow)
}

fn receiver(ledger: &Arc<Ledger>) -> Receiver {
    let ledger = Arc::clone(ledger);
    Receiver::builder()
        .on_request(move |_, body| ledger.note_callback(body))
        .start()
}

fn messages(site: &Site, plan: &Plan, receiver: &Receiver, ledger: &Arc<Ledger>) -> Load {
    let body = format!(
        r#"{{"to":"+37120000001","from":"Switchboard","message":"Your code is 123456. It is valid for 10 minutes.","dlrUrl":"{}"}}"#,
        receiver.url("/dlr")
    );
    let ledger = Arc::clone(ledger);
    Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        until: Until::Elapsed(plan.duration),
        requests: Requests::Fixed(site.request(&body)),
        on_answer: Some(Box::new(move |answer| {
            if answer.status == 200 {
                ledger.note_answer(answer.body);
            }
        })),
    }
}

fn wait_for_the_rest(ledger: &Ledger) {
    let mut tally = ledger.tally();
    while tally.missing() > 0 && ledger.quiet_for() < QUIET {
        thread::sleep(LOOK_AGAIN_AFTER);
        tally = ledger.tally();
    }
}

fn announce(flow: &Flow) {
    eprintln!(
        "  accepted {}/s, called back {}/s, {} left at the end, delay p50 {:?}, p99 {:?}, {} missing",
        flow.load.rate(),
        flow.delivered_rate(),
        flow.backlog,
        flow.tally.delay.percentile(50),
        flow.tally.delay.percentile(99),
        flow.tally.missing(),
    );
}
