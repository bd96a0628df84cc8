//! What all nodes of a run share: the clock, the random numbers, the stored data, and a record of what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::{Clock, Timestamp};
use jiff::SignedDuration;
use memory_store::Model;
use tokio::time::Instant;

use super::network::NETWORKS;
use super::rng::Rng;

/// How often each fault happens, per thousand calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FaultRates {
    /// The store refuses a call and changes nothing.
    pub(super) refused: u64,
    /// The store executes the call, but the answer is lost.
    pub(super) unanswered: u64,
    /// The answer is lost, and the store executes the call some seconds later.
    pub(super) late: u64,
    /// The node dies before or after the store has executed the call.
    pub(super) dies: u64,
    /// The calling task panics: after the store has executed the call, or before the network accepts anything.
    pub(super) panics: u64,
}

impl FaultRates {
    pub(super) const NONE: Self = Self {
        refused: 0,
        unanswered: 0,
        late: 0,
        dies: 0,
        panics: 0,
    };
}

pub(super) struct State {
    pub(super) rng: Rng,
    pub(super) model: Model,
    pub(super) fault_rates: FaultRates,
    /// The store does not answer before this time.
    pub(super) store_down_until: Instant,
    /// Each network accepts nothing before this time.
    pub(super) network_down_until: [Instant; NETWORKS.len()],
    /// The receiver accepts no report before this time.
    pub(super) receiver_down_until: Instant,
    /// When a network accepted each message.
    pub(super) submits: BTreeMap<u64, Vec<Timestamp>>,
    /// The network that did not answer to a message, and how often.
    pub(super) unanswered: BTreeMap<u64, (usize, usize)>,
    /// Messages that went to another network after that.
    pub(super) strayed: BTreeSet<u64>,
    /// The reports that were received about each message.
    pub(super) received_reports: BTreeMap<u64, Vec<String>>,
    pub(super) next_reference: u64,
    fingerprint: DefaultHasher,
    trace: Option<Vec<String>>,
}

impl State {
    /// Whether faults have stopped.
    pub(super) fn is_healthy(&self) -> bool {
        self.fault_rates == FaultRates::NONE
    }
}

/// Shared by all nodes of a run.
pub(super) struct Environment {
    started: Instant,
    epoch: Timestamp,
    state: Mutex<State>,
}

impl Environment {
    pub(super) fn new(seed: u64, is_traced: bool) -> Arc<Self> {
        let started = Instant::now();
        let mut rng = Rng::new(seed);
        let level = rng.below(3);
        let mut share = |most: u64| rng.below(most * level + 1);
        let fault_rates = FaultRates {
            refused: share(20),
            unanswered: share(20),
            late: share(10),
            dies: share(2),
            panics: share(5),
        };
        let state = State {
            rng,
            model: Model::default(),
            fault_rates,
            store_down_until: started,
            network_down_until: [started; NETWORKS.len()],
            receiver_down_until: started,
            submits: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            strayed: BTreeSet::new(),
            received_reports: BTreeMap::new(),
            next_reference: 0,
            fingerprint: DefaultHasher::new(),
            trace: is_traced.then(Vec::new),
        };
        Arc::new(Self {
            started,
            epoch: Timestamp::from_second(1_800_000_000).expect("in range"),
            state: Mutex::new(state),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// The time of the database and of all nodes.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).expect("small");
        self.epoch + elapsed
    }

    pub(super) fn pause(&self, min_ms: u64, max_ms: u64) -> Duration {
        self.state().rng.between(min_ms, max_ms)
    }

    /// Adds an event to the trace, which a replay prints, and to the run's fingerprint.
    pub(super) fn log(&self, event: impl Display) {
        let at = self.started.elapsed();
        let mut state = self.state();
        let line = format!("{at:>12.3?} {event}");
        line.hash(&mut state.fingerprint);
        if let Some(trace) = &mut state.trace {
            trace.push(line);
        }
    }

    /// Equal for equal runs; almost certainly different otherwise.
    pub(super) fn fingerprint(&self) -> u64 {
        self.state().fingerprint.finish()
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.state().trace.take().unwrap_or_default()
    }
}

pub(super) struct SimulatedClock(pub(super) Arc<Environment>);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}
