//! Callers that send requests to any node, record the answers, and repeat requests that have a key.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testkit::http::{Connection, Response};

use super::log::{Answer, CANCELLED, FinalState, Log};
use super::requests::PlannedRequest;
use super::smpp_clients::{SmppAccess, SmppClients};
use crate::faults::answer_log::is_refusal;

/// How long a caller waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);
/// Between two requests of a caller.
const PAUSE: Duration = Duration::from_millis(25);
/// Before a request with a key is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// How to reach the nodes, and where their reports go.
#[derive(Clone)]
pub(super) struct Endpoints {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) token: String,
    pub(super) receiver: String,
    pub(super) smpp: SmppAccess,
    pub(super) log: Arc<Log>,
}

/// Running callers.
pub(super) struct Callers {
    should_stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    smpp: SmppClients,
}

impl Callers {
    /// Starts `count` callers that send requests, one that reads the status of messages, and the SMPP clients.
    pub(super) fn start(endpoints: &Endpoints, count: usize) -> Self {
        let should_stop = Arc::new(AtomicBool::new(false));
        let mut threads: Vec<_> = (0..count)
            .map(|index| {
                let (mut caller, should_stop) =
                    (Caller::new(endpoints, index), should_stop.clone());
                thread::spawn(move || {
                    while !should_stop.load(Ordering::SeqCst) {
                        let request = PlannedRequest::make(&caller.endpoints.log);
                        caller.send(&request, || should_stop.load(Ordering::SeqCst));
                        thread::sleep(PAUSE); // tidy: the pace of a caller
                    }
                })
            })
            .collect();
        let (mut status_checker, done) = (Caller::new(endpoints, count), should_stop.clone());
        threads.push(thread::spawn(move || {
            while !done.load(Ordering::SeqCst) {
                status_checker.check_some_statuses();
                thread::sleep(PAUSE); // tidy: the pace of a caller
            }
        }));
        Self {
            should_stop,
            threads,
            smpp: SmppClients::start(&endpoints.smpp, &endpoints.log),
        }
    }

    /// Stops each caller after its next answer. The SMPP clients send nothing more and get receipts until they are
    /// dropped.
    pub(super) fn stop(self) -> SmppClients {
        self.should_stop.store(true, Ordering::SeqCst);
        for caller in self.threads {
            caller.join().expect("no caller panics");
        }
        self.smpp.stop_sending();
        self.smpp
    }
}

/// One caller, with a connection to the node that it called last.
pub(super) struct Caller {
    endpoints: Endpoints,
    turn: usize,
    connection: Option<Connection>,
}

impl Caller {
    pub(super) fn new(endpoints: &Endpoints, turn: usize) -> Self {
        Self {
            endpoints: endpoints.clone(),
            turn,
            connection: None,
        }
    }

    /// Sends a request. One with a key is repeated until it has a definite answer or `should_stop` is true.
    pub(super) fn send(&mut self, request: &PlannedRequest, should_stop: impl Fn() -> bool) {
        self.endpoints.log.record_request(request);
        loop {
            let answer = self.try_once(request);
            let is_definite = matches!(answer, Answer::Ids(_) | Answer::Refused(400));
            if is_definite || !request.is_keyed || should_stop() {
                break;
            }
            thread::sleep(RETRY_AFTER); // tidy: the pace of a caller
        }
        if request.is_cancelled {
            self.cancel(request.number);
        }
    }

    /// Sends a request once and records the answer.
    pub(super) fn try_once(&mut self, request: &PlannedRequest) -> Answer {
        let body = request
            .body(&self.endpoints.log, &self.endpoints.receiver)
            .to_string();
        let key = request.key();
        let key = key.as_deref().map(|key| ("Idempotency-Key", key));
        let response = self.call("POST", "/sms", key.as_slice(), body.as_bytes());
        let answer = match response {
            Err(_) => Answer::Missing,
            Ok(response) if response.status == 200 => Answer::Ids(ids_of(&response)),
            Ok(response) if response.status == 400 && request.is_invalid => Answer::Refused(400),
            Ok(response) if is_refusal(&response) => Answer::Refused(503),
            Ok(response) => {
                let got = format!("{request:?} got {} {}", response.status, response.text());
                self.endpoints.log.record_unexpected(got);
                Answer::Refused(response.status)
            }
        };
        self.endpoints
            .log
            .record_answer(request.number, answer.clone());
        answer
    }

