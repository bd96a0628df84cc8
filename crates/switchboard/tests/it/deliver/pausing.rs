//! A receiver that fails again and again is left alone for a while, and not longer than it takes to be back.

use std::time::Duration;

use serde_json::json;
use testkit::Backend;

use super::door::Door;
use super::post::{callbacks, start, wait_for_reports};
use crate::rest::service::{sms_with, wait_for};

const MESSAGES: usize = 60;
/// Tries that are under way at once at a host that nothing is known about.
const AT_ONCE: usize = 8;

/// Reports that fail together are one reason for the first pause, not many for the longest.
#[test]
fn a_receiver_that_is_back_soon_gets_everything_soon() {
    let service = start(Backend::Sqlite);
    let door = Door::closed(Duration::from_millis(500));
    let numbers: Vec<String> = (0..MESSAGES).map(|n| format!("+371200000{n:02}")).collect();
    let body = sms_with(&json!({ "to": numbers, "dlrUrl": door.receiver.url("/dlr") }));
    service.accept(&body);
    wait_for_reports(&door.receiver, AT_ONCE);
    door.open();
    wait_for("the end of all callbacks", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
    let all = callbacks(&service, &["--all"]);
    let received = all.iter().filter(|one| one["state"] == "received");
    assert_eq!(received.count(), MESSAGES);
}
