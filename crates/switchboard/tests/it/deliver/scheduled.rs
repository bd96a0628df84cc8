//! Scheduled messages: never early, and not at all once they are cancelled.

use std::time::{Duration, Instant};

use domain::clock::SystemClock;
use domain::{Clock, Timestamp};
use serde_json::json;
use testkit::receiver::{Received, Receiver};
use testkit::{Backend, StallControl};

use super::post::{payload, send_with, start, state, wait_for_reports};
use crate::rest::service::{Service, in_seconds, message, wait_for, with_offset};

/// At most two seconds late, and one more for the way to the receiver; the time that the machine stood still comes on
/// top.
const LATEST: Duration = Duration::from_secs(3);

fn schedule(service: &Service, at: Timestamp, url: &str) -> String {
    send_with(service, url, &json!({ "scheduled": with_offset(at, 2) }))
}

fn listed(service: &Service) -> Vec<String> {
    let records = service.scheduled_as(&service.token);
    let id = |record: &serde_json::Value| record["id"].as_str().expect("an ID").to_owned();
    records.iter().map(id).collect()
}

/// When a report arrived, by the clock that schedules are written in.
fn arrival(report: &Received) -> Timestamp {
    SystemClock.now() - report.at.elapsed()
}

fn a_message_waits_for_its_time(backend: Backend) {
    let (control, began) = (StallControl::start(), Instant::now());
    let service = start(backend);
    let receiver = Receiver::start();
    let at = in_seconds(2);
    let id = schedule(&service, at, &receiver.url("/dlr"));
    assert_eq!(listed(&service), [id.as_str()]);
    assert_eq!(state(&service, &id), "scheduled");
    let next = wait_for("the end of the waiting", || {
        Some(state(&service, &id)).filter(|state| state != "scheduled")
    });
    let left = SystemClock.now();
    assert!(left >= at, "{next} at {left}, but scheduled for {at}");
    assert_eq!(listed(&service), Vec::<String>::new(), "{next}");

    let report = wait_for_reports(&receiver, 1).remove(0);
    let arrived = arrival(&report);
    let stalled = control.stalled(began, report.at);
    let too_late = at + LATEST + stalled;
    assert!(
        (at..too_late).contains(&arrived),
        "scheduled for {at}, reported at {arrived}; stalled for {stalled:?}"
    );
    assert_eq!(report.text(), payload(&id, 1, 0));
    assert_eq!(state(&service, &id), "delivered");
}

/// The one that was taken back was due before the one whose report shows that its time is over.
fn a_cancelled_message_is_never_sent(backend: Backend) {
    let service = start(backend);
    let receiver = Receiver::start();
    let cancelled = schedule(&service, in_seconds(1), &receiver.url("/cancelled"));
    let response = service.delete(&format!("/sms/{cancelled}"));
    assert_eq!(response.status, 200, "{}", response.text());
    let kept = schedule(&service, in_seconds(2), &receiver.url("/kept"));
    assert_eq!(listed(&service), [kept.as_str()]);

    let reports = wait_for_reports(&receiver, 1);
    let paths: Vec<&str> = reports.iter().map(|report| report.path.as_str()).collect();
    assert_eq!(paths, ["/kept"]);
    assert_eq!(state(&service, &cancelled), "cancelled");
    for (id, state) in [(&cancelled, "cancelled"), (&kept, "delivered")] {
        let refused = service.delete(&format!("/sms/{id}"));
        assert_eq!(refused.status, 409, "{state}: {}", refused.text());
        let text = message(&refused);
        assert!(text.contains(id.as_str()) && text.contains(state), "{text}");
    }
}

crate::rest::on_both_backends!(
    a_message_waits_for_its_time,
    a_cancelled_message_is_never_sent,
);
