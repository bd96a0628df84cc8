//! Tracks which messages were accepted and which were called back, and the time in between.
//!
//! Each message has one word, indexed by its ID: the messages of a minute take a few megabytes, and recording one does
//! not allocate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::Latencies;
use testkit::load::InFlightLimit;

/// Requests get their IDs concurrently, so the first answer may not have the lowest ID.
const SLACK: u64 = 100_000;
/// An ID further away than this does not belong to this run.
const MAX_SLOTS: usize = 100_000_000;
/// Slots are added in large steps, so that it happens rarely.
const SLOT_STEP: usize = 1 << 16;

/// Neither an answer nor a callback.
const UNKNOWN: u64 = 0;
/// Marks the time of a callback that arrived before the answer. Without this bit, the time is that of the answer.
const CALLED_BACK: u64 = 1 << 63;
/// Both the answer and the callback.
const DONE: u64 = u64::MAX;

/// The load generator and the receiver record into it, each on its own thread.
pub(super) struct MessageTracker {
    started: Instant,
    in_flight: Arc<InFlightLimit>,
    slots: Mutex<SlotTable>,
}

#[derive(Default)]
struct SlotTable {
    /// The ID of the first slot, once an ID is known.
    base: Option<u64>,
    slots: Vec<u64>,
    totals: Totals,
}

/// The totals so far.
#[derive(Clone, Default)]
pub(super) struct Totals {
    /// Answers with an ID.
    pub(super) accepted: u64,
    /// Messages with both an answer and a callback.
    pub(super) called_back: u64,
    /// Further callbacks of the same message.
    pub(super) repeated: u64,
    /// Callbacks with another status than "delivered".
    pub(super) undelivered: u64,
    /// Answers and callbacks without a valid ID.
    pub(super) unreadable: u64,
    /// From the answer to the callback.
    pub(super) delay: Latencies,
    /// From the start to the latest callback.
    pub(super) last_callback: Duration,
}

impl Totals {
    /// Accepted messages without a callback.
    pub(super) fn missing(&self) -> u64 {
        self.accepted - self.called_back
    }
}

impl MessageTracker {
    /// Starts the clock. Each first callback releases a permit of `in_flight`.
    pub(super) fn start(in_flight: Arc<InFlightLimit>) -> Self {
        Self {
            started: Instant::now(),
            in_flight,
            slots: Mutex::default(),
        }
    }

    /// The answer to `POST /sms`.
    pub(super) fn record_answer(&self, body: &[u8]) {
        let now = self.started.elapsed();
        match number_after(body, br#"[""#) {
            Some(id) => self.slots().record_answer(id, now),
            None => self.slots().totals.unreadable += 1,
        }
    }

