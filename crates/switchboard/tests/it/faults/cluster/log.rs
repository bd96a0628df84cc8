//! What a scenario observes from outside. Times are milliseconds since the log was opened.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use testkit::StallMonitor;

use super::handsets::TextObservations;
use super::requests::PlannedRequest;

/// Status and error of a message that has ended; `CANCELLED` if it was cancelled.
pub(super) type FinalState = (u64, u64);
pub(super) const CANCELLED: FinalState = (0, 0);

/// What a caller got for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The IDs of its messages.
    Ids(Vec<u64>),
    /// A refusal with this status.
    Refused(u16),
    /// No answer: the connection ended or the caller timed out.
    Missing,
}

/// A request and the answers to all of its attempts.
#[derive(Debug, Clone)]
pub(super) struct RequestRecord {
    pub(super) request: PlannedRequest,
    /// When its first attempt began.
    pub(super) began_ms: u64,
    pub(super) answers: Vec<Answer>,
    /// The answer to the request to cancel it; `None` if there was none.
    pub(super) cancelled: Option<Answer>,
}

impl RequestRecord {
    /// The IDs of its messages, if it was accepted.
    pub(super) fn ids(&self) -> Option<&[u64]> {
        self.answers.iter().find_map(|answer| match answer {
            Answer::Ids(ids) => Some(ids.as_slice()),
            _ => None,
        })
    }
}

/// A part that the network got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Submit {
    pub(super) number: u64,
    pub(super) to: u64,
    pub(super) part: u8,
    pub(super) at_ms: u64,
}

/// A report that came to the receiver or to an SMPP client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) number: u64,
    /// `None` if it came to an SMPP client.
    pub(super) webhook_id: Option<String>,
    pub(super) final_state: FinalState,
    /// Whether the receiver acknowledged it.
    pub(super) received: bool,
    pub(super) at_ms: u64,
}

/// A fault that may cause up to `max_duplicates` parts to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) max_duplicates: usize,
}

/// A period in which the machine did not let the processes of the test run for some of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) lost: Duration,
}

/// The log of one scenario. It only knows what the service sends.
pub(super) struct Log {
    started: Instant,
    wall: Timestamp,
    monitor: StallMonitor,
    next: AtomicU64,
    observed: Mutex<Observations>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Observations {
    pub(super) requests: BTreeMap<u64, RequestRecord>,
    pub(super) submits: Vec<Submit>,
    pub(super) reports: HashMap<u64, Vec<Report>>,
    pub(super) texts: TextObservations,
    /// The final state that each message showed, one entry for each change: `None` while it had not ended.
    pub(super) status_checks: HashMap<u64, Vec<Option<FinalState>>>,
    pub(super) faults: Vec<Fault>,
    /// When the last fault was over.
    pub(super) faults_over_ms: Option<u64>,
    pub(super) stalls: Vec<Stall>,
    /// Events that must not happen.
    pub(super) unexpected: Vec<String>,
}

impl Observations {
    /// How long the machine stalled between two moments. A stall that is only partly between them counts in proportion.
    pub(super) fn stalled_ms(&self, from_ms: u64, until_ms: u64) -> u64 {
        let part = |stall: &Stall| {
            let shared = stall.until_ms.min(until_ms);
            let shared = shared.saturating_sub(stall.from_ms.max(from_ms));
            let lost_ms = u64::try_from(stall.lost.as_millis()).unwrap_or(u64::MAX);
            lost_ms * shared / (stall.until_ms - stall.from_ms).max(1)
        };
        self.stalls.iter().map(part).sum()
    }

    /// Whether a receipt came to an SMPP client.
    pub(super) fn has_smpp_receipt(&self) -> bool {
        let mut reports = self.reports.values().flatten();
        reports.any(|report| report.webhook_id.is_none())
    }
}

impl Log {
    pub(super) fn open() -> Self {
        Self {
            monitor: StallMonitor::start(),
            started: Instant::now(),
            wall: SystemClock.now(),
            next: AtomicU64::new(1),
            observed: Mutex::default(),
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.to_ms(Instant::now())
    }

    pub(super) fn to_ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// This moment on the wall clock.
    pub(super) fn to_timestamp(&self, ms: u64) -> Timestamp {
        self.wall + SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Called before the first attempt.
    pub(super) fn record_request(&self, request: &PlannedRequest) {
        let record = RequestRecord {
            request: request.clone(),
            began_ms: self.now_ms(),
            answers: Vec::new(),
            cancelled: None,
        };
        self.observed().requests.insert(request.number, record);
    }

    pub(super) fn record_answer(&self, number: u64, answer: Answer) {
        if let Some(record) = self.observed().requests.get_mut(&number) {
            record.answers.push(answer);
        }
    }

    pub(super) fn record_cancellation(&self, number: u64, answer: Answer) {
        if let Some(record) = self.observed().requests.get_mut(&number) {
            record.cancelled = Some(answer);
        }
    }

    pub(super) fn record_submit(&self, submit: Submit) {
        self.observed().submits.push(submit);
    }

    pub(super) fn record_status(&self, id: u64, final_state: Option<FinalState>) {
        let mut observed = self.observed();
        let status_checks = observed.status_checks.entry(id).or_default();
        if status_checks.last() != Some(&final_state) {
            status_checks.push(final_state);
        }
    }

    pub(super) fn record_unexpected(&self, what: String) {
        self.observed().unexpected.push(what);
    }

    /// Records a fault that lasted from `from_ms` until now.
    pub(super) fn record_fault(&self, from_ms: u64, max_duplicates: usize) {
        let until_ms = self.now_ms();
        self.observed().faults.push(Fault {
            from_ms,
            until_ms,
            max_duplicates,
        });
    }

    /// Records that all faults are over. The first call counts.
    pub(super) fn faults_are_over(&self) {
        let now = self.now_ms();
        self.observed().faults_over_ms.get_or_insert(now);
    }

    /// Records all stalls of the machine so far.
    pub(super) fn record_stalls(&self) {
        let stalls = self.monitor.since(self.started);
        let stalls = stalls.iter().map(|stall| Stall {
            from_ms: self.to_ms(stall.from),
            until_ms: self.to_ms(stall.until),
            lost: stall.stalled,
        });
        self.observed().stalls = stalls.collect();
    }

    /// A test that fails may poison the lock; its callers can still stop cleanly.
    pub(super) fn observed(&self) -> MutexGuard<'_, Observations> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
