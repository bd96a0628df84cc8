//! The whole way of a message under faults: accepted, sent, delivered, reported.
//!
//! The callers, the receiver of the reports and the network's journal stand outside the service; what they saw is the
//! log, and a checker holds it against the promises once everything has ended.

mod checker;
mod crash;
mod log;
mod orders;
mod paused;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use testkit::http::{self, Connection};
use testkit::receiver::Receiver;
use testkit::{Backend, PATIENCE, ServerBuilder, TempDir};

use super::crowd::Crowd;
use super::subject::{State, Subject, builder};
use super::waiting::POLL;
use log::Log;

pub(super) use checker::Bounds;

/// The most messages that are with the network at once.
pub(super) const WINDOW: usize = 50;
/// The name of the network's journal.
const JOURNAL: &str = "journal";
/// Messages are looked up by so many at once.
const LOOKERS: usize = 4;

/// A service with a receiver for its reports and a network that keeps a journal.
pub(super) struct Way {
    pub(super) subject: Subject,
    log: Arc<Log>,
    receiver: Receiver,
    // Last: the journal stays as long as somebody may write it.
    folder: TempDir,
}

impl From<ServerBuilder> for Way {
    fn from(builder: ServerBuilder) -> Self {
        let folder = TempDir::create("way").expect("a temporary folder");
        let log = Arc::new(Log::new(folder.path().join(JOURNAL)));
        let receiver = Receiver::builder().on_request(|_, _| {}).script({
            let log = Arc::clone(&log);
            move |request| log.receive(request)
        });
        let subject = Subject::from(with_network(builder, &folder));
        approve_sender(&subject);
        Self {
            subject,
            log,
            receiver: receiver.start(),
            folder,
        }
    }
}

impl Way {
    pub(super) fn start(backend: Backend) -> Self {
        Self::from(builder(backend))
    }

    /// Callers of the service.
    pub(super) fn crowd(&self, size: usize) -> Crowd {
        self.crowd_at(self.subject.server.addr(), size)
    }

    /// Callers of another service on the same data.
    fn crowd_at(&self, addr: SocketAddr, size: usize) -> Crowd {
        let (log, receiver) = (Arc::clone(&self.log), self.receiver.url(""));
        let token = self.subject.token.clone();
        Crowd::of(addr, size, move |exchange| {
            let headers = [
                ("X-Service-Token", token.as_str()),
                ("Content-Type", "application/json"),
            ];
            let (order, body) = log.open(&receiver);
            let body = body.to_string();
            let request = http::encode(addr, "POST", order.path, &headers, body.as_bytes());
            log.close(order, &exchange(&request));
        })
    }

    /// Kills the service and starts it again at once.
    pub(super) fn crash(&mut self, crowd: Crowd) {
        self.subject.server.kill9();
        crowd.wait();
        self.restart();
    }

    /// Asks the service to end, and starts it again.
    pub(super) fn stop(&mut self, crowd: Crowd) {
        let status = self.subject.server.terminate();
        crowd.wait();
        assert!(
            status.success(),
            "{status}: {}",
            self.subject.server.output()
        );
        self.restart();
    }

    /// Starts the service again after it has ended.
    pub(super) fn restart(&mut self) {
        self.log.end_era();
        self.subject.server.restart();
    }

    /// How many messages were answered.
    pub(super) fn answered(&self) -> usize {
        let pages = self.log.pages();
        pages.accepted.iter().map(|(_, ids)| ids.len()).sum()
    }

    /// How many orders got 503.
    pub(super) fn refused(&self) -> usize {
        self.log.pages().refused.len()
    }

    /// Waits until so many more messages were answered.
    pub(super) fn wait_for_answered(&self, more: usize) {
        let goal = self.answered() + more;
        super::waiting::wait_until("more messages are answered", || self.answered() >= goal);
    }