    /// A callback.
    pub(super) fn record_callback(&self, body: &[u8]) {
        let now = self.started.elapsed();
        let mut slots = self.slots();
        let id = number_after(body, br#""id":""#);
        slots.totals.unreadable += u64::from(id.is_none());
        let first = id.is_some_and(|id| slots.record_callback(id, now));
        if first && number_after(body, br#""status":"#) != Some(1) {
            slots.totals.undelivered += 1;
        }
        drop(slots);
        if first {
            self.in_flight.release();
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.slots().totals.clone()
    }

    /// The time since the latest callback.
    pub(super) fn since_last_callback(&self) -> Duration {
        let last_callback = self.slots().totals.last_callback;
        self.started.elapsed().saturating_sub(last_callback)
    }

    fn slots(&self) -> MutexGuard<'_, SlotTable> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn record_answer(&mut self, id: u64, now: Duration) {
        let Some(at) = self.slot_of(id) else { return };
        match self.slots[at] {
            UNKNOWN => {
                self.totals.accepted += 1;
                self.slots[at] = stamp(now);
            }
            early if early & CALLED_BACK != 0 && early != DONE => {
                self.totals.accepted += 1;
                self.complete(at, Duration::ZERO);
            }
            // The ID occurred twice, so the two messages cannot be distinguished.
            _ => self.totals.unreadable += 1,
        }
    }

    /// Returns whether it is the first callback of its message.
    fn record_callback(&mut self, id: u64, now: Duration) -> bool {
        self.totals.last_callback = now;
        let Some(at) = self.slot_of(id) else {
            return false;
        };
        match self.slots[at] {
            UNKNOWN => self.slots[at] = stamp(now) | CALLED_BACK,
            answered if answered & CALLED_BACK == 0 => {
                let answered = Duration::from_nanos(answered);
                self.complete(at, now.saturating_sub(answered));
            }
            _ => {
                self.totals.repeated += 1;
                return false;
            }
        }
        true
    }

    fn complete(&mut self, at: usize, delay: Duration) {
        self.slots[at] = DONE;
        self.totals.called_back += 1;
        self.totals.delay.record(delay);
    }

    /// The slot of an ID. Adds slots as needed.
    fn slot_of(&mut self, id: u64) -> Option<usize> {
        let base = *self.base.get_or_insert(id.saturating_sub(SLACK));
        let offset = id.checked_sub(base).and_then(|at| usize::try_from(at).ok());
        let Some(at) = offset.filter(|at| *at < MAX_SLOTS) else {
            self.totals.unreadable += 1;
            return None;
        };
        if at >= self.slots.len() {
            self.slots.resize(at + SLOT_STEP, UNKNOWN);
        }
        Some(at)
    }
}

/// Nanoseconds, never [`UNKNOWN`] and never with the bit of [`CALLED_BACK`].
fn stamp(now: Duration) -> u64 {
    u64::try_from(now.as_nanos())
        .unwrap_or(u64::MAX)
        .clamp(1, CALLED_BACK - 1)
}

/// The number after the first `marker`, quoted or not.
pub(crate) fn number_after(text: &[u8], marker: &[u8]) -> Option<u64> {
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
    use super::{MessageTracker, number_after};
    use std::sync::Arc;
    use testkit::load::InFlightLimit;

    fn tracker() -> MessageTracker {
        MessageTracker::start(Arc::new(InFlightLimit::new(1)))
    }

    #[test]
    fn numbers_are_found_after_their_marker() {
        let cases: [(&str, &str, &str, Option<u64>); 6] = [
            ("answer", r#"["12"]"#, r#"[""#, Some(12)),
            ("callback", r#"{"id":"7","status":1}"#, r#""id":""#, Some(7)),
            ("bare", r#"{"status":16,"e":0}"#, r#""status":"#, Some(16)),
            ("quoted", r#"{"status":"2"}"#, r#""status":"#, Some(2)),
            ("no number", r#"{"id":"x"}"#, r#""id":""#, None),
            ("no marker", "OK", r#""id":""#, None),
        ];
        for (case, text, marker, expected) in cases {
            let found = number_after(text.as_bytes(), marker.as_bytes());
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn each_message_is_matched_once_in_either_order() {
        let tracker = tracker();
        tracker.record_answer(br#"["500000"]"#);
        tracker.record_answer(br#"["499999"]"#);
        assert_eq!(tracker.totals().missing(), 2);
        tracker.record_callback(br#"{"id":"500000","status":1}"#);
        tracker.record_callback(br#"{"id":"500000","status":1}"#);
        tracker.record_callback(br#"{"id":"777777","status":2}"#);
        let totals = tracker.totals();
        assert_eq!((totals.accepted, totals.called_back), (2, 1));
        assert_eq!((totals.repeated, totals.undelivered), (1, 1));
        tracker.record_answer(br#"["777777"]"#);
        let totals = tracker.totals();
        assert_eq!(
            (totals.accepted, totals.missing()),
            (3, 1),
            "callback first"
        );
        assert_eq!(totals.delay.count(), 2);
    }

    #[test]
    fn unreadable_answers_and_callbacks_are_counted() {
        let tracker = tracker();
        tracker.record_answer(b"[]");
        tracker.record_answer(br#"["1"]"#);
        tracker.record_answer(br#"["1"]"#);
        tracker.record_callback(br#"{"id":"99999999999"}"#);
        let totals = tracker.totals();
        assert_eq!((totals.unreadable, totals.accepted), (3, 1));
    }
}
