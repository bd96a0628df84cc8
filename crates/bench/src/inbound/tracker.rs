//! Tracks which texts were delivered, answered and called back, and the time in between.

use crate::deliver::number_after;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::Latencies;
use testkit::load::InFlightLimit;

/// How each text begins; its number follows.
const TEXT: &str = "Ticket ";
const MARKER: &[u8] = br#""message":"Ticket "#;

/// The carrier and the receiver record into it, each on its own thread.
pub(super) struct Tracker {
    started: Instant,
    in_flight: InFlightLimit,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the number of the text.
    texts: Vec<Text>,
    is_closed: bool,
    totals: Totals,
}

#[derive(Clone, Copy)]
struct Text {
    delivered: Duration,
    is_answered: bool,
    is_called_back: bool,
}

/// The totals so far.
#[derive(Clone, Default)]
pub(super) struct Totals {
    /// Texts that the carrier delivered.
    pub(super) delivered: u64,
    /// Those whose answer said that they are stored.
    pub(super) taken: u64,
    /// Those whose answer said something else.
    pub(super) refused: u64,
    /// Texts with a callback.
    pub(super) called_back: u64,
    /// Further callbacks of the same text.
    pub(super) repeated: u64,
    /// Callbacks that belong to no text.
    pub(super) unreadable: u64,
    /// From `deliver_sm` to its answer.
    pub(super) answer: Latencies,
    /// From `deliver_sm` to the callback.
    pub(super) delay: Latencies,
    pub(super) first_delivered: Duration,
    pub(super) last_callback: Duration,
}

impl Totals {
    /// Callbacks a second, from the first `deliver_sm` to the last callback.
    pub(super) fn rate(&self) -> u64 {
        let elapsed = self.last_callback.saturating_sub(self.first_delivered);
        let rate = u128::from(self.called_back) * 1_000 / elapsed.as_millis().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Texts without an answer.
    pub(super) fn unanswered(&self) -> u64 {
        self.delivered - self.taken - self.refused
    }

    /// Texts that were not refused and have no callback.
    pub(super) fn missing(&self) -> u64 {
        (self.delivered - self.refused).saturating_sub(self.called_back)
    }

    /// Texts that still need an answer or a callback.
    pub(super) fn in_progress(&self) -> u64 {
        self.unanswered().max(self.missing())
    }

    /// Whether each text was answered as stored, and called back once.
    pub(super) fn is_clean(&self) -> bool {
        let wrong = self.refused + self.repeated + self.unreadable;
        wrong + self.in_progress() == 0
    }
}

impl Tracker {
    pub(super) fn new(outstanding: usize) -> Self {
        Self {
            started: Instant::now(),
            in_flight: InFlightLimit::new(outstanding),
            state: Mutex::default(),
        }
    }

    /// A permit is needed for each text; its callback returns it.
    pub(super) fn in_flight(&self) -> &InFlightLimit {
        &self.in_flight
    }

    /// Numbers the next text, which is delivered now; `None` after [`Self::close`].
    pub(super) fn deliver(&self) -> Option<usize> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        let now = self.started.elapsed();
        if state.texts.is_empty() {
            state.totals.first_delivered = now;
        }
        state.totals.delivered += 1;
        state.texts.push(Text {
            delivered: now,
            is_answered: false,
            is_called_back: false,
        });
        Some(state.texts.len() - 1)
    }

    /// No more texts are delivered.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
    }

    /// The answer to a text: whether the service says that it is stored.
    pub(super) fn record_answer(&self, number: usize, is_taken: bool) {
        let now = self.started.elapsed();
        let mut state = self.state();
        let State { texts, totals, .. } = &mut *state;
        let text = &mut texts[number];
        if text.is_answered {
            return;
        }
        text.is_answered = true;
        totals.answer.record(now.saturating_sub(text.delivered));
        if is_taken {
            totals.taken += 1;
        } else {
            totals.refused += 1;
            self.in_flight.release();
        }
    }

    /// A callback.
    pub(super) fn record_callback(&self, body: &[u8]) {
        let now = self.started.elapsed();
        let mut state = self.state();
        let State { texts, totals, .. } = &mut *state;
        totals.last_callback = now;
        let number = number_after(body, MARKER).and_then(|number| usize::try_from(number).ok());
        let Some(text) = number.and_then(|number| texts.get_mut(number)) else {
            totals.unreadable += 1;
            return;
        };
        if text.is_called_back {
            totals.repeated += 1;
            return;
        }
        text.is_called_back = true;
        totals.called_back += 1;
        totals.delay.record(now.saturating_sub(text.delivered));
        drop(state);
        self.in_flight.release();
    }

    pub(super) fn totals(&self) -> Totals {
        self.state().totals.clone()
    }

    /// The time since the latest callback.
    pub(super) fn since_last_callback(&self) -> Duration {
        let last_callback = self.state().totals.last_callback;
        self.started.elapsed().saturating_sub(last_callback)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text with this number.
pub(super) fn text(number: usize) -> String {
    format!("{TEXT}{number}. Please call me back tomorrow morning.")
}

#[cfg(test)]
mod tests {
    use super::{Tracker, text};

    fn callback(number: usize) -> String {
        let text = text(number);
        format!(r#"{{"id":"7","from":"+37120000001","to":"1234","message":"{text}","parts":1}}"#)
    }

    #[test]
    fn each_text_is_called_back_once() {
        let tracker = Tracker::new(10);
        let numbers: Vec<_> = (0..3).map(|_| tracker.deliver()).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
        tracker.close();
        assert_eq!(tracker.deliver(), None, "closed");
        for number in 0..3 {
            tracker.record_callback(callback(number).as_bytes());
            assert!(!tracker.totals().is_clean(), "an answer is missing");
            tracker.record_answer(number, true);
        }
        let totals = tracker.totals();
        assert!(totals.is_clean());
        assert_eq!(
            (totals.delivered, totals.taken, totals.called_back),
            (3, 3, 3)
        );
        assert_eq!((totals.delay.count(), totals.answer.count()), (3, 3));
        tracker.record_callback(callback(2).as_bytes());
        let totals = tracker.totals();
        assert_eq!((totals.repeated, totals.called_back), (1, 3));
        assert!(!totals.is_clean());
    }

    #[test]
    fn missing_refused_and_foreign_callbacks_are_counted() {
        let tracker = Tracker::new(10);
        for _ in 0..3 {
            tracker.deliver();
        }
        tracker.record_answer(0, true);
        tracker.record_answer(0, false);
        tracker.record_answer(1, false);
        tracker.record_callback(callback(3).as_bytes());
        tracker.record_callback(br#"{"message":"Hello"}"#);
        let totals = tracker.totals();
        assert_eq!((totals.taken, totals.refused, totals.unreadable), (1, 1, 2));
        assert_eq!(
            (totals.unanswered(), totals.missing(), totals.in_progress()),
            (1, 2, 2)
        );
    }

    #[test]
    fn a_permit_comes_back_with_a_callback_or_a_refusal() {
        let tracker = Tracker::new(2);
        assert!(tracker.in_flight().try_acquire() && tracker.in_flight().try_acquire());
        assert!(!tracker.in_flight().try_acquire());
        for _ in 0..2 {
            tracker.deliver();
        }
        tracker.record_callback(callback(0).as_bytes());
        assert!(tracker.in_flight().try_acquire());
        tracker.record_answer(1, false);
        assert!(tracker.in_flight().try_acquire());
    }
}
