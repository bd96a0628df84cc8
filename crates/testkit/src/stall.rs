//! Measures how long a busy machine kept the processes of a test from running.
//!
//! A machine that is busy with other programs delays everything. A time limit that is exceeded only for that reason
//! says nothing about the product, so tests subtract the stalls measured here. Three things are measured, several times
//! a second:
//!
//! - how much later than requested a timer of this process wakes up (the whole machine was paused),
//! - how long threads of this process, of its children and of the test's `PostgreSQL` waited for a processor although
//!   they were ready to run (`schedstat`),
//! - how long the hypervisor ran something else (steal time in `/proc/stat`).

mod processes;
mod usage;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use processes::Processes;
use usage::{CpuUsage, stall_in};

/// How long the timer sleeps.
const SLEEP: Duration = Duration::from_millis(20);
/// The length of a measured interval. It is longer if the machine was paused.
const INTERVAL: Duration = Duration::from_millis(240);
/// The number of intervals that are kept: more than an hour.
const MAX_INTERVALS: usize = 20_000;

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

/// A handle to the measurements. One thread of the process measures for all handles.
#[derive(Debug, Clone)]
pub struct StallMonitor {
    stalls: Arc<Mutex<Vec<Stall>>>,
}

impl StallMonitor {
    /// Starts measuring, unless this process already does. Call it before the time that is to be checked.
    pub fn start() -> Self {
        static MONITOR: OnceLock<StallMonitor> = OnceLock::new();
        MONITOR.get_or_init(Self::spawn).clone()
    }

    fn spawn() -> Self {
        let monitor = Self {
            stalls: Arc::default(),
        };
        let stalls = monitor.stalls.clone();
        let measuring = thread::Builder::new().name("stall-monitor".into());
        // Without the thread no stalls are subtracted, so the limits are only stricter.
        if let Err(error) = measuring.spawn(move || measure(&stalls)) {
            eprintln!("stalls of the machine are not measured: {error}");
        }
        monitor
    }

    /// The intervals since `from`, including at least one that ended after the call.
    pub fn since(&self, from: Instant) -> Vec<Stall> {
        self.wait_for(Instant::now());
        let stalls = self.lock();
        let later = stalls.iter().filter(|stall| stall.until > from);
        later.copied().collect()
    }

    /// How long the test's processes could not run between two instants.
    pub fn stalled(&self, from: Instant, until: Instant) -> Duration {
        self.wait_for(until);
        stalled_between(&self.lock(), from, until)
    }

    /// How long the test's processes could run between two instants.
    pub fn running(&self, from: Instant, until: Instant) -> Duration {
        until
            .saturating_duration_since(from)
            .saturating_sub(self.stalled(from, until))
    }

    /// Waits until the interval that contains `moment` has been measured. Gives up if the thread does not run.
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
        let usage: CpuUsage = processes.read();
        let until = Instant::now();
        let stalled = stall_in(until - from, overslept, usage);
        let mut stalls = stalls.lock().unwrap_or_else(PoisonError::into_inner);
        if stalls.len() >= MAX_INTERVALS {
            stalls.drain(..MAX_INTERVALS / 2);
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

/// An interval that lies only partly between the two instants counts in proportion.
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
    use super::{INTERVAL, Stall, StallMonitor, stalled_between};
    use std::time::{Duration, Instant};

    #[test]
    fn an_interval_counts_in_proportion_to_its_overlap() {
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
    fn stalled_and_running_time_add_up_to_the_elapsed_time() {
        let monitor = StallMonitor::start();
        let from = Instant::now();
        let until = from + INTERVAL * 2;
        let (stalled, running) = (monitor.stalled(from, until), monitor.running(from, until));
        assert_eq!(stalled + running, INTERVAL * 2);
        assert!(monitor.since(from).iter().any(|stall| stall.from < until));
    }
}
