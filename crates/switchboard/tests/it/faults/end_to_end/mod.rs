//! Messages under faults from end to end: accepted, sent, delivered, reported.
//!
//! The callers, the receiver of the reports and the journal of the network are outside the service. What they observe
//! goes to the log. Once every message has ended, a checker compares the log with the guarantees.

mod checker;
mod crash;
mod log;
mod paused;
mod requests;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use testkit::http::{self, Connection};
use testkit::receiver::Receiver;
use testkit::{Backend, ServerBuilder, TEST_TIMEOUT, TempDir, temp_dir};

use super::callers::Callers;
use super::test_service::{State, TestService, builder};
use super::waiting::POLL;
use log::Log;

pub(super) use checker::DuplicateLimits;

/// Maximum number of messages that the network has at once.
pub(super) const WINDOW: usize = 50;
/// The file name of the journal of the network.
const JOURNAL: &str = "journal";
/// How many threads read the states of messages.
const STATUS_THREADS: usize = 4;

/// A service with a receiver for its reports and a network that keeps a journal.
pub(super) struct EndToEndTest {
    pub(super) service: TestService,
    log: Arc<Log>,
    receiver: Receiver,
    // Dropped last: the service writes the journal until it ends.
    folder: TempDir,
}

impl From<ServerBuilder> for EndToEndTest {
    fn from(builder: ServerBuilder) -> Self {
        let folder = temp_dir("end-to-end").expect("a temporary folder");
        let log = Arc::new(Log::new(folder.path().join(JOURNAL)));
        let receiver = Receiver::builder().on_request(|_, _| {}).script({
            let log = Arc::clone(&log);
            move |request| log.receive(request)
        });
        let service = TestService::from(with_network(builder, &folder));
        approve_sender(&service);
        Self {
            service,
            log,
            receiver: receiver.start(),
            folder,
        }
    }
}

impl EndToEndTest {
    pub(super) fn start(backend: Backend) -> Self {
        Self::from(builder(backend))
    }

    pub(super) fn callers(&self, size: usize) -> Callers {
        self.callers_of(self.service.server.addr(), size)
    }

    /// Callers of another service on the same data.
    fn callers_of(&self, addr: SocketAddr, size: usize) -> Callers {
        let (log, receiver) = (Arc::clone(&self.log), self.receiver.url(""));
        let token = self.service.token.clone();
        Callers::start_with(addr, size, move |exchange| {
            let headers = [
                ("X-Service-Token", token.as_str()),
                ("Content-Type", "application/json"),
            ];
            let (request, body) = log.next_request(&receiver);
            let body = body.to_string();
            let bytes = http::encode(addr, "POST", request.path, &headers, body.as_bytes());
            log.record(request, &exchange(&bytes));
        })
    }

    /// Kills the service and starts it again at once.
    pub(super) fn crash(&mut self, callers: Callers) {
        self.service.server.kill9();
        callers.join();
        self.restart();
    }

    /// Stops the service gracefully and starts it again.
    pub(super) fn stop(&mut self, callers: Callers) {
        let status = self.service.server.terminate();
        callers.join();
        assert!(
            status.success(),
            "{status}: {}",
            self.service.server.output()
        );
        self.restart();
    }

    /// Starts the service again after it has ended.
    pub(super) fn restart(&mut self) {
        self.log.end_run();
        self.service.server.restart();
    }

    /// How many messages were answered.
    pub(super) fn answered(&self) -> usize {
        let observed = self.log.observed();
        observed.accepted.iter().map(|(_, ids)| ids.len()).sum()
    }

    /// How many requests got 503.
    pub(super) fn refused(&self) -> usize {
        self.log.observed().refused.len()
    }

    /// Waits until this many more messages are answered.
    pub(super) fn wait_for_answered(&self, more: usize) {
        let goal = self.answered() + more;
        super::waiting::wait_until("more messages are answered", || self.answered() >= goal);
    }

    /// Waits until every answered message has ended and is reported, then checks all guarantees.
    pub(super) fn check(&self, limits: DuplicateLimits) {
        self.wait_for_reports();
        let states = self.wait_for_all_final_states();
        self.log.end_run();
        checker::check(&self.log, &states, limits);
        self.check_senders();
        let ledger = self.service.server.cli(&["account", "check"]);
        assert!(
            ledger.status.success(),
            "the ledger does not give every balance: {ledger:?}"
        );
        assert!(
            self.service.stored().is_empty(),
            "a refused message is stored"
        );
    }

