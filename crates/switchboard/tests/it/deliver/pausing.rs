//! A receiver that keeps failing is paused, but not much longer than it fails.

use std::time::Duration;

use serde_json::json;
use testkit::Backend;

use super::failing_receiver::FailingReceiver;
use super::fixture::{callbacks, start, wait_for_reports};
use crate::rest::service::{sms_with, wait_for};

const MESSAGES: usize = 60;
/// Attempts in flight to a host that the service does not know yet.
const IN_FLIGHT: usize = 8;

/// Attempts that fail at the same time count as one failure: they cause the first pause, not a long one.
#[test]
fn a_receiver_that_recovers_soon_gets_everything_soon() {
    let service = start(Backend::Sqlite);
    let failing = FailingReceiver::start(Duration::from_millis(500));
    let numbers: Vec<String> = (0..MESSAGES).map(|n| format!("+371200000{n:02}")).collect();
    let body = sms_with(&json!({ "to": numbers, "dlrUrl": failing.receiver.url("/dlr") }));
    service.accept(&body);
    wait_for_reports(&failing.receiver, IN_FLIGHT);
    failing.recover();
    wait_for("the end of all callbacks", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
    let all = callbacks(&service, &["--all"]);
    let received = all.iter().filter(|one| one["state"] == "received");
    assert_eq!(received.count(), MESSAGES);
}
