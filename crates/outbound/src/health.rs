//! The health of a carrier that is called by HTTP: up, throttling, or down.

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

/// The health of a carrier. Read for every message, so most of it is atomic.
#[derive(Debug)]
pub(crate) struct HttpHealth {
    name: String,
    /// The other side, as notes call it.
    peer: &'static str,
    origin: Instant,
    is_down: AtomicBool,
    has_note: AtomicBool,
    failures: AtomicU32,
    /// In milliseconds since `origin`.
    slow_until: AtomicU64,
    /// Whether a message was accepted since the last [`Self::take_success`].
    has_succeeded: AtomicBool,
    note: Mutex<Option<String>>,
    went_down: Notify,
}

impl HttpHealth {
    /// Starts as up.
    pub(crate) fn new(name: &str, peer: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            origin: Instant::now(),
            is_down: AtomicBool::new(false),
            has_note: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            slow_until: AtomicU64::new(0),
            has_succeeded: AtomicBool::new(true),
            note: Mutex::default(),
            went_down: Notify::new(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        if self.is_down() {
            Health::Down
        } else if self.has_note.load(Ordering::Relaxed) || self.pause_left().is_some() {
            Health::Strained
        } else {
            Health::Up
        }
    }

    pub(crate) fn state(&self) -> CarrierState {
        let pause = self.pause_left();
        let asks_for_less = || {
            let seconds = pause?.as_secs_f64().ceil();
            Some(format!("{} asks for a pause of {seconds} s", self.peer))
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

    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    /// Records that a message was accepted.
    pub(crate) fn record_success(&self) {
        self.has_succeeded.store(true, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
        if self.is_down() || self.has_note.load(Ordering::Relaxed) {
            self.set_up();
        }
    }

    /// Records an answer that is not a success: the connection works.
    pub(crate) fn record_answer(&self) {
        if !self.is_down() {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records that there was no answer, or an answer about a failure.
    pub(crate) fn record_failure(&self, why: &str) {
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_FAILURES {
            self.set_down(why);
        }
    }

    /// Records that the carrier answers but refuses messages, which needs a person's attention.
    pub(crate) fn record_trouble(&self, why: &str) {
        self.record_answer();
        if !self.is_down() && self.set_note(Some(why)) {
            tracing::warn!(carrier = self.name, why, "the carrier refuses messages");
        }
    }

    /// Records that the carrier asks for a pause.
    pub(crate) fn slow_down(&self, pause: Duration) {
        let until = self.origin.elapsed() + pause;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.slow_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Waits if the carrier has asked for a short pause. Returns false if the pause is longer.
    pub(crate) async fn wait_out_pause(&self) -> bool {
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

    /// Stops all messages until [`Self::allow_trial`].
    pub(crate) fn set_down(&self, why: &str) {
        let has_changed = self.set_note(Some(why));
        let was_down = self.is_down.swap(true, Ordering::AcqRel);
        if has_changed || !was_down {
            tracing::warn!(carrier = self.name, why, "the carrier is down");
        }
        self.went_down.notify_one();
    }

    /// Lets messages try again; the first failure sets it down again.
    pub(crate) fn allow_trial(&self) {
        self.failures.store(MAX_FAILURES - 1, Ordering::Relaxed);
        self.set_up();
    }

    /// [`Self::allow_trial`] without knowing that the trouble is over: it is strained, with its note, until a message
    /// is accepted.
    pub(crate) fn allow_doubtful_trial(&self) {
        self.failures.store(MAX_FAILURES - 1, Ordering::Relaxed);
        self.is_down.store(false, Ordering::Release);
    }

    /// Waits until it is down. Supports one waiting task.
    pub(crate) async fn wait_until_down(&self) {
        while !self.is_down() {
            self.went_down.notified().await;
        }
    }

    /// Whether a message was accepted since the last call.
    pub(crate) fn take_success(&self) -> bool {
        self.has_succeeded.swap(false, Ordering::Relaxed)
    }

    fn set_up(&self) {
        self.set_note(None);
        if self.is_down.swap(false, Ordering::AcqRel) {
            tracing::info!(carrier = self.name, "the carrier is back");
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
    async fn it_goes_down_after_consecutive_failures_and_recovers_by_trial() {
        let health = HttpHealth::new("up", "the upstream");
        assert_eq!(health.health(), Health::Up);
        health.record_failure("no answer");
        health.record_failure("no answer");
        health.record_answer();
        health.record_failure("no answer");
        health.record_failure("no answer");
        assert_eq!(health.health(), Health::Up);
        assert_eq!(health.state().note, None);
        health.record_failure("no answer");
        assert_eq!(health.health(), Health::Down);
        assert_eq!(health.state().note.as_deref(), Some("no answer"));
        health.wait_until_down().await;
        assert!(health.take_success(), "as at the start");

        health.allow_trial();
        assert_eq!(health.health(), Health::Up);
        health.record_failure("again");
        assert_eq!(health.health(), Health::Down);
        assert!(!health.take_success(), "nothing got through");

        health.allow_trial();
        health.record_success();
        assert!(health.take_success());
        health.record_failure("once");
        assert_eq!(health.health(), Health::Up);
    }

    #[test]
    fn a_doubtful_trial_keeps_the_note() {
        let health = HttpHealth::new("up", "the provider");
        health.set_down("denied");
        health.allow_doubtful_trial();
        assert_eq!(health.health(), Health::Strained);
        assert_eq!(health.state().note.as_deref(), Some("denied"));
        health.record_failure("no answer");
        assert_eq!(health.health(), Health::Down);
        health.allow_doubtful_trial();
        health.record_success();
        assert_eq!((health.health(), health.state().note), (Health::Up, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_kept_and_ends() {
        let health = HttpHealth::new("up", "the upstream");
        health.slow_down(Duration::from_secs(30));
        health.slow_down(Duration::from_secs(1));
        assert_eq!(health.health(), Health::Strained);
        let note = health.state().note;
        assert_eq!(
            note.as_deref(),
            Some("the upstream asks for a pause of 30 s")
        );
        assert!(!health.wait_out_pause().await, "too long to wait for");
        tokio::time::advance(Duration::from_secs(29)).await;
        let before = Instant::now();
        assert!(health.wait_out_pause().await);
        assert!(before.elapsed() >= Duration::from_millis(900));
        assert_eq!(health.health(), Health::Up);
    }

    #[tokio::test]
    async fn trouble_is_shown_until_a_message_is_accepted() {
        let health = HttpHealth::new("up", "the upstream");
        health.record_trouble("no balance");
        assert_eq!(health.health(), Health::Strained);
        health.record_answer();
        assert_eq!(health.state().note.as_deref(), Some("no balance"));
        health.record_success();
        assert_eq!((health.health(), health.state().note), (Health::Up, None));
    }
}
