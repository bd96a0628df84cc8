//! One measured flow of messages through a gateway, from requests to callbacks.
//!
//! Callbacks are counted, not matched, because Kannel does not return an ID for a message.

use super::{CONNECTIONS, RunningGateway};
use anyhow::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use testkit::load::{self, InFlightLimit, Load, Report, RunLimit};
use testkit::receiver::Receiver;

/// After this time without a callback, missing callbacks count as lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The length of a flow, and the maximum number of messages in flight.
#[derive(Clone, Copy)]
pub(crate) struct FlowSettings {
    pub(crate) limit: RunLimit,
    pub(crate) outstanding: usize,
}

/// The result of a flow.
pub(crate) struct Flow {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) called_back: u64,
    /// From the first request to the last callback.
    pub(crate) elapsed: Duration,
    /// Of a request, on the slowest node.
    pub(crate) p99: Duration,
}

impl Flow {
    /// Callbacks a second.
    pub(crate) fn rate(&self) -> u64 {
        let milliseconds = self.elapsed.as_millis().max(1);
        let rate = u128::from(self.called_back) * 1_000 / milliseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    pub(crate) fn missing(&self) -> u64 {
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

/// Sends messages, then waits for the callbacks of all accepted messages.
pub(crate) fn run(gateway: &dyn RunningGateway, settings: FlowSettings) -> Result<Flow> {
    let in_flight = Arc::new(InFlightLimit::new(settings.outstanding));
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
    let reports = send(
        gateway,
        settings.limit,
        &receiver.url("/dlr"),
        Some(&in_flight),
    );
    let refused = reports.iter().map(|report| report.wrong).sum();
    let accepted = reports.iter().map(Report::answers).sum::<u64>() - refused;
    while callbacks.count.load(Ordering::Relaxed) < accepted
        && callbacks.started.elapsed().saturating_sub(callbacks.last()) < LOST_AFTER
    {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(Flow {
        accepted,
        refused,
        called_back: callbacks.count.load(Ordering::Relaxed),
        elapsed: callbacks.last(),
        p99: p99(&reports),
    })
}

/// Sends to all nodes at the same time; they share the connections and the count of requests.
pub(crate) fn send(
    gateway: &dyn RunningGateway,
    limit: RunLimit,
    callback_url: &str,
    in_flight: Option<&Arc<InFlightLimit>>,
) -> Vec<Report> {
    let addresses = gateway.addresses();
    let nodes = addresses.len();
    let limit = match limit {
        RunLimit::Elapsed(time) => RunLimit::Elapsed(time),
        RunLimit::Count(count) => RunLimit::Count(count / nodes as u64),
    };
    thread::scope(|scope| {
        let start = |addr| {
            let load = Load {
                connections: CONNECTIONS / nodes,
                warm_up: Duration::ZERO,
                limit,
                requests: gateway.requests(addr, callback_url),
                on_answer: None,
            };
            let in_flight = in_flight.cloned();
            scope.spawn(move || match in_flight {
                Some(in_flight) => load::run_limited(addr, load, in_flight),
                None => load::run(addr, load),
            })
        };
        let running: Vec<_> = addresses.into_iter().map(start).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|report| report.expect("the load does not panic"))
            .collect()
    })
}

/// The p99 of a request on the slowest node.
pub(crate) fn p99(reports: &[Report]) -> Duration {
    let of_nodes = reports.iter().map(|report| report.latency.percentile(99));
    of_nodes.max().unwrap_or_default()
}
