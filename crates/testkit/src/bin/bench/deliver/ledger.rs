//! Which messages were accepted, and which were called back after how long.
//!
//! A word for each message, at the place of its ID: a minute's messages take a few megabytes, and
//! noting one allocates nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::histogram::Histogram;
use testkit::load::Gate;

/// IDs are given to requests that wait side by side, so the first answer may not hold the lowest.
const SLACK: u64 = 100_000;
/// An ID further on than this is none of this run's.
const MOST_SLOTS: usize = 100_000_000;
/// Slots are added by the thousand, so that adding them is rare.
const SLOT_STEP: usize = 1 << 16;

/// A message of which nothing is known.
const UNKNOWN: u64 = 0;
/// Marks the time of a callback that was faster than the answer; without it, the time is that of
/// the answer.
const CALLED_BACK: u64 = 1 << 63;
/// Both have come.
const DONE: u64 = u64::MAX;

/// Written by the load generator and by the receiver, each on its own thread.
pub(super) struct Ledger {
    opened: Instant,
    gate: Arc<Gate>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// The ID of the first slot, once one is known.
    base: Option<u64>,
    slots: Vec<u64>,
    tally: Tally,
}

/// How it stands.
#[derive(Clone, Default)]
pub(super) struct Tally {
    /// Answers that held an ID.
    pub(super) accepted: u64,
    /// Messages of which both answer and callback have come.
    pub(super) called_back: u64,
    /// Callbacks beyond the first of a message.
    pub(super) repeated: u64,
    /// Callbacks that said anything but "delivered".
    pub(super) undelivered: u64,
    /// Answers and callbacks without an ID, or with one that cannot be.
    pub(super) unreadable: u64,
    /// From the answer to the callback.
    pub(super) delay: Histogram,
    /// From the start to the latest callback.
    pub(super) last_callback: Duration,
}

impl Tally {
    /// Accepted messages whose callback has not come.
    pub(super) fn missing(&self) -> u64 {
        self.accepted - self.called_back
    }
}

impl Ledger {
    /// Time counts from here; places are given back at `gate`.
    pub(super) fn open(gate: Arc<Gate>) -> Self {
        Self {
            opened: Instant::now(),
            gate,
            pages: Mutex::default(),
        }
    }

    /// The answer to `POST /sms`.
    pub(super) fn note_answer(&self, body: &[u8]) {
        let now = self.opened.elapsed();
        match number_behind(body, br#"[""#) {
            Some(id) => self.pages().note_answer(id, now),
            None => self.pages().tally.unreadable += 1,
        }
    }

