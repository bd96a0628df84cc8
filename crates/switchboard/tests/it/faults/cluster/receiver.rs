//! The receiver of callbacks: it records each one, refuses a few and answers a few late.

use std::time::Duration;

use serde_json::Value;
use testkit::receiver::{Reply, Request};

use super::handsets;
use super::log::{Log, Report};

/// It refuses the first attempt of one in this many reports, and answers one in this many late.
const REFUSE_ONE_IN: u64 = 13;
const SLOW_ONE_IN: u64 = 29;
const SLOW_ANSWER: Duration = Duration::from_secs(2);

/// Records a callback, and decides what the receiver answers.
pub(super) fn receive(log: &Log, request: &Request<'_>) -> Reply {
    if request.path == handsets::PATH {
        return receive_text(log, request);
    }
    let Some((id, mut report)) = read_report(request) else {
        let body_text = String::from_utf8_lossy(request.body).into_owned();
        log.record_unexpected(format!("not a report: {body_text}"));
        return Reply::ok();
    };
    let mut observed = log.observed();
    let before = observed.reports.entry(id).or_default();
    let is_first = before.is_empty();
    report.received = is_accepted(id, is_first);
    report.at_ms = log.now_ms();
    before.push(report);
    drop(observed);
    reply(id, is_first)
}

/// [`receive`] for a text from a handset.
fn receive_text(log: &Log, request: &Request<'_>) -> Reply {
    let Some((id, mut callback)) = handsets::read_callback(request) else {
        let body_text = String::from_utf8_lossy(request.body).into_owned();
        log.record_unexpected(format!("not a text: {body_text}"));
        return Reply::ok();
    };
    let mut observed = log.observed();
    let before = observed.texts.callbacks.entry(id).or_default();
    let is_first = before.is_empty();
    callback.received = is_accepted(id, is_first);
    before.push(callback);
    drop(observed);
    reply(id, is_first)
}

/// Whether the receiver accepts a callback about a message.
fn is_accepted(id: u64, is_first: bool) -> bool {
    !id.is_multiple_of(REFUSE_ONE_IN) || !is_first
}

fn reply(id: u64, is_first: bool) -> Reply {
    match is_accepted(id, is_first) {
        false => Reply::answer(500, "not now"),
        true if is_first && id.is_multiple_of(SLOW_ONE_IN) => Reply::ok().after(SLOW_ANSWER),
        true => Reply::ok(),
    }
}

fn read_report(request: &Request<'_>) -> Option<(u64, Report)> {
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let report = Report {
        number: request.path.strip_prefix('/')?.parse().ok()?,
        webhook_id: Some(request.header("webhook-id")?.to_owned()),
        final_state: body["status"].as_u64().zip(body["error"].as_u64())?,
        received: false,
        at_ms: 0,
    };
    Some((body["id"].as_str()?.parse().ok()?, report))
}
