//! How much scheduled messages slow down the delivery of others.

use super::Options;
use super::flow::{self, Flow, FlowSettings};
use super::target::Target;
use crate::measure::Subject;
use anyhow::{Result, ensure};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::Backend;
use testkit::load::{self, Load, Requests, RunLimit};

/// Few connections are enough, because each request has a thousand recipients.
const FILL_CONNECTIONS: usize = 4;
/// The maximum number of recipients of a request.
const RECIPIENTS: u64 = 1_000;
/// Valid mobile numbers of one country.
const FIRST_NUMBER: u64 = 37_120_000_000;
const NUMBERS: u64 = 10_000_000;
/// Longer than any run.
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(12);

/// The speed of a machine drifts, so the two servers are measured in turns. Every second turn has the reverse order.
pub(super) const TURNS: u32 = 4;

/// The results of a server with scheduled messages and of one without.
pub(super) struct Step {
    pub(super) backend: Backend,
    pub(super) waiting: u64,
    pub(super) none: Vec<Flow>,
    pub(super) with: Vec<Flow>,
}

impl Step {
    /// The rate in percent of the rate without scheduled messages.
    pub(super) fn percent_of_none(&self) -> u64 {
        rate(&self.with) * 100 / rate(&self.none).max(1)
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.none.iter().chain(&self.with)
    }
}

/// The mean rate of callbacks over all turns, which have the same length.
pub(super) fn rate(turns: &[Flow]) -> u64 {
    let sum: u64 = turns.iter().map(Flow::delivered_rate).sum();
    sum / (turns.len() as u64).max(1)
}

pub(super) fn step(options: &Options, backend: Backend, waiting: u64) -> Result<Step> {
    let name = Subject::Switchboard(backend).name();
    eprintln!("{name}, {waiting} waiting …");
    let empty = Target::start(options, backend)?;
    let full = Target::start(options, backend)?;
    fill(&full, waiting)?;
    empty.warm_up(options)?;
    full.warm_up(options)?;
    let mut step = Step {
        backend,
        waiting,
        none: Vec::new(),
        with: Vec::new(),
    };
    let settings = FlowSettings::new(options.step / TURNS, options.outstanding);
    for turn in 0..TURNS {
        let mut order = [(&empty, &mut step.none), (&full, &mut step.with)];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (target, flows) in order {
            flows.push(flow::run(target, &settings)?);
        }
    }
    Ok(step)
}

/// Schedules this many messages, rounded up to whole requests.
fn fill(target: &Target, waiting: u64) -> Result<()> {
    let scheduled = scheduled_time();
    let encode = target.request_builder();
    let make = move |number: u64, bytes: &mut Vec<u8>| {
        bytes.extend(encode(&scheduled_body(number, &scheduled)));
    };
    let requests = waiting.div_ceil(RECIPIENTS);
    let ids = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ids);
    let load = Load {
        connections: FILL_CONNECTIONS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Count(requests),
        requests: Requests::Generated(Box::new(make)),
        on_answer: Some(Box::new(move |answer| {
            counted.fetch_add(ids_in(answer.body), Ordering::Relaxed);
        })),
    };
    let report = load::run(target.server.addr(), load);
    let accepted = ids.load(Ordering::Relaxed);
    ensure!(
        accepted == requests * RECIPIENTS && report.wrong == 0,
        "{accepted} of {waiting} scheduled messages were accepted; for instance: {:?}",
        report.wrong_sample.or(report.failure_sample)
    );
    eprintln!("  filled in {:.1} s", report.elapsed.as_secs_f64());
    Ok(())
}

/// The number of IDs in a JSON array of strings.
fn ids_in(body: &[u8]) -> u64 {
    let pieces = body.split(|byte| *byte == b'"').count();
    pieces as u64 / 2
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server under test runs on the wall clock, so its schedule does too"
)]
fn scheduled_time() -> String {
    let at = jiff::Timestamp::now() + AHEAD;
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

/// The body of one request: a thousand recipients, all different.
fn scheduled_body(number: u64, scheduled: &str) -> String {
    let mut body = String::from(r#"{"to":["#);
    for recipient in number * RECIPIENTS..(number + 1) * RECIPIENTS {
        let separator = if recipient % RECIPIENTS == 0 { "" } else { "," };
        let recipient = FIRST_NUMBER + recipient % NUMBERS;
        // Writing to a string cannot fail.
        let _infallible = write!(body, r#"{separator}"+{recipient}""#);
    }
    let _infallible = write!(
        body,
        r#"],"from":"Switchboard","message":"Your appointment is tomorrow at nine.","dlrUrl":"http://127.0.0.1:9/dlr","scheduled":"{scheduled}"}}"#
    );
    body
}

#[cfg(test)]
mod tests {
    use super::{ids_in, scheduled_body, scheduled_time};
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn every_recipient_occurs_once() {
        let mut numbers = HashSet::new();
        for request in 0..3 {
            let body: Value =
                serde_json::from_str(&scheduled_body(request, "T")).expect("valid JSON");
            assert_eq!(body["scheduled"], "T");
            let to = body["to"].as_array().expect("a list").clone();
            numbers.extend(to.iter().map(ToString::to_string));
        }
        assert_eq!(numbers.len(), 3_000);
        assert!(numbers.iter().all(|number| number.len() == 14));
    }

    #[test]
    fn ids_are_counted() {
        for (body, count) in [("[]", 0), (r#"["1"]"#, 1), (r#"["1","2","3"]"#, 3)] {
            assert_eq!(ids_in(body.as_bytes()), count, "{body}");
        }
    }

    #[test]
    fn the_time_has_an_offset() {
        let time = scheduled_time();
        assert!(time.ends_with("+00:00") && time.len() == 25, "{time}");
    }
}
