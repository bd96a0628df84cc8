//! The simulated networks and the receiver of callbacks, as one node sees them.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{
    Callback, CallbackAttempt, CarrierAnswer, CarrierRef, Delivery, QueuedMessage, Receipt,
};
use domain::message::outcome::Outcome;
use domain::ports::{CallbackSender, Carrier, CarrierState, Health, ReceiptSink};
use domain::{Code, Timestamp};
use tokio::time::Instant;

use super::environment::Environment;
use super::liveness::Liveness;

/// Where messages go, in this order: the first has fewer binds than there are nodes, the second needs none.
pub(super) const NETWORKS: [(&str, u16); 2] = [("network", 2), ("backup", 0)];
/// The window of one bind.
const WINDOW: usize = 5;
/// How long the network waits for an answer to a receipt before it sends it again.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many attempts may end without an answer.
const UNKNOWN_TRIES: u32 = 2;

/// Where one node receives receipts while it is alive.
type Sink = (Arc<Liveness>, Arc<dyn ReceiptSink>);

/// The receipt sinks of all nodes.
#[derive(Default)]
pub(super) struct Sinks(Mutex<Vec<Sink>>);

impl Sinks {
    pub(super) fn add(&self, liveness: Arc<Liveness>, sink: Arc<dyn ReceiptSink>) {
        self.0
            .lock()
            .expect("no holder panics")
            .push((liveness, sink));
    }

    /// The sink of a random living node.
    fn random(&self, env: &Environment) -> Option<Arc<dyn ReceiptSink>> {
        let mut sinks = self.0.lock().expect("no holder panics");
        sinks.retain(|(liveness, _)| !liveness.is_dead());
        let index = env.state().rng.below(sinks.len() as u64);
        let index = usize::try_from(index).expect("small");
        sinks.get(index).map(|(_, sink)| sink.clone())
    }
}

/// One node's connection to a network.
pub(super) struct Network {
    env: Arc<Environment>,
    liveness: Arc<Liveness>,
    sinks: Arc<Sinks>,
    /// The index in [`NETWORKS`].
    index: usize,
    allowed: AtomicU16,
}

impl Network {
    pub(super) fn new(
        env: Arc<Environment>,
        liveness: Arc<Liveness>,
        sinks: Arc<Sinks>,
        index: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            env,
            liveness,
            sinks,
            index,
            allowed: AtomicU16::new(0),
        })
    }

    fn is_down(&self) -> bool {
        let is_unbound = self.binds() > 0 && self.allowed.load(Ordering::Relaxed) == 0;
        is_unbound || self.env.state().network_down_until[self.index] > Instant::now()
    }

    /// Sometimes takes a message, or not, and does not answer; `None` if it answers.
    fn leave_unanswered(&self, queued: &QueuedMessage) -> Option<CarrierAnswer> {
        let id = queued.id.get();
        let (is_lost, is_taken) = {
            let mut state = self.env.state();
            let is_healthy = state.is_healthy();
            let rng = &mut state.rng;
            (rng.per_mille(60) && !is_healthy, rng.per_mille(500))
        };
        if !is_lost {
            return None;
        }
        self.check_others(id);
        let of = CarrierRef::by_message(self.name(), queued.id);
        if is_taken {
            self.env
                .log(format_args!("the network takes {id} without an answer"));
            let now = self.env.now();
            self.env.state().submits.entry(id).or_default().push(now);
            self.send_receipt(of.reference.clone());
        }
        let mut state = self.env.state();
        let unanswered = state.unanswered.entry(id).or_insert((self.index, 0));
        *unanswered = (self.index, unanswered.1 + 1);
        Some(if queued.unknown_tries + 1 < UNKNOWN_TRIES {
            CarrierAnswer::Unknown
        } else {
            CarrierAnswer::Taken(vec![of.reference])
        })
    }

    /// Records if another network did not answer to this message.
    fn check_others(&self, id: u64) {
        let mut state = self.env.state();
        let other = state.unanswered.get(&id);
        if other.is_some_and(|(network, _)| *network != self.index) {
            state.strayed.insert(id);
        }
    }

    /// Sends a receipt until some node has stored it; sometimes twice, sometimes never.
    fn send_receipt(&self, reference: String) {
        let (choice, after, repeats) = {
            let rng = &mut self.env.state().rng;
            (rng.below(10), rng.between(0, 20_000), rng.per_mille(100))
        };
        let outcome = match choice {
            0 => return,
            1 => Outcome::Failed(Code::ABSENT),
            _ => Outcome::Delivered,
        };
        let (env, sinks) = (self.env.clone(), self.sinks.clone());
        let of = CarrierRef {
            carrier: self.name().to_owned(),
            reference,
        };
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            for _ in 0..=u32::from(repeats) {
                deliver_receipt(&env, &sinks, &of, outcome).await;
            }
        });
    }
}

