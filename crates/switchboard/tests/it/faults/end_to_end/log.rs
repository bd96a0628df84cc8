//! What a test observes from outside: answers to callers, reports at the receiver, the journal of the network.

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

use super::requests::{FinalState, PlannedRequest, SENDERS};
use crate::faults::answer_log::is_refusal;

/// The status of a report that a delivered message was seen. It comes after the report of the final state.
const SEEN: u64 = 3;
/// The receiver refuses the first report of one in this many messages.
const REFUSE_ONE_IN: u64 = 97;

/// The log of one test. It only knows what the service sends and what the journal contains.
pub(super) struct Log {
    next: AtomicU64,
    journal: PathBuf,
    observed: Mutex<Observations>,
}

#[derive(Default)]
pub(super) struct Observations {
    /// The requests that were answered with IDs, and these IDs.
    pub(super) accepted: Vec<(PlannedRequest, Vec<u64>)>,
    /// The IDs of registered senders.
    pub(super) senders: Vec<u64>,
    /// The requests that got 503.
    pub(super) refused: Vec<PlannedRequest>,
    /// The requests that were sent and got no answer. They may be stored or not.
    pub(super) unanswered: Vec<PlannedRequest>,
    /// The numbers of the requests that got the expected 400.
    pub(super) invalid: Vec<u64>,
    /// The reports of each message, in the order of their arrival.
    pub(super) reports: HashMap<u64, Vec<Report>>,
    /// How often each message was sent to the network, for each run of the process.
    pub(super) runs: Vec<BTreeMap<u64, usize>>,
    /// How many reports said that a message was seen.
    pub(super) seen: usize,
    /// How much of the journal is in `runs`.
    journal_read: usize,
    /// Events that must not happen.
    pub(super) unexpected: Vec<String>,
}

/// A report that the receiver got.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// The number of its request.
    pub(super) number: u64,
    pub(super) webhook_id: String,
    pub(super) final_state: FinalState,
    pub(super) at: Instant,
    /// Whether the receiver acknowledged it.
    pub(super) received: bool,
}

impl Observations {
    /// How many messages still need a report.
    pub(super) fn unreported(&self) -> usize {
        let reported = self.accepted.iter().filter(|(request, _)| request.reported);
        let missing = |id: &&u64| !self.reports.get(*id).is_some_and(|all| is_received(all));
        reported
            .map(|(_, ids)| ids.iter().filter(missing).count())
            .sum()
    }

    fn record(&mut self, request: PlannedRequest, answer: &io::Result<Response>) {
        match answer {
            Err(_) => self.unanswered.push(request),
            Ok(answer) if answer.status == 400 && request.final_states.is_empty() => {
                self.invalid.push(request.number);
            }
            Ok(answer) if answer.status == 200 && request.path == SENDERS => {
                self.senders.extend(answer.json().as_u64());
            }
            Ok(answer) if answer.status == 200 && !request.final_states.is_empty() => {
                let ids = ids_of(answer);
                if ids.len() != request.final_states.len() {
                    self.unexpected.push(format!("{request:?} got {ids:?}"));
                }
                self.accepted.push((request, ids));
            }
            Ok(answer) if is_refusal(answer) => self.refused.push(request),
            Ok(answer) => self.unexpected.push(format!("{request:?} got {answer:?}")),
        }
    }
}

impl Log {
    pub(super) fn new(journal: PathBuf) -> Self {
        Self {
            next: AtomicU64::new(0),
            journal,
            observed: Mutex::default(),
        }
    }

    /// Makes the next request and its body.
    pub(super) fn next_request(&self, receiver: &str) -> (PlannedRequest, Value) {
        PlannedRequest::make(self.next.fetch_add(1, Ordering::SeqCst), receiver)
    }

    /// Records the answer to a request.
    pub(super) fn record(&self, request: PlannedRequest, answer: &io::Result<Response>) {
        self.observed().record(request, answer);
    }

    /// Records what the receiver gets, and decides what it answers.
    pub(super) fn receive(&self, request: &Request<'_>) -> Reply {
        let at = Instant::now();
        let mut observed = self.observed();
        let Some((id, mut report)) = read_report(request, at) else {
            let body_text = String::from_utf8_lossy(request.body).into_owned();
            observed
                .unexpected
                .push(format!("not a report: {body_text}"));
            return Reply::ok();
        };
        if report.final_state.0 == SEEN {
            observed.seen += 1;
            return Reply::ok();
        }
        let before = observed.reports.entry(id).or_default();
        report.received = !id.is_multiple_of(REFUSE_ONE_IN) || !before.is_empty();
        let received = report.received;
        before.push(report);
        drop(observed);
        if received {
            Reply::ok()
        } else {
            Reply::answer(500, "not now")
        }
    }

    /// The process has ended: counts what the network got during this run.
    pub(super) fn end_run(&self) {
        let journal = fs::read_to_string(&self.journal).unwrap_or_default();
        let mut observed = self.observed();
        let mut run = BTreeMap::new();
        for line in journal[observed.journal_read..].lines() {
            let id = line.split(' ').next().and_then(|id| id.parse().ok());
            match id {
                Some(id) => *run.entry(id).or_default() += 1,
                None => observed
                    .unexpected
                    .push(format!("in the journal: {line:?}")),
            }
        }
        observed.journal_read = journal.len();
        observed.runs.push(run);
    }

    /// A test that fails may poison the lock; its callers can still stop cleanly.
    pub(super) fn observed(&self) -> MutexGuard<'_, Observations> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn is_received(reports: &[Report]) -> bool {
    reports.iter().any(|report| report.received)
}

fn ids_of(answer: &Response) -> Vec<u64> {
    let answer = answer.json();
    let ids = answer.as_array().expect("a list of IDs").iter();
    // The ID of a message is a string, that of a lookup is a number.
    ids.filter_map(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()))
        .collect()
}

fn read_report(request: &Request<'_>, at: Instant) -> Option<(u64, Report)> {
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let error = body["error"].as_u64()?;
    // The result of a lookup has no status, only an error.
    let status = body["status"]
        .as_u64()
        .unwrap_or(if error == 0 { 1 } else { 2 });
    let report = Report {
        number: request.path.strip_prefix('/')?.parse().ok()?,
        webhook_id: request.header("webhook-id")?.to_owned(),
        final_state: (status, error),
        at,
        received: false,
    };
    Some((body["id"].as_str()?.parse().ok()?, report))
}
