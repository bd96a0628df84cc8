//! Limits how fast parts go to a carrier: a maximum rate over all its links, and a reduced rate after throttling. A
//! node that has some of the links gets that share of the rate.
//!
//! Parts wait in a queue. The first one gets a turn, a point in time, and sleeps until then. Only the first one has a
//! turn, so that all others benefit when the rate recovers. When a carrier reports throttling, the rate is halved after
//! a short pause and then recovers linearly. Answers to parts that were sent before the cut do not cut again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// The pause after the first throttling. It doubles while throttling continues.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The lowest rate, in parts a second. Something must be sent to learn that the carrier accepts parts again.
const LOWEST_RATE: f64 = 1.0;
/// How many parts may be sent at once, as a share of one second's parts.
const BURST: f64 = 0.05;
/// The share of the full rate that is recovered each second.
const RECOVERY: f64 = 0.05;
/// How long a part may wait for its turn after it was handed over.
const AHEAD: Duration = Duration::from_millis(500);
/// The period over which the rate is measured if no limit is set.
const MEASURED_OVER: Duration = Duration::from_secs(1);

/// When a part may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    at: Instant,
    /// The number of rate cuts when the turn was given.
    cuts: u64,
}

/// A part whose turn has come. The next one waits until this is dropped, so that parts are sent in order.
pub(crate) struct First<'a> {
    pub(crate) turn: Turn,
    _place: SemaphorePermit<'a>,
}

/// The pace of a carrier.
pub(crate) struct Pace {
    /// The rate of all nodes together, in parts a second.
    whole: Option<f64>,
    /// Admits one waiting part at a time, in the order of arrival.
    queue: Semaphore,
    state: Mutex<State>,
    started: Instant,
    /// When the rate has recovered, in milliseconds since `started`.
    slow_until_ms: AtomicU64,
    /// How many parts wait for their turn.
    waiting: AtomicUsize,
    turned: Notify,
}

impl Pace {
    pub(crate) fn new(max_per_second: Option<u32>) -> Self {
        let now = Instant::now();
        let limit = max_per_second.filter(|parts| *parts > 0).map(f64::from);
        Self {
            whole: limit,
            queue: Semaphore::new(1),
            state: Mutex::new(State::new(limit, now)),
            started: now,
            slow_until_ms: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            turned: Notify::new(),
        }
    }

