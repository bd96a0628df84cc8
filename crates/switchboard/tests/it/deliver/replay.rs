//! Callbacks that an operator sends again.

use std::time::Duration;

use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::ReceivedRequest;

use super::failing_receiver::FailingReceiver;
use super::fixture::{callbacks, send, start, start_with, wait_for_reports};
use crate::rest::service::{Service, wait_for};

/// Waits until this many callbacks are not received, all of them in this state after this many attempts.
fn wait_for_list(service: &Service, count: usize, state: &str, attempts: u32) -> Vec<Value> {
    wait_for("the list of callbacks", || {
        let list = callbacks(service, &[]);
        let fits = |one: &Value| one["state"] == state && one["tries"] == attempts;
        (list.len() == count && list.iter().all(fits)).then_some(list)
    })
}

/// Runs `callbacks replay` and checks how many callbacks it found.
fn replay(service: &Service, filter: &[&str], count: usize) {
    let output = service
        .server
        .cli(&[&["callbacks", "replay"], filter].concat());
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{filter:?}: {output:?}");
    assert_eq!(
        stdout.trim_end(),
        format!("{count} callbacks are sent again."),
        "{filter:?}"
    );
}

fn text<'a>(callback: &'a Value, field: &str) -> &'a str {
    callback[field].as_str().expect("text")
}

/// Parked callbacks by ID, address and time; received ones only with `--all`.
fn selected_callbacks_are_sent_again(backend: Backend) {
    let service = start_with(backend, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__PARK_AFTER_DAYS", "0")
    });
    let failing = FailingReceiver::start(Duration::ZERO);
    let mut parked = Vec::new();
    for path in ["/a/1", "/a/2", "/b/1", "/b/2"] {
        send(&service, &failing.receiver.url(path));
        parked = wait_for_list(&service, parked.len() + 1, "parked", 1);
    }
    parked.reverse();
    let all: Vec<&str> = parked.iter().map(|one| text(one, "url")).collect();
    for callback in &parked {
        let last = &callback["last"];
        assert_eq!(
            (
                &last["status"],
                &last["body"],
                &last["reason"],
                &callback["due"]
            ),
            (
                &json!(500),
                &json!("closed"),
                &json!("answered 500"),
                &Value::Null
            ),
            "{callback}"
        );
    }
    let ids: Vec<String> = parked.iter().map(|one| one["id"].to_string()).collect();
    let since = |index: usize| text(&parked[index], "created");
    let (everything, under_b) = (failing.receiver.url("/"), failing.receiver.url("/b"));
    failing.recover();
    let cases: [(&str, &[&str], &[&str]); 8] = [
        ("unknown", &["--id", "900719925474"], &[]),
        ("by ID", &["--id", &ids[0]], &all[..1]),
        ("by address", &["--url", &under_b], &all[2..]),
        ("before all", &["--until", since(0)], &[]),
        (
            "by time",
            &["--from", since(1), "--until", since(2)],
            &all[1..2],
        ),
        ("nothing is left", &["--url", &everything], &[]),
        ("received, by ID", &["--id", &ids[3], "--all"], &all[3..]),
        (
            "received, by time",
            &["--from", since(0), "--all"],
            &all[..],
        ),
    ];
    let mut left = parked.len();
    let mut seen = parked.len();
    for (case, filter, expected) in cases {
        replay(&service, filter, expected.len());
        let received = wait_for_reports(&failing.receiver, seen + expected.len());
        let mut again: Vec<String> = received[seen..].iter().map(url_of).collect();
        again.sort();
        assert_eq!(again, expected, "{case}");
        seen = received.len();
        left = left.saturating_sub(expected.len());
        wait_for_list(&service, left, "parked", 1);
    }
    check_ids(&failing.receiver.received());
}

fn url_of(report: &ReceivedRequest) -> String {
    let host = report.header("host").expect("a host");
    format!("http://{host}{}", report.path)
}

/// A receiver can recognize a repetition by its ID.
fn check_ids(reports: &[ReceivedRequest]) {
    for report in reports {
        let same = |other: &&ReceivedRequest| other.path == report.path;
        let id = report.header("webhook-id");
        let mut others = reports.iter().filter(same);
        assert!(
            others.all(|other| other.header("webhook-id") == id && other.text() == report.text())
        );
    }
}

fn a_waiting_callback_is_sent_at_once(backend: Backend) {
    let service = start(backend);
    let failing = FailingReceiver::start(Duration::ZERO);
    send(&service, &failing.receiver.url("/dlr"));
    let waiting = wait_for_list(&service, 1, "waiting", 1);
    let id = waiting[0]["id"].to_string();
    replay(&service, &["--id", &id], 1);
    let waiting = wait_for_list(&service, 1, "waiting", 2);
    let due: Timestamp = text(&waiting[0], "due").parse().expect("a time");
    let later = SystemClock.now() + Duration::from_secs(15);
    assert!(due > later, "the second pause is about 30 s: {due}");

    failing.recover();
    replay(&service, &["--url", &failing.receiver.url("/dlr")], 1);
    let reports = wait_for_reports(&failing.receiver, 3);
    assert!(SystemClock.now() < due, "it was sent without the replay");
    check_ids(&reports);
    wait_for_list(&service, 0, "", 0);
}

crate::rest::on_both_backends!(
    selected_callbacks_are_sent_again,
    a_waiting_callback_is_sent_at_once
);

#[test]
fn a_replay_needs_a_filter() {
    let service = start(Backend::Sqlite);
    for filter in [
        &["callbacks", "replay"][..],
        &["callbacks", "replay", "--all"],
    ] {
        let output = service.server.cli(filter);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{filter:?}");
        for option in ["--id", "--url", "--from", "--until"] {
            assert!(stderr.contains(option), "{filter:?}: {stderr}");
        }
    }
}
