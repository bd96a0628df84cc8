//! Scheduled messages are never early, and cancelled ones are never sent.

use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use serde_json::json;
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::{Backend, StallMonitor};

use super::fixture::{payload, send_with, start, state, wait_for_reports};
use crate::rest::service::{Service, in_seconds, message, wait_for, with_offset};

/// At most two seconds late, and one more to reach the receiver, not counting stalls of the machine.
const MAX_DELAY: Duration = Duration::from_secs(3);

fn schedule(service: &Service, at: Timestamp, url: &str) -> String {
    send_with(service, url, &json!({ "scheduled": with_offset(at, 2) }))
}

fn scheduled_ids(service: &Service) -> Vec<String> {
    let records = service.scheduled_as(&service.token);
    let id = |record: &serde_json::Value| record["id"].as_str().expect("an ID").to_owned();
    records.iter().map(id).collect()
}

/// When a report arrived, by the wall clock.
fn arrival(report: &ReceivedRequest) -> Timestamp {
    SystemClock.now() - report.at.elapsed()
}

fn a_message_waits_for_its_time(backend: Backend) {
    let (monitor, began) = (StallMonitor::start(), Instant::now());
    let service = start(backend);
    let receiver = Receiver::start();
    let at = in_seconds(2);
    let id = schedule(&service, at, &receiver.url("/dlr"));
    assert_eq!(scheduled_ids(&service), [id.as_str()]);
    assert_eq!(state(&service, &id), "scheduled");
    let next = wait_for("the message is no longer scheduled", || {
        Some(state(&service, &id)).filter(|state| state != "scheduled")
    });
    let sent_at = SystemClock.now();
    assert!(sent_at >= at, "{next} at {sent_at}, but scheduled for {at}");
    assert_eq!(scheduled_ids(&service), Vec::<String>::new(), "{next}");

    let report = wait_for_reports(&receiver, 1).remove(0);
    let arrived = arrival(&report);
    let stalled = monitor.stalled(began, report.at);
    let latest = at + MAX_DELAY + stalled;
    assert!(
        (at..latest).contains(&arrived),
        "scheduled for {at}, reported at {arrived}; stalled for {stalled:?}"
    );
    assert_eq!(report.text(), payload(&id, 1, 0));
    assert_eq!(state(&service, &id), "delivered");
}

/// The cancelled message was due before the other one, whose report therefore proves that it was not sent.
fn a_cancelled_message_is_never_sent(backend: Backend) {
    let service = start(backend);
    let receiver = Receiver::start();
    // On a slow machine, its time may come before the request to cancel it.
    let mut attempts = 0;
    let (at, cancelled) = wait_for("a message that was cancelled before its time", || {
        attempts += 1;
        let at = in_seconds(2);
        let id = schedule(&service, at, &receiver.url(&format!("/{attempts}")));
        let response = service.delete(&format!("/sms/{id}"));
        (response.status == 200).then_some((at, id))
    });
    let later = at + SignedDuration::from_secs(1);
    let other = schedule(&service, later, &receiver.url("/other"));

    wait_for("the report on the other one", || {
        let reports = receiver.received();
        reports
            .iter()
            .any(|report| report.path == "/other")
            .then_some(())
    });
    let path = format!("/{attempts}");
    assert!(receiver.received().iter().all(|report| report.path != path));
    assert_eq!(scheduled_ids(&service), Vec::<String>::new());
    assert_eq!(state(&service, &cancelled), "cancelled");
    for (id, state) in [(&cancelled, "cancelled"), (&other, "delivered")] {
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