    /// Cancels the scheduled messages of a request.
    fn cancel(&mut self, number: u64) {
        let ids = self.endpoints.log.observed().requests[&number]
            .ids()
            .map(<[u64]>::to_vec);
        for id in ids.into_iter().flatten() {
            let response = self.call("DELETE", &format!("/sms/{id}"), &[], b"");
            let answer = match response {
                Ok(response) if response.status == 200 => Answer::Ids(vec![id]),
                Ok(response) => Answer::Refused(response.status),
                Err(_) => Answer::Missing,
            };
            self.endpoints.log.record_cancellation(number, answer);
        }
    }

    /// Reads the status of a few of the answered messages.
    fn check_some_statuses(&mut self) {
        self.turn += 1;
        let ids: Vec<u64> = {
            let observed = self.endpoints.log.observed();
            let answered: Vec<u64> = observed
                .requests
                .values()
                .rev()
                .take(300)
                .flat_map(|record| record.ids().unwrap_or_default().to_vec())
                .collect();
            let every = answered.len() / 4 + 1;
            answered
                .into_iter()
                .skip(self.turn % every)
                .step_by(every)
                .collect()
        };
        for id in ids {
            self.check_status(id);
        }
    }

    /// Reads and records the status of a message. Returns whether there was an answer.
    pub(super) fn check_status(&mut self, id: u64) -> bool {
        let Ok(answer) = self.call("GET", &format!("/sms/status/{id}"), &[], b"") else {
            return false;
        };
        match answer.status {
            200 => self
                .endpoints
                .log
                .record_status(id, final_state_of(&answer)),
            404 => self
                .endpoints
                .log
                .record_unexpected(format!("{id} was answered and is unknown")),
            _ => return false,
        }
        true
    }

    pub(super) fn is_ready(addr: SocketAddr) -> bool {
        let mut ready = false;
        if let Ok(mut connection) = Connection::open(addr) {
            connection.set_deadline(ANSWER_TIMEOUT);
            let answer = connection.request("GET", "/health/ready", &[], b"");
            ready = answer.is_ok_and(|answer| answer.status == 200);
        }
        ready
    }

    pub(super) fn call(
        &mut self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        if self.connection.is_none() {
            self.turn += 1;
            let address = self.endpoints.addresses[self.turn % self.endpoints.addresses.len()];
            let mut connection = Connection::open(address)?;
            connection.set_deadline(ANSWER_TIMEOUT);
            self.connection = Some(connection);
        }
        let token = self.endpoints.token.clone();
        let mut headers = vec![
            ("X-Service-Token", token.as_str()),
            ("Content-Type", "application/json"),
        ];
        headers.extend_from_slice(more);
        let connection = self.connection.as_mut().expect("it was just opened");
        let answer = connection.request(method, path, &headers, body);
        // Change the node after a failure, and sometimes without one. A failure counts one step only: with two nodes,
        // two steps would lead back to the one that is down.
        self.turn += usize::from(answer.is_ok());
        let stays = answer
            .as_ref()
            .is_ok_and(|answer| answer.header("connection") != Some("close"));
        if !stays || self.turn.is_multiple_of(7) {
            self.connection = None;
        }
        answer
    }
}

fn ids_of(answer: &Response) -> Vec<u64> {
    let answer = answer.json();
    let ids = answer.as_array().cloned().unwrap_or_default();
    ids.iter()
        .filter_map(|id| id.as_str()?.parse().ok())
        .collect()
}

/// The final state of a message, once it has ended.
fn final_state_of(answer: &Response) -> Option<FinalState> {
    let answer = answer.json();
    if answer["state"] == "cancelled" {
        return Some(CANCELLED);
    }
    answer["status"].as_u64().zip(answer["error"].as_u64())
}
