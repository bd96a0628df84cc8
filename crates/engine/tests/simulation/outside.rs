//! The network and the receiver of reports, as a node reaches them.

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

use super::life::Life;
use super::world::World;

/// Where messages go, in this order: the first has fewer binds than there are nodes, the second needs none.
pub(super) const NETWORKS: [(&str, u16); 2] = [("network", 2), ("backup", 0)];
/// What a bind has room for.
const WINDOW: usize = 5;
/// How long the network waits for an answer to a receipt before it brings it again.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(5);

/// A node's door for receipts, as long as it lives.
type Sink = (Arc<Life>, Arc<dyn ReceiptSink>);

/// Where the network finds the nodes.
#[derive(Default)]
pub(super) struct Sinks(Mutex<Vec<Sink>>);

impl Sinks {
    pub(super) fn add(&self, life: Arc<Life>, sink: Arc<dyn ReceiptSink>) {
        self.0.lock().expect("no holder panics").push((life, sink));
    }

    /// One of those that live.
    fn any(&self, world: &World) -> Option<Arc<dyn ReceiptSink>> {
        let mut sinks = self.0.lock().expect("no holder panics");
        sinks.retain(|(life, _)| !life.is_dead());
        let place = world.state().dice.below(sinks.len() as u64);
        let place = usize::try_from(place).expect("small");
        sinks.get(place).map(|(_, sink)| sink.clone())
    }
}

/// A network, as one node is bound to it.
pub(super) struct Network {
    world: Arc<World>,
    life: Arc<Life>,
    sinks: Arc<Sinks>,
    /// Which of [`NETWORKS`].
    place: usize,
    allowed: AtomicU16,
}

impl Network {
    pub(super) fn new(
        world: Arc<World>,
        life: Arc<Life>,
        sinks: Arc<Sinks>,
        place: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            world,
            life,
            sinks,
            place,
            allowed: AtomicU16::new(0),
        })
    }

    fn is_down(&self) -> bool {
        let is_unbound = self.binds() > 0 && self.allowed.load(Ordering::Relaxed) == 0;
        is_unbound || self.world.state().network_down_until[self.place] > Instant::now()
    }

    /// Brings receipts until some node has stored them; now and then twice.
    fn report(&self, reference: String) {
        let (fate, after, repeats) = {
            let dice = &mut self.world.state().dice;
            (dice.below(10), dice.between(0, 20_000), dice.per_mille(100))
        };
        let outcome = match fate {
            0 => return,
            1 => Outcome::Failed(Code::ABSENT),
            _ => Outcome::Delivered,
        };
        let (world, sinks) = (self.world.clone(), self.sinks.clone());
        let of = CarrierRef {
            carrier: self.name().to_owned(),
            reference,
        };
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            for _ in 0..=u32::from(repeats) {
                bring(&world, &sinks, &of, outcome).await;
            }
        });
    }
}

async fn bring(world: &Arc<World>, sinks: &Sinks, of: &CarrierRef, outcome: Outcome) {
    loop {
        let receipt = Receipt {
            of: of.clone(),
            to: None,
            outcome,
            report: None,
            at: world.now(),
        };
        if let Some(sink) = sinks.any(world) {
            let taken = tokio::time::timeout(RECEIPT_PATIENCE, sink.receive(receipt)).await;
            if matches!(taken, Ok(Ok(_))) {
                return;
            }
        }
        tokio::time::sleep(world.pause(500, 1500)).await;
    }
}

#[async_trait]
impl Carrier for Network {
    fn name(&self) -> &str {
        NETWORKS[self.place].0
    }

    fn window(&self) -> usize {
        WINDOW * usize::from(self.allowed.load(Ordering::Relaxed).max(1))
    }

    fn binds(&self) -> u16 {
        NETWORKS[self.place].1
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
        self.life.goes_on().await;
        tokio::time::sleep(self.world.pause(0, 10)).await;
        self.life.goes_on().await;
        let (id, parts) = (queued.id.get(), queued.shape.parts);
        let panics = {
            let mut state = self.world.state();
            let share = state.troubles.panics;
            state.dice.per_mille(share)
        };
        if panics {
            self.world.note(format_args!("sending {id} panics"));
            // Without the hook, which would print it.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        let is_busy = {
            let mut state = self.world.state();
            let is_well = state.is_well();
            state.dice.per_mille(30) && !is_well
        };
        if self.is_down() || is_busy {
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        if self.world.state().dice.per_mille(20) {
            return CarrierAnswer::Refused(Code::ABSENT);
        }
        self.world.note(format_args!("the network takes {id}"));
        let now = self.world.now();
        self.world.state().submits.entry(id).or_default().push(now);
        let mut references = Vec::new();
        for _ in 0..parts {
            let mut state = self.world.state();
            state.next_reference += 1;
            references.push(state.next_reference.to_string());
        }
        for reference in &references {
            self.report(reference.clone());
        }
        tokio::time::sleep(self.world.pause(0, 300)).await;
        self.life.goes_on().await;
        CarrierAnswer::Taken(references)
    }

    async fn stop(&self) {}
}

/// The receiver of reports, as one node reaches it.
pub(super) struct Receiver {
    pub(super) world: Arc<World>,
    pub(super) life: Arc<Life>,
}

#[async_trait]
impl CallbackSender for Receiver {
    async fn deliver(&self, callback: &Callback, _: &[&str], now: Timestamp) -> Delivery {
        self.life.goes_on().await;
        tokio::time::sleep(self.world.pause(0, 50)).await;
        self.life.goes_on().await;
        let is_down = self.world.state().receiver_down_until > Instant::now();
        let gets_lost = self.world.state().dice.per_mille(30);
        if !is_down {
            self.world
                .note(format_args!("a report is received: {}", callback.payload));
            let mut state = self.world.state();
            let about = state.model.reports[&callback.id.get()].message;
            state
                .told
                .entry(about)
                .or_default()
                .push(callback.payload.clone());
        }
        tokio::time::sleep(self.world.pause(0, 50)).await;
        self.life.goes_on().await;
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