    /// Sets the share of the full rate.
    pub(crate) fn share(&self, share: f64) {
        if let Some(whole) = self.whole
            && share > 0.0
        {
            self.lock().set_limit(whole * share);
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
        if let Some(early) = handed_until.checked_sub(AHEAD).filter(|early| *early > now) {
            sleep_until(early).await;
        }
        let most = Duration::from_secs_f64(rate.recip());
        loop {
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable();
            let waiting = u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            if waiting == 0 || most * waiting <= AHEAD {
                return;
            }
            turned.await;
        }
    }

    /// Waits until a part may be sent.
    pub(crate) async fn turn(&self) -> First<'_> {
        let _waiting = Waiting::new(self);
        let place = self.queue.acquire().await.expect("never closed");
        loop {
            let turn = self.lock().next(Instant::now());
            if turn.at > Instant::now() {
                sleep_until(turn.at).await;
            }
            // The rate was cut meanwhile, so the turn is recalculated.
            if self.lock().cuts == turn.cuts {
                return First {
                    turn,
                    _place: place,
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

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}

/// Counts a waiting part until it is dropped.
struct Waiting<'a>(&'a Pace);

impl<'a> Waiting<'a> {
    fn new(pace: &'a Pace) -> Self {
        pace.waiting.fetch_add(1, Ordering::Relaxed);
        Self(pace)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.turned.notify_waiters();
    }
}

struct State {
    /// The full rate, in parts a second.
    limit: Option<f64>,
    /// When the next turn is due if all turns are evenly spaced.
    due: Instant,
    /// The last turn since the last cut. No turn may be earlier.
    last: Instant,
    cuts: u64,
    slow: Option<Slow>,
    measured: Measured,
    /// When all parts handed over so far are sent at the current rate.
    handed_until: Instant,
}

/// A rate that was cut and recovers.
#[derive(Debug, Clone, Copy)]
struct Slow {
    /// When sending resumes.
    since: Instant,
    pause: Duration,
    rate: f64,
    full: f64,
}

impl Slow {
    /// The rate at a time; `None` once it has recovered.
    fn rate_at(&self, now: Instant) -> Option<f64> {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        let rate = self.rate + seconds * self.full * RECOVERY;
        (rate < self.full).then_some(rate)
    }

    fn until(&self) -> Instant {
        self.since + Duration::from_secs_f64((self.full - self.rate) / (self.full * RECOVERY))
    }
}

impl State {
    fn new(limit: Option<f64>, now: Instant) -> Self {
        Self {
            limit,
            due: now,
            last: now,
            cuts: 0,
            slow: None,
            measured: Measured::new(now),
            handed_until: now,
        }
    }

    /// Changes the full rate. A reduced rate stays reduced and recovers to the new one.
    fn set_limit(&mut self, limit: f64) {
        self.limit = Some(limit);
        if let Some(slow) = &mut self.slow {
            slow.rate = slow.rate.min(limit);
            slow.full = limit;
        }
    }

    /// The current rate, if there is a limit.
    fn rate(&self, now: Instant) -> Option<f64> {
        let slow = self.slow.and_then(|slow| slow.rate_at(now.max(slow.since)));
        slow.or(self.limit)
    }

    fn next(&mut self, now: Instant) -> Turn {
        let mut earliest = now.max(self.last);
        let mut rate = self.limit;
        if let Some(slow) = self.slow {
            earliest = earliest.max(slow.since);
            match slow.rate_at(earliest) {
                Some(slower) => rate = Some(slower),
                None => self.slow = None,
            }
        }
        self.measured.count(now);
        let cuts = self.cuts;
        self.last = earliest;
        let Some(rate) = rate else {
            return Turn { at: earliest, cuts };
        };
        let apart = Duration::from_secs_f64(rate.recip());
        // Turns of up to one burst may be saved up while nothing is sent.
        let saved = apart.mul_f64((rate * BURST - 1.0).max(0.0));
        let at = self
            .due
            .max(earliest.checked_sub(saved).unwrap_or(earliest));
        self.due = at + apart;
        self.last = at.max(earliest);
        Turn {
            at: self.last,
            cuts,
        }
    }

    /// Halves the rate and returns when it will have recovered; `None` if the part was sent before the last cut.
    fn cut(&mut self, turn: Turn, now: Instant) -> Option<Instant> {
        if turn.cuts != self.cuts {
            return None;
        }
        let measured = self.measured.rate(now).max(2.0 * LOWEST_RATE);
        let before = self.slow.filter(|slow| slow.rate_at(now).is_some());
        let full = before.map_or(self.limit.unwrap_or(measured), |slow| slow.full);
        let rate = before.and_then(|slow| slow.rate_at(now)).unwrap_or(full);
        let pause = before.map_or(SHORTEST_PAUSE, |slow| (slow.pause * 2).min(LONGEST_PAUSE));
        let slow = Slow {
            since: now + pause,
            pause,
            rate: (rate / 2.0).max(LOWEST_RATE),
            full,
        };
        self.cuts += 1;
        self.due = slow.since;
        self.last = now;
        self.slow = Some(slow);
        Some(slow.until())
    }
}

/// Counts the parts of about the last second.
struct Measured {
    since: Instant,
    count: f64,
    before: f64,
}

impl Measured {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            count: 0.0,
            before: 0.0,
        }
    }

    fn count(&mut self, now: Instant) {
        self.roll(now);
        self.count += 1.0;
    }

    fn rate(&mut self, now: Instant) -> f64 {
        self.roll(now);
        self.before.max(self.count) / MEASURED_OVER.as_secs_f64()
    }

    fn roll(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        if passed >= MEASURED_OVER {
            self.before = if passed < 2 * MEASURED_OVER {
                self.count
            } else {
                0.0
            };
            self.count = 0.0;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nobody_waits() {
        let pace = Pace::new(None);
        let start = Instant::now();
        for _ in 0..10_000 {
            pace.turn().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_holds_over_every_second() {
        let pace = Pace::new(Some(100));
        let start = Instant::now();
        let mut at = Vec::new();
        for _ in 0..500 {
            pace.turn().await;
            at.push(start.elapsed());
        }
        // tokio's timer rounds up to a millisecond.
        assert!(at[499] >= ms(4_900) && at[499] < ms(5_100), "{:?}", at[499]);
        for (index, from) in at.iter().enumerate() {
            let within = at[index..].iter().filter(|time| **time < *from + ms(1_000));
            assert!(within.count() <= 106, "from {from:?}");
        }
    }

    /// However many parts are handed over when ready, few wait for their turn.
    #[tokio::test(start_paused = true)]
    async fn little_is_handed_over_ahead_of_its_turn() {
        let pace = std::sync::Arc::new(Pace::new(Some(50)));
        let start = Instant::now();
        let (mut sending, mut most) = (tokio::task::JoinSet::new(), 0);
        for number in 0..500 {
            pace.ready(u32::from(number > 0)).await;
            let pace_of_part = pace.clone();
            sending.spawn(async move { pace_of_part.turn().await.turn });
            most = most.max(pace.waiting.load(Ordering::Relaxed));
        }
        sending.join_all().await;
        let took = start.elapsed();
        assert!(
            took > ms(9_000) && took < ms(10_500),
            "at the full rate: {took:?}"
        );
        assert!((10..=30).contains(&most), "{most} at 50 a second");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_it_is_always_ready() {
        let pace = Pace::new(None);
        let start = Instant::now();
        for _ in 0..1_000 {
            pace.ready(255).await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_of_the_links_is_a_share_of_the_rate() {
        let pace = Pace::new(Some(100));
        for (share, least, most) in [(0.25, 3_900, 4_100), (1.0, 900, 1_100), (0.5, 1_900, 2_100)] {
            pace.share(share);
            let start = Instant::now();
            for _ in 0..100 {
                pace.turn().await;
            }
            let took = start.elapsed();
            assert!(took > ms(least) && took < ms(most), "{share}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_storm_halves_the_rate_once_and_it_grows_back() {
        let pace = Pace::new(Some(100));
        let mut storm = Vec::new();
        for _ in 0..50 {
            storm.push(pace.turn().await.turn);
        }
        let at = Instant::now();
        for turn in storm {
            pace.throttled(turn);
        }
        assert!(pace.is_slow());
        pace.turn().await;
        assert!(at.elapsed() >= SHORTEST_PAUSE, "{:?}", at.elapsed());
        let from = Instant::now();
        for _ in 0..50 {
            pace.turn().await;
        }
        let took = from.elapsed();
        assert!(
            took > ms(900) && took < ms(1_050),
            "at half the rate: {took:?}"
        );
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!pace.is_slow());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_while_the_rate_is_cut_waits_for_a_new_turn() {
        let pace = std::sync::Arc::new(Pace::new(Some(10)));
        let first = pace.turn().await.turn;
        let waiting = tokio::spawn({
            let pace = pace.clone();
            async move { pace.turn().await.turn }
        });
        tokio::task::yield_now().await;
        let cut = Instant::now();
        pace.throttled(first);
        waiting.await.expect("ends");
        assert!(cut.elapsed() >= SHORTEST_PAUSE, "{:?}", cut.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_gain_by_a_rate_that_grows_back() {
        let pace = std::sync::Arc::new(Pace::new(Some(100)));
        for _ in 0..8 {
            let turn = pace.turn().await.turn;
            pace.throttled(turn);
        }
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let pace = pace.clone();
            waiting.spawn(async move { pace.turn().await.turn });
        }
        let from = Instant::now();
        waiting.join_all().await;
        let took = from.elapsed();
        // From one a second, growing by five every second.
        assert!(took > ms(8_000) && took < ms(12_000), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_the_measured_rate_is_halved() {
        let pace = Pace::new(None);
        let mut last = pace.turn().await.turn;
        for _ in 0..199 {
            tokio::time::advance(ms(5)).await;
            last = pace.turn().await.turn;
        }
        pace.throttled(last);
        pace.turn().await;
        let from = Instant::now();
        for _ in 0..100 {
            pace.turn().await;
        }
        let took = from.elapsed();
        assert!(took > ms(900) && took < ms(1_100), "100 a second: {took:?}");
        tokio::time::advance(Duration::from_secs(20)).await;
        let from = Instant::now();
        for _ in 0..1_000 {
            pace.turn().await;
        }
        assert_eq!(from.elapsed(), Duration::ZERO, "unlimited again");
    }

    proptest! {
        #[test]
        fn whatever_happens_turns_are_in_order_and_come(
            limit in prop::option::of(1_u32..5_000),
            steps in prop::collection::vec((0_u64..3_000, any::<bool>()), 1..200),
        ) {
            let start = Instant::now();
            let mut state = State::new(limit.map(f64::from), start);
            let (mut now, mut last) = (start, start);
            for (passed, is_throttled) in steps {
                now += ms(passed);
                let turn = state.next(now);
                prop_assert!(turn.at >= now && turn.at >= last);
                // The lowest rate allows one a second, and at most the turns of this test are waiting.
                prop_assert!(turn.at <= now + Duration::from_secs(201));
                last = turn.at;
                if is_throttled {
                    let until = state.cut(turn, now).expect("the first since the last cut");
                    prop_assert!(until > now && until < now + Duration::from_secs(30));
                    prop_assert_eq!(state.cut(turn, now), None, "once");
                    last = now;
                }
            }
        }
    }
}
