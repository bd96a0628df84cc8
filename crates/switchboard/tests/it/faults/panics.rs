//! Background tasks that panic repeatedly in the running service.

use std::fs;

use domain::Clock;
use engine::clock::SystemClock;
use serde_json::json;
use testkit::http::{self, Connection};
use testkit::{Backend, TempDir, temp_dir};

use super::test_service::{TestService, builder};
use super::waiting::wait_until;

/// Names a kill point and a file: tasks panic at that point while the file exists.
const VARIABLE: &str = "SWITCHBOARD_PANIC_AT";

/// While the heartbeat panics, the service reports that it is not ready, but still delivers messages.
#[test]
fn a_service_is_not_ready_while_a_task_panics() {
    for backend in Backend::ALL {
        let panicking = PanickingService::start(backend, "node.beaten");
        let service = &panicking.service;
        wait_until("the service is not ready", || service.ready_status() == 503);
        panicking.wait_for_restarts("heartbeat");
        let id = panicking.send(None);
        panicking.wait_for_delivery(id);
        panicking.stop_panics();
    }
}

/// The task that claims due messages panics after the commit. These messages are in no lane until the next comparison
/// of the database with memory finds them.
#[test]
fn messages_that_a_task_claimed_before_it_panicked_are_sent() {
    for backend in Backend::ALL {
        let panicking = PanickingService::start(backend, "claim.committed");
        let soon = SystemClock.now() + jiff::SignedDuration::from_secs(2);
        let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let ids: Vec<u64> = (0..5).map(|_| panicking.send(Some(&soon))).collect();
        panicking.wait_for_restarts("dispatch-scan");
        let panicking = panicking.stop_panics();
        for id in ids {
            panicking.wait_for_delivery(id);
        }
    }
}

/// A service in which a task panics at a kill point.
struct PanickingService {
    service: TestService,
    folder: TempDir,
}

impl PanickingService {
    fn start(backend: Backend, point: &str) -> Self {
        let folder = temp_dir("panics").expect("a temporary folder");
        let file = folder.path().join("panic");
        let setting = format!("{point}:{}", file.display());
        let service = TestService::from(builder(backend).env(VARIABLE, setting));
        fs::write(&file, "").expect("the file is written");
        Self { service, folder }
    }

    /// Ends the panics and waits until the service is ready.
    fn stop_panics(self) -> Self {
        fs::remove_file(self.folder.path().join("panic")).expect("the file is there");
        wait_until("the service is ready", || {
            self.service.ready_status() == 200
        });
        self
    }

    fn send(&self, scheduled: Option<&str>) -> u64 {
        let mut body = json!({"to": "+37120000001", "from": "Faults", "message": "still here"});
        if let Some(scheduled) = scheduled {
            body["scheduled"] = scheduled.into();
        }
        let headers = [
            ("X-Service-Token", self.service.token.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body = body.to_string();
        let answer = http::request(
            self.service.server.addr(),
            "POST",
            "/sms",
            &headers,
            body.as_bytes(),
        );
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.json()[0].as_str().and_then(|id| id.parse().ok());
        id.expect("an ID")
    }

    fn wait_for_delivery(&self, id: u64) {
        let mut connection = Connection::open(self.service.server.addr()).expect("it is up");
        wait_until("the message is delivered", || {
            let state = self.service.state(&mut connection, id);
            state.is_some_and(|(_, end)| end == Some((1, 0)))
        });
    }

    fn wait_for_restarts(&self, task: &str) {
        let line = format!("switchboard_task_restarts_total{{task=\"{task}\"}} ");
        wait_until("restarts are counted", || {
            let metrics = http::request(self.service.server.addr(), "GET", "/metrics", &[], b"")
                .expect("metrics");
            let metrics = metrics.text();
            let counted = metrics.lines().find_map(|found| found.strip_prefix(&line));
            counted.is_some_and(|count| count.parse().is_ok_and(|count: u64| count >= 2))
        });
    }
}
