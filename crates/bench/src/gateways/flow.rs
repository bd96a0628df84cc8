//! One measured flow of messages through a gateway, from requests to callbacks.
//!
//! Callbacks are counted, not matched, because Kannel does not return an ID for a message.

use super::{CONNECTIONS, Options};
use anyhow::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use testkit::load::{self, InFlightLimit, Load, Requests, RunLimit};
use testkit::receiver::Receiver;

/// After this time without a callback, missing callbacks count as lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a flow.
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

/// The callbacks so far.
struct Callbacks {
    started: Instant,
    count: AtomicU64,
    last: Mutex<Duration>,
}

impl Callbacks {
    fn record(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = self.started.elapsed();
    }

    fn last(&self) -> Duration {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends for a time, then waits for the callbacks of all accepted messages. `request` gets the URL of the receiver.
pub(super) fn run(
    options: &Options,
    duration: Duration,
    gateway: SocketAddr,
    request: impl Fn(&str) -> Vec<u8>,
) -> Result<Flow> {
    let in_flight = Arc::new(InFlightLimit::new(options.outstanding));
    let callbacks = Arc::new(Callbacks {
        started: Instant::now(),
        count: AtomicU64::new(0),
        last: Mutex::default(),
    });
    let receiver = {
        let (in_flight, callbacks) = (Arc::clone(&in_flight), Arc::clone(&callbacks));
        Receiver::builder()
            .on_request(move |_, _| {
                callbacks.record();
                in_flight.release();
            })
            .try_start()?
    };
    let load = Load {
        connections: CONNECTIONS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Elapsed(duration),
        requests: Requests::Fixed(request(&receiver.url("/dlr"))),
        on_answer: None,
    };
    let load = load::run_limited(gateway, load, in_flight);
    let accepted = load.answers() - load.wrong;
    while callbacks.count.load(Ordering::Relaxed) < accepted
        && callbacks.started.elapsed().saturating_sub(callbacks.last()) < LOST_AFTER
    {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(Flow {
        accepted,
        refused: load.wrong,
        called_back: callbacks.count.load(Ordering::Relaxed),
        elapsed: callbacks.last(),
    })
}
