//! A control for assertions about time: how long the machine kept the processes of a test from running.
//!
//! A machine that other programs keep busy delays everything. A time limit that such a delay breaks says nothing about
//! the product, so a limit is compared with the time that passed without the stalls measured here. Three things are
//! measured, several times a second:
//!
//! - how much later than asked a timer of this process wakes up (the whole machine was paused),
//! - how long threads of this process, of its children and of the test's `PostgreSQL` waited for a processor although
//!   they were ready to run (`schedstat`),
//! - how long the hypervisor ran something else (steal time in `/proc/stat`).

mod account;
mod processes;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use account::{Account, stall_in};
use processes::Processes;

/// How long the timer sleeps.
const SLEEP: Duration = Duration::from_millis(20);
/// The length of a measured interval. One in which the machine was paused is longer.
const INTERVAL: Duration = Duration::from_millis(240);
/// How many intervals are kept: more than an hour.
const MOST_INTERVALS: usize = 20_000;

/// An interval and the part of it in which the test's processes could not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The start of the interval.
    pub from: Instant,
    /// The end of the interval.
    pub until: Instant,
    /// At most `until - from`.
    pub stalled: Duration,
}

/// The control. One thread of the process measures for all handles.
#[derive(Debug, Clone)]
pub struct StallControl {
    stalls: Arc<Mutex<Vec<Stall>>>,
}

impl StallControl {
    /// Measures from now on, unless the process does already. Call it before the time that is to be explained.
    pub fn start() -> Self {
        static CONTROL: OnceLock<StallControl> = OnceLock::new();
        CONTROL.get_or_init(Self::spawn).clone()
    }

    fn spawn() -> Self {
        let control = Self {
            stalls: Arc::default(),
        };
        let stalls = control.stalls.clone();
        let measuring = thread::Builder::new().name("stall-control".into());
        // Without the thread nothing is explained, so limits stay as strict as they are.
        if let Err(error) = measuring.spawn(move || measure(&stalls)) {
            eprintln!("stalls of the machine are not measured: {error}");
        }
        control
    }

    /// Everything that was measured since a moment, with at least one interval that ended after the call.
    pub fn since(&self, from: Instant) -> Vec<Stall> {
        self.wait_for(Instant::now());
        let stalls = self.lock();
        let later = stalls.iter().filter(|stall| stall.until > from);
        later.copied().collect()
    }

    /// How long the test's processes could not run between two moments.
    pub fn stalled(&self, from: Instant, until: Instant) -> Duration {
        self.wait_for(until);
        stalled_between(&self.lock(), from, until)
    }

    /// The time between two moments in which the test's processes could run.
    pub fn running(&self, from: Instant, until: Instant) -> Duration {
        until
            .saturating_duration_since(from)
            .saturating_sub(self.stalled(from, until))
    }

    /// Waits until the interval of a moment has been measured. Gives up when the thread does not run.
    fn wait_for(&self, moment: Instant) {
        let give_up = Instant::now() + INTERVAL * 100;
        let is_measured = || self.lock().last().is_some_and(|last| last.until >= moment);
        while !is_measured() && Instant::now() < give_up {
            thread::sleep(SLEEP);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Stall>> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn measure(stalls: &Mutex<Vec<Stall>>) {
    let mut processes = Processes::default();
    processes.read();
    let mut from = Instant::now();
    loop {
        let mut overslept = Duration::ZERO;
        while from.elapsed() < INTERVAL {
            let asleep = Instant::now();
            thread::sleep(SLEEP);
            overslept += asleep.elapsed().saturating_sub(SLEEP * 2);
        }
        let account: Account = processes.read();
        let until = Instant::now();
        let stalled = stall_in(until - from, overslept, account);
        let mut stalls = stalls.lock().unwrap_or_else(PoisonError::into_inner);
        if stalls.len() >= MOST_INTERVALS {
            stalls.drain(..MOST_INTERVALS / 2);
        }
        stalls.push(Stall {
            from,
            until,
            stalled,
        });
        drop(stalls);
        from = until;
    }
}

/// Intervals that are only partly between the two moments count for that part.
fn stalled_between(stalls: &[Stall], from: Instant, until: Instant) -> Duration {
    let within = |stall: &Stall| {
        let length = stall.until - stall.from;
        let shared = stall.until.min(until);
        let shared = shared.saturating_duration_since(stall.from.max(from));
        if length.is_zero() {
            Duration::ZERO
        } else {
            stall
                .stalled
                .mul_f64(shared.as_secs_f64() / length.as_secs_f64())
        }
    };
    stalls.iter().map(within).sum()
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL, Stall, StallControl, stalled_between};
    use std::time::{Duration, Instant};

    #[test]
    fn an_interval_counts_for_the_part_that_is_asked_about() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let stalls =
            [(0, 100, 50), (100, 300, 0), (300, 400, 100)].map(|(from, until, stalled)| Stall {
                from: at(from),
                until: at(until),
                stalled: Duration::from_millis(stalled),
            });
        for (from, until, expected) in [
            (0, 400, 150),
            (0, 50, 25),
            (50, 350, 75),
            (100, 300, 0),
            (390, 900, 10),
            (500, 900, 0),
        ] {
            let found = stalled_between(&stalls, at(from), at(until)).as_millis();
            assert_eq!(found, expected, "{from} to {until}");
        }
    }

    #[test]
    fn time_that_passed_is_measured_and_never_all_of_it_is_running_twice() {
        let control = StallControl::start();
        let from = Instant::now();
        let until = from + INTERVAL * 2;
        let (stalled, running) = (control.stalled(from, until), control.running(from, until));
        assert_eq!(stalled + running, INTERVAL * 2);
        assert!(control.since(from).iter().any(|stall| stall.from < until));
    }
}
