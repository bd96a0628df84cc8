//! What was seen from outside, in the order in which it was seen. Times are milliseconds since the log was opened.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::clock::SystemClock;
use domain::{Clock, Timestamp};
use jiff::SignedDuration;
use testkit::StallControl;

use super::orders::Order;

/// The end of a message, as the service tells it: status and error. A message that was taken back has `CANCELLED`.
pub(super) type End = (u64, u64);
pub(super) const CANCELLED: End = (0, 0);

/// What a caller was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// The IDs of its messages.
    Ids(Vec<u64>),
    /// A refusal with this status.
    Refused(u16),
    /// Nothing: the connection ended or the caller lost its patience.
    Nothing,
}

/// An order and all that its caller was told, try by try.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) order: Order,
    pub(super) told: Vec<Told>,
    /// Whether taking it back was answered with yes, with no, or not at all; `None`: nobody tried.
    pub(super) cancelled: Option<Told>,
}

impl Case {
    /// The IDs that it was answered with, if ever.
    pub(super) fn ids(&self) -> Option<&[u64]> {
        self.told.iter().find_map(|told| match told {
            Told::Ids(ids) => Some(ids.as_slice()),
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

/// A report that came to the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) number: u64,
    pub(super) webhook_id: String,
    pub(super) end: End,
    /// Whether the receiver said that it had it.
    pub(super) received: bool,
}

/// Something was broken for a while, so that up to `most` parts may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) most: usize,
}

/// A while in which the machine kept the processes of the test from running for a part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) lost: Duration,
}

/// One for each scenario. It knows nothing of the service but what comes over its sockets.
pub(super) struct Log {
    started: Instant,
    wall: Timestamp,
    control: StallControl,
    next: AtomicU64,
    pages: Mutex<Pages>,
}

/// Everything that was seen.
#[derive(Debug, Default, Clone)]
pub(super) struct Pages {
    pub(super) cases: BTreeMap<u64, Case>,
    pub(super) submits: Vec<Submit>,
    pub(super) reports: HashMap<u64, Vec<Report>>,
    /// What was seen of each message, one entry for each change: `None` while it had not ended.
    pub(super) looks: HashMap<u64, Vec<Option<End>>>,
    pub(super) faults: Vec<Fault>,
    /// From here on nothing was broken any more.
    pub(super) calm_ms: Option<u64>,
    /// When the machine stood still.
    pub(super) stalls: Vec<Stall>,
    /// Whatever must not happen.
    pub(super) wrong: Vec<String>,
}

impl Pages {
    /// How long the machine stood still between two moments. A stall that is only partly between them counts for that
    /// part.
    pub(super) fn stalled_ms(&self, from_ms: u64, until_ms: u64) -> u64 {
        let part = |stall: &Stall| {
            let shared = stall.until_ms.min(until_ms);
            let shared = shared.saturating_sub(stall.from_ms.max(from_ms));
            let lost_ms = u64::try_from(stall.lost.as_millis()).unwrap_or(u64::MAX);
            lost_ms * shared / (stall.until_ms - stall.from_ms).max(1)
        };
        self.stalls.iter().map(part).sum()
    }
}

impl Log {
    pub(super) fn open() -> Self {
        Self {
            control: StallControl::start(),
            started: Instant::now(),
            wall: SystemClock.now(),
            next: AtomicU64::new(1),
            pages: Mutex::default(),
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.ms_of(Instant::now())
    }

    pub(super) fn ms_of(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// That moment on the wall clock.
    pub(super) fn time_of(&self, ms: u64) -> Timestamp {
        self.wall + SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// The number of the next order.
    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Writes an order down before it is sent for the first time.
    pub(super) fn begin(&self, order: &Order) {
        let case = Case {
            order: order.clone(),
            told: Vec::new(),
            cancelled: None,
        };
        self.pages().cases.insert(order.number, case);
    }

    pub(super) fn told(&self, number: u64, told: Told) {
        if let Some(case) = self.pages().cases.get_mut(&number) {
            case.told.push(told);
        }
    }

    pub(super) fn cancelled(&self, number: u64, told: Told) {
        if let Some(case) = self.pages().cases.get_mut(&number) {
            case.cancelled = Some(told);
        }
    }

    pub(super) fn submitted(&self, submit: Submit) {
        self.pages().submits.push(submit);
    }

    /// Writes down where a message was seen to stand.
    pub(super) fn looked(&self, id: u64, end: Option<End>) {
        let mut pages = self.pages();
        let looks = pages.looks.entry(id).or_default();
        if looks.last() != Some(&end) {
            looks.push(end);
        }
    }

    pub(super) fn wrong(&self, what: String) {
        self.pages().wrong.push(what);
    }

    /// Something is broken from `from_ms` until now.
    pub(super) fn fault(&self, from_ms: u64, most: usize) {
        let until_ms = self.now_ms();
        self.pages().faults.push(Fault {
            from_ms,
            until_ms,
            most,
        });
    }

    /// Nothing is broken any more. The first time counts.
    pub(super) fn calm(&self) {
        let now = self.now_ms();
        self.pages().calm_ms.get_or_insert(now);
    }

    /// Writes down when the machine stood still so far.
    pub(super) fn note_stalls(&self) {
        let stalls = self.control.since(self.started);
        let stalls = stalls.iter().map(|stall| Stall {
            from_ms: self.ms_of(stall.from),
            until_ms: self.ms_of(stall.until),
            lost: stall.stalled,
        });
        self.pages().stalls = stalls.collect();
    }

    /// A test that fails holds the lock; its callers still end in order.
    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
