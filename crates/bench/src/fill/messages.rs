//! Messages that are sent to a running server in large requests.

use crate::measure;
use anyhow::{Result, ensure};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::load::{self, Load, Requests, RunLimit};

/// Few connections are enough, because each request has a thousand recipients.
const CONNECTIONS: usize = 4;
/// The maximum number of recipients of a request.
const RECIPIENTS: u64 = 1_000;
/// Valid mobile numbers of one country.
const FIRST_NUMBER: u64 = 37_120_000_000;
const NUMBERS: u64 = 10_000_000;
/// Longer than any run.
const AHEAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(12);

/// Schedules this many messages, rounded up to whole requests.
pub(crate) fn schedule(addr: SocketAddr, token: &str, count: u64) -> Result<()> {
    let fields = format!(
        r#""dlrUrl":"{}","scheduled":"{}""#,
        measure::UNANSWERED_URL,
        scheduled_time()
    );
    send(addr, token, count, move || fields.clone())
}

/// Sends this many messages, rounded up to whole requests, whose callbacks go to these URLs in turn.
pub(crate) fn send_with_callbacks(
    addr: SocketAddr,
    token: &str,
    count: u64,
    callback_urls: Vec<String>,
) -> Result<()> {
    let mut urls = callback_urls.into_iter().cycle();
    send(addr, token, count, move || {
        format!(r#""dlrUrl":"{}""#, urls.next().unwrap_or_default())
    })
}

/// `fields` makes further fields for each request.
fn send(
    addr: SocketAddr,
    token: &str,
    count: u64,
    mut fields: impl FnMut() -> String + Send + 'static,
) -> Result<()> {
    let token = token.to_owned();
    let make = move |number: u64, bytes: &mut Vec<u8>| {
        let body = body(number, &fields());
        bytes.extend(measure::request(addr, &token, &body));
    };
    let requests = count.div_ceil(RECIPIENTS);
    let ids = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ids);
    let load = Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Count(requests),
        requests: Requests::Generated(Box::new(make)),
        on_answer: Some(Box::new(move |answer| {
            counted.fetch_add(ids_in(answer.body), Ordering::Relaxed);
        })),
    };
    let report = load::run(addr, load);
    let accepted = ids.load(Ordering::Relaxed);
    ensure!(
        accepted == requests * RECIPIENTS && report.wrong == 0,
        "{accepted} of {count} messages were accepted; for instance: {:?}",
        report.wrong_sample.or(report.failure_sample)
    );
    eprintln!(
        "  {accepted} messages sent in {:.1} s",
        report.elapsed.as_secs_f64()
    );
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
fn body(number: u64, fields: &str) -> String {
    let mut body = String::from(r#"{"to":["#);
    for recipient in number * RECIPIENTS..(number + 1) * RECIPIENTS {
        let separator = if recipient % RECIPIENTS == 0 { "" } else { "," };
        let recipient = FIRST_NUMBER + recipient % NUMBERS;
        // Writing to a string cannot fail.
        let _infallible = write!(body, r#"{separator}"+{recipient}""#);
    }
    let _infallible = write!(
        body,
        r#"],"from":"Switchboard","message":"Your appointment is tomorrow at nine.",{fields}}}"#
    );
    body
}

#[cfg(test)]
mod tests {
    use super::{body, ids_in, scheduled_time};
    use serde_json::Value;
    use std::collections::HashSet;

    #[test]
    fn every_recipient_occurs_once() {
        let mut numbers = HashSet::new();
        for request in 0..3 {
            let body: Value =
                serde_json::from_str(&body(request, r#""scheduled":"T""#)).expect("valid JSON");
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