    /// A callback.
    pub(super) fn note_callback(&self, body: &[u8]) {
        let now = self.opened.elapsed();
        let mut pages = self.pages();
        let id = number_behind(body, br#""id":""#);
        pages.tally.unreadable += u64::from(id.is_none());
        let first = id.is_some_and(|id| pages.note_callback(id, now));
        if first && number_behind(body, br#""status":"#) != Some(1) {
            pages.tally.undelivered += 1;
        }
        drop(pages);
        if first {
            self.gate.leave();
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.pages().tally.clone()
    }

    /// How long ago the latest callback came.
    pub(super) fn quiet_for(&self) -> Duration {
        let last_callback = self.pages().tally.last_callback;
        self.opened.elapsed().saturating_sub(last_callback)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn note_answer(&mut self, id: u64, now: Duration) {
        let Some(at) = self.place(id) else { return };
        match self.slots[at] {
            UNKNOWN => {
                self.tally.accepted += 1;
                self.slots[at] = stamp(now);
            }
            early if early & CALLED_BACK != 0 && early != DONE => {
                self.tally.accepted += 1;
                self.settle(at, Duration::ZERO);
            }
            // An ID that was given twice: the second message cannot be told from the first.
            _ => self.tally.unreadable += 1,
        }
    }

    /// Whether it was the first of its message.
    fn note_callback(&mut self, id: u64, now: Duration) -> bool {
        self.tally.last_callback = now;
        let Some(at) = self.place(id) else {
            return false;
        };
        match self.slots[at] {
            UNKNOWN => self.slots[at] = stamp(now) | CALLED_BACK,
            answered if answered & CALLED_BACK == 0 => {
                let answered = Duration::from_nanos(answered);
                self.settle(at, now.saturating_sub(answered));
            }
            _ => {
                self.tally.repeated += 1;
                return false;
            }
        }
        true
    }

    fn settle(&mut self, at: usize, delay: Duration) {
        self.slots[at] = DONE;
        self.tally.called_back += 1;
        self.tally.delay.record(delay);
    }

    /// The slot of an ID, added if need be.
    fn place(&mut self, id: u64) -> Option<usize> {
        let base = *self.base.get_or_insert(id.saturating_sub(SLACK));
        let offset = id.checked_sub(base).and_then(|at| usize::try_from(at).ok());
        let Some(at) = offset.filter(|at| *at < MOST_SLOTS) else {
            self.tally.unreadable += 1;
            return None;
        };
        if at >= self.slots.len() {
            self.slots.resize(at + SLOT_STEP, UNKNOWN);
        }
        Some(at)
    }
}

/// Nanoseconds, never [`UNKNOWN`] and never with the bit of [`CALLED_BACK`]: a run ends within
/// centuries.
fn stamp(now: Duration) -> u64 {
    u64::try_from(now.as_nanos())
        .unwrap_or(u64::MAX)
        .clamp(1, CALLED_BACK - 1)
}

/// The whole number right behind the first `marker`, quoted or not.
fn number_behind(text: &[u8], marker: &[u8]) -> Option<u64> {
    let start = text.windows(marker.len()).position(|part| part == marker)? + marker.len();
    let rest = &text[start..];
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let length = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    std::str::from_utf8(&rest[..length]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Ledger, number_behind};
    use std::sync::Arc;
    use testkit::load::Gate;

    fn ledger() -> Ledger {
        Ledger::open(Arc::new(Gate::new(1)))
    }

    #[test]
    fn numbers_are_found_behind_their_marker() {
        let cases: [(&str, &str, &str, Option<u64>); 6] = [
            ("answer", r#"["12"]"#, r#"[""#, Some(12)),
            ("callback", r#"{"id":"7","status":1}"#, r#""id":""#, Some(7)),
            ("bare", r#"{"status":16,"e":0}"#, r#""status":"#, Some(16)),
            ("quoted", r#"{"status":"2"}"#, r#""status":"#, Some(2)),
            ("no number", r#"{"id":"x"}"#, r#""id":""#, None),
            ("no marker", "OK", r#""id":""#, None),
        ];
        for (case, text, marker, expected) in cases {
            let found = number_behind(text.as_bytes(), marker.as_bytes());
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn each_message_is_matched_once_in_either_order() {
        let ledger = ledger();
        ledger.note_answer(br#"["500000"]"#);
        ledger.note_answer(br#"["499999"]"#);
        assert_eq!(ledger.tally().missing(), 2);
        ledger.note_callback(br#"{"id":"500000","status":1}"#);
        ledger.note_callback(br#"{"id":"500000","status":1}"#);
        ledger.note_callback(br#"{"id":"777777","status":2}"#);
        let tally = ledger.tally();
        assert_eq!((tally.accepted, tally.called_back), (2, 1));
        assert_eq!((tally.repeated, tally.undelivered), (1, 1));
        ledger.note_answer(br#"["777777"]"#);
        let tally = ledger.tally();
        assert_eq!((tally.accepted, tally.missing()), (3, 1), "callback first");
        assert_eq!(tally.delay.count(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let ledger = ledger();
        ledger.note_answer(b"[]");
        ledger.note_answer(br#"["1"]"#);
        ledger.note_answer(br#"["1"]"#);
        ledger.note_callback(br#"{"id":"99999999999"}"#);
        let tally = ledger.tally();
        assert_eq!((tally.unreadable, tally.accepted), (3, 1));
    }
}
