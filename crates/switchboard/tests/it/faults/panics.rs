//! Background tasks that panic, again and again, in the running service.

use std::fs;

use domain::Clock;
use domain::clock::SystemClock;
use serde_json::json;
use testkit::http::{self, Connection};
use testkit::{Backend, TempDir};

use super::subject::{Subject, builder};
use super::waiting::wait_until;

/// Names a place, and a file: who passes there panics while the file exists.
const VARIABLE: &str = "SWITCHBOARD_PANIC_AT";

/// The heartbeat panics each time: the service is not ready, and is so again when that ends. Meanwhile it works.
#[test]
fn a_service_is_not_ready_while_a_task_panics() {
    for backend in Backend::ALL {
        let panics = Panics::begin(backend, "node.beaten");
        let subject = &panics.subject;
        wait_until("it is not ready", || subject.readiness() == 503);
        panics.wait_for_restarts("heartbeat");
        let id = panics.send(None);
        panics.wait_for_delivery(id);
        panics.end();
    }
}

/// The task that claims due messages panics after the commit. No lane has these messages until the comparison finds them.
#[test]
fn what_a_task_claimed_before_it_panicked_is_sent() {
    for backend in Backend::ALL {
        let panics = Panics::begin(backend, "claim.committed");
        let soon = SystemClock.now() + jiff::SignedDuration::from_secs(2);
        let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let ids: Vec<u64> = (0..5).map(|_| panics.send(Some(&soon))).collect();
        panics.wait_for_restarts("dispatch-scan");
        let panics = panics.end();
        for id in ids {
            panics.wait_for_delivery(id);
        }
    }
}

/// A service in which a task panics.
struct Panics {
    subject: Subject,
    folder: TempDir,
}

impl Panics {
    fn begin(backend: Backend, place: &str) -> Self {
        let folder = TempDir::create("panics").expect("a temporary folder");
        let file = folder.path().join("panic");
        let order = format!("{place}:{}", file.display());
        let subject = Subject::from(builder(backend).env(VARIABLE, order));
        fs::write(&file, "").expect("the file is written");
        Self { subject, folder }
    }

    /// No more panics: the service is ready again.
    fn end(self) -> Self {
        fs::remove_file(self.folder.path().join("panic")).expect("the file is there");
        wait_until("it is ready", || self.subject.readiness() == 200);
        self
    }

    fn send(&self, scheduled: Option<&str>) -> u64 {
        let mut body = json!({"to": "+37120000001", "from": "Faults", "message": "still here"});
        if let Some(scheduled) = scheduled {
            body["scheduled"] = scheduled.into();
        }
        let headers = [
            ("X-Service-Token", self.subject.token.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body = body.to_string();
        let answer = http::request(
            self.subject.server.addr(),
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
        let mut connection = Connection::open(self.subject.server.addr()).expect("it is up");
        wait_until("the message is delivered", || {
            let state = self.subject.state(&mut connection, id);
            state.is_some_and(|(_, end)| end == Some((1, 0)))
        });
    }

    fn wait_for_restarts(&self, task: &str) {
        let line = format!("switchboard_task_restarts_total{{task=\"{task}\"}} ");
        wait_until("restarts are counted", || {
            let metrics = http::request(self.subject.server.addr(), "GET", "/metrics", &[], b"")
                .expect("metrics");
            let metrics = metrics.text();
            let counted = metrics.lines().find_map(|found| found.strip_prefix(&line));
            counted.is_some_and(|count| count.parse().is_ok_and(|count: u64| count >= 2))
        });
    }
}
