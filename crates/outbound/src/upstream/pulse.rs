//! The health of an upstream: up, throttling, or down.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use domain::ports::{CarrierState, Health};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many failures in a row mean that it is down.
const MAX_FAILURES: u32 = 3;
/// A pause of up to this length is waited for; for a longer one the message goes elsewhere or is retried later.
const SHORT_PAUSE: Duration = Duration::from_secs(2);

/// The health of an upstream. Read for every message, so most of it is atomic.
#[derive(Debug)]
pub(super) struct Pulse {
    name: String,
    origin: Instant,
    is_down: AtomicBool,
    has_note: AtomicBool,
    failures: AtomicU32,
    /// In milliseconds since `origin`.
    slow_until: AtomicU64,
    /// Whether a message was accepted since the last [`Self::take_proven`].
    is_proven: AtomicBool,
    note: Mutex<Option<String>>,
    fell: Notify,
}

impl Pulse {
    /// Starts as up.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            origin: Instant::now(),
            is_down: AtomicBool::new(false),
            has_note: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            slow_until: AtomicU64::new(0),
            is_proven: AtomicBool::new(true),
            note: Mutex::default(),
            fell: Notify::new(),
        }
    }

    pub(super) fn health(&self) -> Health {
        if self.is_down() {
            Health::Down
        } else if self.has_note.load(Ordering::Relaxed) || self.pause_left().is_some() {
            Health::Strained
        } else {
            Health::Up
        }
    }

    pub(super) fn state(&self) -> CarrierState {
        let pause = self.pause_left();
        let asks_for_less = || {
            let seconds = pause?.as_secs_f64().ceil();
            Some(format!("the upstream asks for a pause of {seconds} s"))
        };
        let note = self.note.lock().expect("no holder panics").clone();
        CarrierState {
            health: self.health(),
            links_up: 0,
            links: 0,
            links_total: 0,
            note: note.or_else(asks_for_less),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    /// Records that a message was accepted.
    pub(super) fn note_success(&self) {
        self.is_proven.store(true, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
        if self.is_down() || self.has_note.load(Ordering::Relaxed) {
            self.set_up();
        }
    }

    /// Records an answer that is not a success: the connection works.
    pub(super) fn note_answer(&self) {
        if !self.is_down() {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records that there was no answer, or an answer about a failure.
    pub(super) fn note_failure(&self, why: &str) {
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_FAILURES {
            self.set_down(why);
        }
    }

    /// Records that the upstream answers but refuses messages, which needs a person's attention.
    pub(super) fn note_trouble(&self, why: &str) {
        self.note_answer();
        if !self.is_down() && self.set_note(Some(why)) {
            tracing::warn!(carrier = self.name, why, "the upstream refuses messages");
        }
    }

    /// Records that the upstream asks for a pause.
    pub(super) fn slow_down(&self, pause: Duration) {
        let until = self.origin.elapsed() + pause;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.slow_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Waits if the upstream has asked for a short pause. Returns false if the pause is longer.
    pub(super) async fn wait_out_pause(&self) -> bool {
        match self.pause_left() {
            None => true,
            Some(left) if left <= SHORT_PAUSE => {
                tokio::time::sleep(left).await;
                true
            }
            Some(_) => false,
        }
    }

    fn pause_left(&self) -> Option<Duration> {
        let until = self.slow_until.load(Ordering::Relaxed);
        if until == 0 {
            return None;
        }
        let left = Duration::from_millis(until).saturating_sub(self.origin.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Stops all messages until [`Self::let_through`].
    pub(super) fn set_down(&self, why: &str) {
        let is_news = self.set_note(Some(why));
        let was_down = self.is_down.swap(true, Ordering::AcqRel);
        if is_news || !was_down {
            tracing::warn!(carrier = self.name, why, "the upstream is down");
        }
        self.fell.notify_one();
    }

    /// Lets messages try again; the first failure sets it down again.
    pub(super) fn let_through(&self) {
        self.failures.store(MAX_FAILURES - 1, Ordering::Relaxed);
        self.set_up();
    }

    /// Waits until it is down. Supports one waiting task.
    pub(super) async fn wait_until_down(&self) {
        while !self.is_down() {
            self.fell.notified().await;
        }
    }

    /// Whether a message was accepted since the last call.
    pub(super) fn take_proven(&self) -> bool {
        self.is_proven.swap(false, Ordering::Relaxed)
    }

    fn set_up(&self) {
        self.set_note(None);
        if self.is_down.swap(false, Ordering::AcqRel) {
            tracing::info!(carrier = self.name, "the upstream is back");
        }
    }

    /// Returns whether the note has changed.
    fn set_note(&self, text: Option<&str>) -> bool {
        let mut note = self.note.lock().expect("no holder panics");
        self.has_note.store(text.is_some(), Ordering::Relaxed);
        if note.as_deref() == text {
            return false;
        }
        *note = text.map(str::to_owned);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_falls_after_some_failures_in_a_row_and_rises_on_trial() {
        let pulse = Pulse::new("up");
        assert_eq!(pulse.health(), Health::Up);
        pulse.note_failure("no answer");
        pulse.note_failure("no answer");
        pulse.note_answer();
        pulse.note_failure("no answer");
        pulse.note_failure("no answer");
        assert_eq!(pulse.health(), Health::Up);
        assert_eq!(pulse.state().note, None);
        pulse.note_failure("no answer");
        assert_eq!(pulse.health(), Health::Down);
        assert_eq!(pulse.state().note.as_deref(), Some("no answer"));
        pulse.wait_until_down().await;
        assert!(pulse.take_proven(), "as at the start");

        pulse.let_through();
        assert_eq!(pulse.health(), Health::Up);
        pulse.note_failure("again");
        assert_eq!(pulse.health(), Health::Down);
        assert!(!pulse.take_proven(), "nothing got through");

        pulse.let_through();
        pulse.note_success();
        assert!(pulse.take_proven());
        pulse.note_failure("once");
        assert_eq!(pulse.health(), Health::Up);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_kept_and_ends() {
        let pulse = Pulse::new("up");
        pulse.slow_down(Duration::from_secs(30));
        pulse.slow_down(Duration::from_secs(1));
        assert_eq!(pulse.health(), Health::Strained);
        let note = pulse.state().note;
        assert_eq!(
            note.as_deref(),
            Some("the upstream asks for a pause of 30 s")
        );
        assert!(!pulse.wait_out_pause().await, "too long to wait for");
        tokio::time::advance(Duration::from_secs(29)).await;
        let before = Instant::now();
        assert!(pulse.wait_out_pause().await);
        assert!(before.elapsed() >= Duration::from_millis(900));
        assert_eq!(pulse.health(), Health::Up);
    }

    #[tokio::test]
    async fn trouble_shows_until_a_message_gets_through() {
        let pulse = Pulse::new("up");
        pulse.note_trouble("no balance");
        assert_eq!(pulse.health(), Health::Strained);
        pulse.note_answer();
        assert_eq!(pulse.state().note.as_deref(), Some("no balance"));
        pulse.note_success();
        assert_eq!((pulse.health(), pulse.state().note), (Health::Up, None));
    }
}