    /// Waits until everything that was answered has ended and is reported, then holds the log against the promises.
    pub(super) fn check(&self, bounds: Bounds) {
        self.wait_for_reports();
        let states = self.wait_for_ends();
        self.log.end_era();
        checker::check(&self.log, &states, bounds);
        self.check_senders();
        let ledger = self.subject.server.cli(&["account", "check"]);
        assert!(
            ledger.status.success(),
            "the ledger gives every balance: {ledger:?}"
        );
        assert!(
            self.subject.stored().is_empty(),
            "only what was refused would still be scheduled"
        );
    }

    /// Every sender whose ID was answered is there, and each has its own.
    fn check_senders(&self) {
        let senders = self.log.pages().senders.clone();
        let distinct: HashSet<&u64> = senders.iter().collect();
        assert_eq!(distinct.len(), senders.len(), "{senders:?}");
        let headers = [("X-Service-Token", self.subject.token.as_str())];
        for id in senders {
            let path = format!("/senderId/{id}");
            let found = http::request(self.subject.server.addr(), "GET", &path, &headers, b"");
            let found = found.expect("an answer");
            assert_eq!(
                (found.status, &found.json()["status"]),
                (200, &json!("pending")),
                "{id}"
            );
        }
    }

    /// A backlog may take its time, as long as something comes.
    fn wait_for_reports(&self) {
        let (mut fewest, mut since) = (usize::MAX, Instant::now());
        loop {
            let missing = self.log.pages().unreported();
            if missing == 0 {
                return;
            }
            if missing < fewest {
                (fewest, since) = (missing, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                println!("{}", self.subject.server.output());
                // What is missing is among the broken promises.
                return;
            }
            thread::sleep(POLL * 10); // tidy: between two looks at a state that nothing announces
        }
    }

    /// The state of each answered message, once it is final.
    fn wait_for_ends(&self) -> HashMap<u64, State> {
        let pages = self.log.pages();
        let ids = pages.accepted.iter().flat_map(|(order, ids)| {
            let is_lookup = order.path == orders::LOOKUPS;
            ids.iter().map(move |id| (*id, is_lookup))
        });
        let ids: Vec<(u64, bool)> = ids.collect();
        drop(pages);
        let until = Instant::now() + PATIENCE;
        let size = ids.len().div_ceil(LOOKERS).max(1);
        thread::scope(|scope| {
            let lookers: Vec<_> = ids
                .chunks(size)
                .map(|ids| scope.spawn(|| self.look_up(ids, until)))
                .collect();
            let found = lookers.into_iter().map(thread::ScopedJoinHandle::join);
            found
                .flat_map(|found| found.expect("no looker panics"))
                .collect()
        })
    }

    fn look_up(&self, ids: &[(u64, bool)], until: Instant) -> HashMap<u64, State> {
        let mut connection = Connection::open(self.subject.server.addr()).expect("it is up");
        let mut states = HashMap::with_capacity(ids.len());
        for (id, is_lookup) in ids {
            loop {
                let state = if *is_lookup {
                    self.subject.lookup_state(&mut connection, *id)
                } else {
                    self.subject.state(&mut connection, *id)
                };
                let is_over = state.as_ref().is_none_or(|(_, end)| end.is_some());
                if is_over || Instant::now() > until {
                    states.extend(state.map(|state| (*id, state)));
                    break;
                }
                thread::sleep(POLL); // tidy: between two looks at a state that nothing announces
            }
        }
        states
    }
}

/// Registers and approves the sender of all orders.
fn approve_sender(subject: &Subject) {
    let body = json!({
        "name": orders::SENDER, "type": "AlphaNumeric", "category": "Other", "categoryDescription": "a test",
    });
    let headers = [
        ("X-Service-Token", subject.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let address = subject.server.addr();
    let answer = http::request(
        address,
        "POST",
        "/senderId",
        &headers,
        body.to_string().as_bytes(),
    );
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let approved = subject.server.cli(&["sender", "approve", &answer.text()]);
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
