//! What a test saw from outside: the answers to the callers, the reports at the receiver, the network's journal.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;
use testkit::http::Response;
use testkit::receiver::{Reply, Request};

use super::orders::{End, Order, SENDERS};
use crate::faults::ledger::is_refusal;

/// The status of a report that a delivered message was seen: news on top of its end.
const SEEN: u64 = 3;
/// Of the messages that are reported, one in so many is not received at the first try.
const NOT_AT_FIRST: u64 = 97;

/// One for each test. It knows nothing of the service but what comes over its sockets and into its files.
pub(super) struct Log {
    next: AtomicU64,
    journal: PathBuf,
    pages: Mutex<Pages>,
}

#[derive(Default)]
pub(super) struct Pages {
    /// Every order that was answered with IDs: those IDs.
    pub(super) accepted: Vec<(Order, Vec<u64>)>,
    /// Every sender that was answered with its ID.
    pub(super) senders: Vec<u64>,
    /// The orders that got 503.
    pub(super) refused: Vec<Order>,
    /// The orders that were sent and got no answer: stored or not, nobody knows.
    pub(super) unanswered: Vec<Order>,
    /// The numbers of the orders that got 400, as they must.
    pub(super) invalid: Vec<u64>,
    /// What came about each message, in order.
    pub(super) reports: HashMap<u64, Vec<Report>>,
    /// How often each message was handed to the network before each crash, and since the last.
    pub(super) eras: Vec<BTreeMap<u64, usize>>,
    /// How many reports said that a message was seen.
    pub(super) seen: usize,
    /// How much of the journal is in `eras`.
    read: usize,
    /// Whatever must not happen.
    pub(super) wrong: Vec<String>,
}

/// A report as it came.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// The order that asked for it.
    pub(super) number: u64,
    /// The report's own ID.
    pub(super) webhook_id: String,
    pub(super) end: End,
    pub(super) at: Instant,
    /// Whether the receiver said that it had it.
    pub(super) received: bool,
}

impl Pages {
    /// Messages that are to be reported and whose report was not received yet.
    pub(super) fn unreported(&self) -> usize {
        let reported = self.accepted.iter().filter(|(order, _)| order.reported);
        let missing = |id: &&u64| !self.reports.get(*id).is_some_and(|all| is_received(all));
        reported
            .map(|(_, ids)| ids.iter().filter(missing).count())
            .sum()
    }

    fn close(&mut self, order: Order, answer: &io::Result<Response>) {
        match answer {
            Err(_) => self.unanswered.push(order),
            Ok(answer) if answer.status == 400 && order.ends.is_empty() => {
                self.invalid.push(order.number);
            }
            Ok(answer) if answer.status == 200 && order.path == SENDERS => {
                self.senders.extend(answer.json().as_u64());
            }
            Ok(answer) if answer.status == 200 && !order.ends.is_empty() => {
                let ids = ids_of(answer);
                if ids.len() != order.ends.len() {
                    self.wrong.push(format!("{order:?} got {ids:?}"));
                }
                self.accepted.push((order, ids));
            }
            Ok(answer) if is_refusal(answer) => self.refused.push(order),
            Ok(answer) => self.wrong.push(format!("{order:?} got {answer:?}")),
        }
    }
}

impl Log {
    pub(super) fn new(journal: PathBuf) -> Self {
        Self {
            next: AtomicU64::new(0),
            journal,
            pages: Mutex::default(),
        }
    }

    /// Makes the next order.
    pub(super) fn open(&self, receiver: &str) -> (Order, Value) {
        Order::make(self.next.fetch_add(1, Ordering::SeqCst), receiver)
    }

    /// Writes down what became of an order.
    pub(super) fn close(&self, order: Order, answer: &io::Result<Response>) {
        self.pages().close(order, answer);
    }

    /// Writes down what comes to the receiver, and decides what it answers.
    pub(super) fn receive(&self, request: &Request<'_>) -> Reply {
        let at = Instant::now();
        let mut pages = self.pages();
        let Some((id, mut report)) = read_report(request, at) else {
            let came = String::from_utf8_lossy(request.body).into_owned();
            pages.wrong.push(format!("not a report: {came}"));
            return Reply::ok();
        };
        if report.end.0 == SEEN {
            pages.seen += 1;
            return Reply::ok();
        }
        let before = pages.reports.entry(id).or_default();
        report.received = !id.is_multiple_of(NOT_AT_FIRST) || !before.is_empty();
        let received = report.received;
        before.push(report);
        drop(pages);
        if received {
            Reply::ok()
        } else {
            Reply::answer(500, "not now")
        }
    }

    /// The service is dead: what the network got until now belongs to the time before this crash.
    pub(super) fn end_era(&self) {
        let journal = fs::read_to_string(&self.journal).unwrap_or_default();
        let mut pages = self.pages();
        let mut era = BTreeMap::new();
        for line in journal[pages.read..].lines() {
            let id = line.split(' ').next().and_then(|id| id.parse().ok());
            match id {
                Some(id) => *era.entry(id).or_default() += 1,
                None => pages.wrong.push(format!("in the journal: {line:?}")),
            }
        }
        pages.read = journal.len();
        pages.eras.push(era);
    }

    /// A test that fails holds the lock; its callers still end in order.
    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one of these was received.
pub(super) fn is_received(reports: &[Report]) -> bool {
    reports.iter().any(|report| report.received)
}

fn ids_of(answer: &Response) -> Vec<u64> {
    let answer = answer.json();
    let ids = answer.as_array().expect("a list of IDs").iter();
    // A message's is a string, a lookup's a number.
    ids.filter_map(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()))
        .collect()
}

fn read_report(request: &Request<'_>, at: Instant) -> Option<(u64, Report)> {
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let error = body["error"].as_u64()?;
    // What a lookup found has no status: an error says enough.
    let status = body["status"]
        .as_u64()
        .unwrap_or(if error == 0 { 1 } else { 2 });
    let report = Report {
        number: request.path.strip_prefix('/')?.parse().ok()?,
        webhook_id: request.header("webhook-id")?.to_owned(),
        end: (status, error),
        at,
        received: false,
    };
    Some((body["id"].as_str()?.parse().ok()?, report))
}