    /// Every sender ID that was answered exists, and each has its own number.
    fn check_senders(&self) {
        let senders = self.log.observed().senders.clone();
        let distinct: HashSet<&u64> = senders.iter().collect();
        assert_eq!(distinct.len(), senders.len(), "{senders:?}");
        let headers = [("X-Service-Token", self.service.token.as_str())];
        for id in senders {
            let path = format!("/senderId/{id}");
            let found = http::request(self.service.server.addr(), "GET", &path, &headers, b"");
            let found = found.expect("an answer");
            assert_eq!(
                (found.status, &found.json()["status"]),
                (200, &json!("pending")),
                "{id}"
            );
        }
    }

    /// A backlog may take long, as long as reports keep coming.
    fn wait_for_reports(&self) {
        let (mut fewest, mut since) = (usize::MAX, Instant::now());
        loop {
            let missing = self.log.observed().unreported();
            if missing == 0 {
                return;
            }
            if missing < fewest {
                (fewest, since) = (missing, Instant::now());
            }
            if since.elapsed() > TEST_TIMEOUT {
                println!("{}", self.service.server.output());
                // The checker lists the missing reports as violations.
                return;
            }
            thread::sleep(POLL * 10); // tidy: polls a state that nothing announces
        }
    }

    /// The state of each answered message, once it is final.
    fn wait_for_all_final_states(&self) -> HashMap<u64, State> {
        let observed = self.log.observed();
        let ids = observed.accepted.iter().flat_map(|(request, ids)| {
            let is_lookup = request.path == requests::LOOKUPS;
            ids.iter().map(move |id| (*id, is_lookup))
        });
        let ids: Vec<(u64, bool)> = ids.collect();
        drop(observed);
        let deadline = Instant::now() + TEST_TIMEOUT;
        let size = ids.len().div_ceil(STATUS_THREADS).max(1);
        thread::scope(|scope| {
            let threads: Vec<_> = ids
                .chunks(size)
                .map(|ids| scope.spawn(|| self.wait_for_final_states(ids, deadline)))
                .collect();
            let found = threads.into_iter().map(thread::ScopedJoinHandle::join);
            found
                .flat_map(|found| found.expect("no thread panics"))
                .collect()
        })
    }

    fn wait_for_final_states(&self, ids: &[(u64, bool)], deadline: Instant) -> HashMap<u64, State> {
        let mut connection = Connection::open(self.service.server.addr()).expect("it is up");
        let mut states = HashMap::with_capacity(ids.len());
        for (id, is_lookup) in ids {
            loop {
                let state = if *is_lookup {
                    self.service.lookup_state(&mut connection, *id)
                } else {
                    self.service.state(&mut connection, *id)
                };
                let is_final = state.as_ref().is_none_or(|(_, end)| end.is_some());
                if is_final || Instant::now() > deadline {
                    states.extend(state.map(|state| (*id, state)));
                    break;
                }
                thread::sleep(POLL); // tidy: polls a state that nothing announces
            }
        }
        states
    }
}

/// Registers and approves the sender of all requests.
fn approve_sender(service: &TestService) {
    let body = json!({
        "name": requests::SENDER, "type": "AlphaNumeric", "category": "Other", "categoryDescription": "a test",
    });
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let address = service.server.addr();
    let answer = http::request(
        address,
        "POST",
        "/senderId",
        &headers,
        body.to_string().as_bytes(),
    );
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let approved = service.server.cli(&["sender", "approve", &answer.text()]);
    assert!(approved.status.success(), "{approved:?}");
}

fn with_network(builder: ServerBuilder, folder: &TempDir) -> ServerBuilder {
    let journal = folder.path().join(JOURNAL);
    builder
        .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        .env("SWITCHBOARD_SIMULATOR__WINDOW", WINDOW.to_string())
        .env(
            "SWITCHBOARD_SIMULATOR__JOURNAL",
            journal.to_str().expect("a plain path"),
        )
}
