//! The world around the nodes: the hour, chance, what is stored, and what everybody saw.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use domain::{Clock, Timestamp};
use jiff::SignedDuration;
use tokio::time::Instant;

use super::dice::Dice;
use super::model::Model;
use super::outside::NETWORKS;

/// How often something goes wrong, in a thousand calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Troubles {
    /// The store refuses a call: nothing was done.
    pub(super) refused: u64,
    /// The store does it, but the answer is lost.
    pub(super) unanswered: u64,
    /// The answer is lost, and the store does it some seconds later.
    pub(super) late: u64,
    /// The node dies, before or after the store did it.
    pub(super) dies: u64,
    /// The task that called panics: after the store did it, or before the network takes anything.
    pub(super) panics: u64,
}

impl Troubles {
    pub(super) const NONE: Self = Self {
        refused: 0,
        unanswered: 0,
        late: 0,
        dies: 0,
        panics: 0,
    };
}

/// What may be seen and changed by everybody.
pub(super) struct State {
    pub(super) dice: Dice,
    pub(super) model: Model,
    pub(super) troubles: Troubles,
    /// Until then the store answers nobody.
    pub(super) store_away_until: Instant,
    /// Until then each network takes nothing.
    pub(super) network_down_until: [Instant; NETWORKS.len()],
    /// Until then no report is received.
    pub(super) receiver_down_until: Instant,
    /// When the network took each message.
    pub(super) submits: BTreeMap<u64, Vec<Timestamp>>,
    /// What was told of each message.
    pub(super) told: BTreeMap<u64, Vec<String>>,
    pub(super) next_reference: u64,
    fingerprint: DefaultHasher,
    trace: Option<Vec<String>>,
}

impl State {
    /// Whether nothing goes wrong any more.
    pub(super) fn is_well(&self) -> bool {
        self.troubles == Troubles::NONE
    }
}

/// Shared by all nodes of a run.
pub(super) struct World {
    started: Instant,
    epoch: Timestamp,
    state: Mutex<State>,
}

impl World {
    pub(super) fn new(seed: u64, is_traced: bool) -> Arc<Self> {
        let started = Instant::now();
        let mut dice = Dice::new(seed);
        let level = dice.below(3);
        let mut share = |most: u64| dice.below(most * level + 1);
        let troubles = Troubles {
            refused: share(20),
            unanswered: share(20),
            late: share(10),
            dies: share(2),
            panics: share(5),
        };
        let state = State {
            dice,
            model: Model::default(),
            troubles,
            store_away_until: started,
            network_down_until: [started; NETWORKS.len()],
            receiver_down_until: started,
            submits: BTreeMap::new(),
            told: BTreeMap::new(),
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

    /// The database's clock, which is everybody's here.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).expect("small");
        self.epoch + elapsed
    }

    pub(super) fn pause(&self, least_ms: u64, most_ms: u64) -> Duration {
        self.state().dice.between(least_ms, most_ms)
    }

    /// Notes an event: for whoever replays a seed, and as the fingerprint of the run.
    pub(super) fn note(&self, event: impl Display) {
        let at = self.started.elapsed();
        let mut state = self.state();
        let line = format!("{at:>12.3?} {event}");
        line.hash(&mut state.fingerprint);
        if let Some(trace) = &mut state.trace {
            trace.push(line);
        }
    }

    /// The same for the same run, different for nearly every other.
    pub(super) fn fingerprint(&self) -> u64 {
        self.state().fingerprint.finish()
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.state().trace.take().unwrap_or_default()
    }
}

/// The clock of a node.
pub(super) struct WorldClock(pub(super) Arc<World>);

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}