async fn deliver_receipt(env: &Arc<Environment>, sinks: &Sinks, of: &CarrierRef, outcome: Outcome) {
    loop {
        let receipt = Receipt {
            of: of.clone(),
            to: None,
            outcome,
            report: None,
            network: None,
            at: env.now(),
        };
        if let Some(sink) = sinks.random(env) {
            let stored = tokio::time::timeout(RECEIPT_TIMEOUT, sink.receive(receipt)).await;
            if matches!(stored, Ok(Ok(_))) {
                return;
            }
        }
        tokio::time::sleep(env.pause(500, 1500)).await;
    }
}

#[async_trait]
impl Carrier for Network {
    fn name(&self) -> &str {
        NETWORKS[self.index].0
    }

    fn window(&self) -> usize {
        WINDOW * usize::from(self.allowed.load(Ordering::Relaxed).max(1))
    }

    fn binds(&self) -> u16 {
        NETWORKS[self.index].1
    }

    fn allow_binds(&self, binds: u16) {
        self.allowed.store(binds, Ordering::Relaxed);
    }

    fn open_binds(&self) -> u16 {
        self.allowed.load(Ordering::Relaxed)
    }

    fn health(&self) -> Health {
        if self.is_down() {
            Health::Down
        } else {
            Health::Up
        }
    }

    fn state(&self) -> CarrierState {
        CarrierState {
            health: self.health(),
            links_up: self.open_binds(),
            links: self.open_binds(),
            links_total: self.binds(),
            note: None,
        }
    }

    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        self.liveness.wait_until_running().await;
        tokio::time::sleep(self.env.pause(0, 10)).await;
        self.liveness.wait_until_running().await;
        let (id, parts) = (queued.id.get(), queued.shape.parts);
        let panics = {
            let mut state = self.env.state();
            let share = state.fault_rates.panics;
            state.rng.per_mille(share)
        };
        if panics {
            self.env.log(format_args!("sending {id} panics"));
            // Skips the panic hook, which would print a message.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        let is_busy = {
            let mut state = self.env.state();
            let is_healthy = state.is_healthy();
            state.rng.per_mille(30) && !is_healthy
        };
        if self.is_down() || is_busy {
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        if self.env.state().rng.per_mille(20) {
            return CarrierAnswer::Refused(Code::ABSENT);
        }
        if let Some(answer) = self.leave_unanswered(queued) {
            tokio::time::sleep(self.env.pause(0, 300)).await;
            self.liveness.wait_until_running().await;
            return answer;
        }
        self.check_others(id);
        self.env.log(format_args!("the network takes {id}"));
        let now = self.env.now();
        self.env.state().submits.entry(id).or_default().push(now);
        let mut references = Vec::new();
        for _ in 0..parts {
            let mut state = self.env.state();
            state.next_reference += 1;
            references.push(state.next_reference.to_string());
        }
        for reference in &references {
            self.send_receipt(reference.clone());
        }
        tokio::time::sleep(self.env.pause(0, 300)).await;
        self.liveness.wait_until_running().await;
        CarrierAnswer::Taken(references)
    }

    async fn stop(&self) {}
}

/// One node's connection to the receiver of callbacks.
pub(super) struct Receiver {
    pub(super) env: Arc<Environment>,
    pub(super) liveness: Arc<Liveness>,
}

#[async_trait]
impl CallbackSender for Receiver {
    async fn deliver(&self, callback: &Callback, _: &[&str], now: Timestamp) -> Delivery {
        self.liveness.wait_until_running().await;
        tokio::time::sleep(self.env.pause(0, 50)).await;
        self.liveness.wait_until_running().await;
        let is_down = self.env.state().receiver_down_until > Instant::now();
        let gets_lost = self.env.state().rng.per_mille(30);
        if !is_down {
            self.env
                .log(format_args!("a report is received: {}", callback.payload));
            let mut state = self.env.state();
            let about = state.model.reports[&callback.id.get()].message;
            state
                .received_reports
                .entry(about)
                .or_default()
                .push(callback.payload.clone());
        }
        tokio::time::sleep(self.env.pause(0, 50)).await;
        self.liveness.wait_until_running().await;
        let received = !is_down && !gets_lost;
        let attempt = CallbackAttempt {
            at: now,
            status: received.then_some(200),
            elapsed_ms: 0,
            body: Vec::new(),
            address: None,
            reason: String::new(),
        };
        Delivery { received, attempt }
    }
}
