//! One measured flow: requests go in at one end of a gateway, callbacks come out at the other.
//!
//! Callbacks are counted, not matched: Kannel gives a message no name that its caller learns.

use super::{CONNECTIONS, Options};
use anyhow::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use testkit::load::{self, Gate, Load, Requests, Until};
use testkit::receiver::Receiver;

/// When no callback has come for so long, those that are missing are taken as lost.
const QUIET: Duration = Duration::from_secs(10);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What was measured.
pub(super) struct Flow {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) called_back: u64,
    /// From the first request to the last callback.
    pub(super) elapsed: Duration,
}

impl Flow {
    /// Callbacks a second.
    pub(super) fn rate(&self) -> u64 {
        let milliseconds = self.elapsed.as_millis().max(1);
        let rate = u128::from(self.called_back) * 1_000 / milliseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    pub(super) fn missing(&self) -> u64 {
        self.accepted.saturating_sub(self.called_back)
    }
}

/// Callbacks as they come.
struct Callbacks {
    started: Instant,
    count: AtomicU64,
    last: Mutex<Duration>,
}

impl Callbacks {
    fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = self.started.elapsed();
    }

    fn last(&self) -> Duration {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends for so long, `request` given the address of the receiver, then waits for the callbacks of all that was accepted.
pub(super) fn run(
    options: &Options,
    duration: Duration,
    gateway: SocketAddr,
    request: impl Fn(&str) -> Vec<u8>,
) -> Result<Flow> {
    let gate = Arc::new(Gate::new(options.outstanding));
    let callbacks = Arc::new(Callbacks {
        started: Instant::now(),
        count: AtomicU64::new(0),
        last: Mutex::default(),
    });
    let receiver = {
        let (gate, callbacks) = (Arc::clone(&gate), Arc::clone(&callbacks));
        Receiver::builder()
            .on_request(move |_, _| {
                callbacks.note();
                gate.leave();
            })
            .try_start()?
    };
    let load = Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        until: Until::Elapsed(duration),
        requests: Requests::Fixed(request(&receiver.url("/dlr"))),
        on_answer: None,
    };
    let load = load::run_gated(gateway, load, gate);
    let accepted = load.answers() - load.wrong;
    while callbacks.count.load(Ordering::Relaxed) < accepted
        && callbacks.started.elapsed().saturating_sub(callbacks.last()) < QUIET
    {
        thread::sleep(LOOK_AGAIN_AFTER);
    }
    Ok(Flow {
        accepted,
        refused: load.wrong,
        called_back: callbacks.count.load(Ordering::Relaxed),
        elapsed: callbacks.last(),
    })
}
