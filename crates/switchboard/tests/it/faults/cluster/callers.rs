//! Callers that send orders to any node, write down what they are told, and repeat an order that has a key.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testkit::http::{Connection, Response};

use super::log::{CANCELLED, End, Log, Told};
use super::orders::Order;
use crate::faults::ledger::is_refusal;

/// The patience of a caller with one answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two orders of a caller.
const PACE: Duration = Duration::from_millis(25);
/// Before an order with a key is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How the service is reached.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) doors: Vec<SocketAddr>,
    pub(super) token: String,
    pub(super) receiver: String,
    pub(super) log: Arc<Log>,
}

/// Callers at work.
pub(super) struct Callers {
    enough: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Callers {
    /// So many that send orders, and one that looks what became of them.
    pub(super) fn start(way: &Way, count: usize) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let mut threads: Vec<_> = (0..count)
            .map(|place| {
                let (mut caller, enough) = (Caller::new(way, place), enough.clone());
                thread::spawn(move || {
                    while !enough.load(Ordering::SeqCst) {
                        let order = Order::make(&caller.way.log);
                        caller.send(&order, || enough.load(Ordering::SeqCst));
                        thread::sleep(PACE); // tidy: the pace of a caller
                    }
                })
            })
            .collect();
        let (mut looker, done) = (Caller::new(way, count), enough.clone());
        threads.push(thread::spawn(move || {
            while !done.load(Ordering::SeqCst) {
                looker.look_at_some();
                thread::sleep(PACE); // tidy: the pace of a caller
            }
        }));
        Self { enough, threads }
    }

    /// Sends everyone home after their next answer.
    pub(super) fn leave(self) {
        self.enough.store(true, Ordering::SeqCst);
        for caller in self.threads {
            caller.join().expect("no caller panics");
        }
    }
}

/// One caller, with a connection to the door that it used last.
pub(super) struct Caller {
    way: Way,
    turn: usize,
    connection: Option<Connection>,
}

impl Caller {
    pub(super) fn new(way: &Way, turn: usize) -> Self {
        Self {
            way: way.clone(),
            turn,
            connection: None,
        }
    }

    /// Sends an order, again while it has a key and no answer that counts, until it is `enough`.
    pub(super) fn send(&mut self, order: &Order, enough: impl Fn() -> bool) {
        self.way.log.begin(order);
        loop {
            let told = self.try_once(order);
            let counts = matches!(told, Told::Ids(_) | Told::Refused(400));
            if counts || !order.is_keyed || enough() {
                break;
            }
            thread::sleep(AGAIN_AFTER); // tidy: the pace of a caller
        }
        if order.is_cancelled {
            self.take_back(order.number);
        }
    }

    /// Sends an order once and writes down what it is told.
    pub(super) fn try_once(&mut self, order: &Order) -> Told {
        let body = order.body(&self.way.log, &self.way.receiver).to_string();
        let key = order.key();
        let key = key.as_deref().map(|key| ("Idempotency-Key", key));
        let answer = self.ask("POST", "/sms", key.as_slice(), body.as_bytes());
        let told = match answer {
            Err(_) => Told::Nothing,
            Ok(answer) if answer.status == 200 => Told::Ids(ids_of(&answer)),
            Ok(answer) if answer.status == 400 && order.is_invalid => Told::Refused(400),
            Ok(answer) if is_refusal(&answer) => Told::Refused(503),
            Ok(answer) => {
                let said = format!("{order:?} got {} {}", answer.status, answer.text());
                self.way.log.wrong(said);
                Told::Refused(answer.status)
            }
        };
        self.way.log.told(order.number, told.clone());
        told
    }

    /// Takes back what is scheduled.
    fn take_back(&mut self, number: u64) {
        let ids = self.way.log.pages().cases[&number]
            .ids()
            .map(<[u64]>::to_vec);
        for id in ids.into_iter().flatten() {
            let answer = self.ask("DELETE", &format!("/sms/{id}"), &[], b"");
            let told = match answer {
                Ok(answer) if answer.status == 200 => Told::Ids(vec![id]),
                Ok(answer) => Told::Refused(answer.status),
                Err(_) => Told::Nothing,
            };
            self.way.log.cancelled(number, told);
        }
    }

    /// Asks where a few of the answered messages stand.
    fn look_at_some(&mut self) {
        self.turn += 1;
        let ids: Vec<u64> = {
            let pages = self.way.log.pages();
            let answered: Vec<u64> = pages
                .cases
                .values()
                .rev()
                .take(300)
                .flat_map(|case| case.ids().unwrap_or_default().to_vec())
                .collect();
            let every = answered.len() / 4 + 1;
            answered
                .into_iter()
                .skip(self.turn % every)
                .step_by(every)
                .collect()
        };
        for id in ids {
            self.look(id);
        }
    }

    /// Asks where a message stands and writes it down; says whether it got an answer.
    pub(super) fn look(&mut self, id: u64) -> bool {
        let Ok(answer) = self.ask("GET", &format!("/sms/status/{id}"), &[], b"") else {
            return false;
        };
        match answer.status {
            200 => self.way.log.looked(id, end_of(&answer)),
            404 => self
                .way
                .log
                .wrong(format!("{id} was answered and is unknown")),
            _ => return false,
        }
        true
    }

    /// Whether one node says that it is ready.
    pub(super) fn is_ready(addr: SocketAddr) -> bool {
        let mut ready = false;
        if let Ok(mut connection) = Connection::open(addr) {
            connection.set_deadline(PATIENCE);
            let answer = connection.request("GET", "/health/ready", &[], b"");
            ready = answer.is_ok_and(|answer| answer.status == 200);
        }
        ready
    }

    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        if self.connection.is_none() {
            self.turn += 1;
            let door = self.way.doors[self.turn % self.way.doors.len()];
            let mut connection = Connection::open(door)?;
            connection.set_deadline(PATIENCE);
            self.connection = Some(connection);
        }
        let token = self.way.token.clone();
        let mut headers = vec![
            ("X-Service-Token", token.as_str()),
            ("Content-Type", "application/json"),
        ];
        headers.extend_from_slice(more);
        let connection = self.connection.as_mut().expect("it was just opened");
        let answer = connection.request(method, path, &headers, body);
        // Another door the next time, now and then even without a reason. One step after a failure: of two doors, two
        // steps would lead back to the one that is closed.
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

/// How a message has ended, if it has.
fn end_of(answer: &Response) -> Option<End> {
    let answer = answer.json();
    if answer["state"] == "cancelled" {
        return Some(CANCELLED);
    }
    answer["status"].as_u64().zip(answer["error"].as_u64())
}
