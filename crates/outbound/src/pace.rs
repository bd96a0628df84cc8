//! Limits how fast parts go to a carrier: a maximum rate over all its links, and a reduced rate after throttling. A
//! node that has some of the links gets that share of the rate.
//!
//! Parts wait in a queue. The first one gets a turn, a point in time, and sleeps until then. Only the first one has a
//! turn, so that all others benefit when the rate recovers. When a carrier reports throttling, the rate is halved after
//! a short pause and then recovers linearly. Answers to parts that were sent before the cut do not cut again.

mod schedule;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use self::schedule::Schedule;
pub(crate) use self::schedule::Turn;

/// How long a part may wait for its turn after it was handed over.
const MAX_AHEAD: Duration = Duration::from_millis(500);
/// A part whose turn has come. The next one waits until this is dropped, so that parts are sent in order.
pub(crate) struct TurnGuard<'a> {
    pub(crate) turn: Turn,
    _permit: SemaphorePermit<'a>,
}

/// The pace of a carrier.
pub(crate) struct Pace {
    /// The rate of all nodes together, in parts a second.
    full_rate: Option<f64>,
    /// Admits one waiting part at a time, in the order of arrival.
    queue: Semaphore,
    state: Mutex<Schedule>,
    started: Instant,
    /// When the rate has recovered, in milliseconds since `started`.
    slow_until_ms: AtomicU64,
    /// How many parts wait for their turn.
    waiting: AtomicUsize,
    turn_taken: Notify,
}

impl Pace {
    pub(crate) fn new(max_per_second: Option<u32>) -> Self {
        let now = Instant::now();
        let limit = max_per_second.filter(|parts| *parts > 0).map(f64::from);
        Self {
            full_rate: limit,
            queue: Semaphore::new(1),
            state: Mutex::new(Schedule::new(limit, now)),
            started: now,
            slow_until_ms: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            turn_taken: Notify::new(),
        }
    }

    /// Sets the share of the full rate.
    pub(crate) fn set_share(&self, share: f64) {
        if let Some(full_rate) = self.full_rate
            && share > 0.0
        {
            self.lock().set_limit(full_rate * share);
        }
    }

    /// Returns when a part handed over now would get its turn soon. `handed` parts were handed over since the last
    /// call. They may not have asked for a turn yet, so the time that they need at the current rate is added.
    pub(crate) async fn ready(&self, handed: u32) {
        let now = Instant::now();
        let (rate, handed_until) = {
            let mut state = self.lock();
            let Some(rate) = state.rate(now) else {
                return;
            };
            let takes = Duration::from_secs_f64(f64::from(handed) / rate);
            state.handed_until = state.handed_until.max(now) + takes;
            (rate, state.handed_until)
        };
        if let Some(early) = handed_until
            .checked_sub(MAX_AHEAD)
            .filter(|early| *early > now)
        {
            sleep_until(early).await;
        }
        let most = Duration::from_secs_f64(rate.recip());
        loop {
            let turn_taken = self.turn_taken.notified();
            tokio::pin!(turn_taken);
            turn_taken.as_mut().enable();
            let waiting = u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            if waiting == 0 || most * waiting <= MAX_AHEAD {
                return;
            }
            turn_taken.await;
        }
    }

    /// Waits until a part may be sent.
    pub(crate) async fn turn(&self) -> TurnGuard<'_> {
        let _waiting = WaitingGuard::new(self);
        let permit = self.queue.acquire().await.expect("never closed");
        loop {
            let turn = self.lock().next(Instant::now());
            if turn.at > Instant::now() {
                sleep_until(turn.at).await;
            }
            // The rate was cut meanwhile, so the turn is recalculated.
            if self.lock().cuts == turn.cuts {
                return TurnGuard {
                    turn,
                    _permit: permit,
                };
            }
        }
    }

    /// Records that the carrier throttled the part of this turn.
    pub(crate) fn throttled(&self, turn: Turn) {
        let Some(slow_until) = self.lock().cut(turn, Instant::now()) else {
            return;
        };
        let millis = slow_until
            .saturating_duration_since(self.started)
            .as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.slow_until_ms.store(millis, Ordering::Relaxed);
    }

    /// Whether the rate is reduced. Cheap enough to call for every message.
    pub(crate) fn is_slow(&self) -> bool {
        let until = self.slow_until_ms.load(Ordering::Relaxed);
        until > 0 && self.started.elapsed() < Duration::from_millis(until)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Schedule> {
        self.state.lock().expect("no holder panics")
    }
}

/// Counts a waiting part until it is dropped.
struct WaitingGuard<'a>(&'a Pace);

impl<'a> WaitingGuard<'a> {
    fn new(pace: &'a Pace) -> Self {
        pace.waiting.fetch_add(1, Ordering::Relaxed);
        Self(pace)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.turn_taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
