//! One measured flow of messages through a running server, from requests to callbacks.

use super::CONNECTIONS;
use super::message_tracker::{MessageTracker, Totals};
use super::target::Target;
use crate::measure;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testkit::load::{self, InFlightLimit, Load, Report, Requests, RunLimit};
use testkit::receiver::Receiver;

/// After this time without a callback, missing callbacks count as lost.
const LOST_AFTER: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The length of a flow, and the maximum number of messages in flight.
pub(super) struct FlowSettings {
    duration: Duration,
    outstanding: usize,
}

impl FlowSettings {
    pub(super) fn new(duration: Duration, outstanding: usize) -> Self {
        Self {
            duration,
            outstanding,
        }
    }
}

/// The result of a flow.
pub(super) struct Flow {
    pub(super) load: Report,
    pub(super) totals: Totals,
    pub(super) outstanding: usize,
    /// Messages that were accepted but not called back when the last request was answered.
    pub(super) backlog: u64,
}

impl Flow {
    /// Callbacks a second, from the first request to the last callback.
    pub(super) fn delivered_rate(&self) -> u64 {
        let milliseconds = self.totals.last_callback.as_millis().max(1);
        let rate = u128::from(self.totals.called_back) * 1_000 / milliseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Whether every request was answered 200 and every message was reported as delivered.
    pub(super) fn is_clean(&self) -> bool {
        let totals = &self.totals;
        let all_delivered = totals.missing() + totals.undelivered + totals.unreadable == 0;
        self.load.is_clean(CONNECTIONS) && all_delivered
    }

    /// A flow of one second without failures.
    #[cfg(test)]
    pub(super) fn with_rate(rate: u64) -> Self {
        Self {
            load: Report {
                served_connections: CONNECTIONS,
                ..Report::default()
            },
            totals: Totals {
                accepted: rate,
                called_back: rate,
                last_callback: Duration::from_secs(1),
                ..Totals::default()
            },
            outstanding: 1,
            backlog: 0,
        }
    }
}

/// Sends messages, then waits until all accepted messages are called back.
pub(super) fn run(target: &Target, settings: &FlowSettings) -> Result<Flow> {
    let in_flight = Arc::new(InFlightLimit::new(settings.outstanding));
    let tracker = Arc::new(MessageTracker::start(Arc::clone(&in_flight)));
    let receiver = receiver(&tracker);
    let load = messages(target, settings, &receiver, &tracker);
    let load = load::run_limited(target.server.addr(), load, in_flight);
    let backlog = tracker.totals().missing();
    wait_for_callbacks(&tracker);
    let totals = tracker.totals();
    let flow = Flow {
        load,
        totals,
        outstanding: settings.outstanding,
        backlog,
    };
    announce(&flow);
    ensure!(
        flow.totals.called_back > 0,
        "there was no callback; the server wrote:\n{}",
        target.server.output()
    );
    Ok(flow)
}

fn receiver(tracker: &Arc<MessageTracker>) -> Receiver {
    let tracker = Arc::clone(tracker);
    Receiver::builder()
        .on_request(move |_, body| tracker.record_callback(body))
        .start()
}

fn messages(
    target: &Target,
    settings: &FlowSettings,
    receiver: &Receiver,
    tracker: &Arc<MessageTracker>,
) -> Load {
    let body = measure::message(&receiver.url("/dlr"));
    let tracker = Arc::clone(tracker);
    Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Elapsed(settings.duration),
        requests: Requests::Fixed(target.request(&body)),
        on_answer: Some(Box::new(move |answer| {
            if answer.status == 200 {
                tracker.record_answer(answer.body);
            }
        })),
    }
}

fn wait_for_callbacks(tracker: &MessageTracker) {
    let mut totals = tracker.totals();
    while totals.missing() > 0 && tracker.since_last_callback() < LOST_AFTER {
        thread::sleep(POLL_INTERVAL);
        totals = tracker.totals();
    }
}

fn announce(flow: &Flow) {
    eprintln!(
        "  accepted {}/s, called back {}/s, {} left at the end, delay p50 {:?}, p99 {:?}, {} missing",
        flow.load.rate(),
        flow.delivered_rate(),
        flow.backlog,
        flow.totals.delay.percentile(50),
        flow.totals.delay.percentile(99),
        flow.totals.missing(),
    );
}
