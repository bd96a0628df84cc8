//! The simulator: a carrier without a network behind it.
//!
//! It accepts everything, delivers after a short delay, and fails on purpose for numbers in a range that is reserved
//! for fiction, so that no real person is affected. It loses nothing: messages that it had accepted but not reported
//! when the process ended are found in the store and reported after the next start, or by another node that notices
//! that this one is gone. Two nodes may then report the same message; the second receipt changes nothing.

mod echo;
mod lookup;
mod magic_numbers;

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, QueuedMessage, Receipt};
use domain::ports::{
    Carrier, CarrierState, HandsetSink, HandsetText, Health, NumberLocator, ReceiptSink, Store,
    StoreError,
};
use domain::{Channel, Clock, Code, NodeId, Outcome};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use self::magic_numbers::{MagicNumber, SimulatedOutcome, magic_numbers, simulated_outcome};

pub const NAME: &str = domain::delivery::SIMULATOR;
/// How many receipts may be pending; beyond that, messages are throttled.
const MAX_PENDING: usize = 100_000;
/// How many receipts may be delivered to the service at once.
const MAX_CONCURRENT_RECEIPTS: usize = 2048;
/// The pause before a refused receipt is delivered again.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// How many parts are read at a time when reporting resumes.
const RESUME_BATCH: u32 = 1000;
/// How often to check for nodes that are gone. A node that came and went in between is not noticed; its messages are
/// reported when the next node comes or goes.
const CHECK_NODES_EVERY: Duration = Duration::from_secs(2);

/// A receipt that waits for its time.
struct Pending {
    due: Instant,
    of: CarrierRef,
    outcome: Outcome,
    /// Whether the recipient's app reports when the message was seen.
    reports_seen: bool,
    /// What the recipient's handset sends back.
    echo: Option<HandsetText>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatorSettings {
    /// The time until the receipt.
    pub delay: Duration,
    /// How many parts it holds at once.
    pub window: usize,
    /// If set, a line `MESSAGE-ID PARTS` is written to this file for each message before it is accepted.
    pub journal: Option<PathBuf>,
}

/// The parts of the service that the simulator uses.
pub struct SimulatorPorts {
    pub clock: Arc<dyn Clock>,
    /// Where it finds the messages that it accepted before.
    pub store: Arc<dyn Store>,
    /// Where it delivers receipts.
    pub sink: Arc<dyn ReceiptSink>,
    /// Where handsets send texts.
    pub handsets: Arc<dyn HandsetSink>,
    /// Answers lookups.
    pub numbers: Arc<dyn NumberLocator>,
}

pub struct Simulator {
    settings: SimulatorSettings,
    clock: Arc<dyn Clock>,
    pending: Mutex<VecDeque<Pending>>,
    added: Notify,
    numbers: Arc<dyn NumberLocator>,
    handsets: Arc<dyn HandsetSink>,
    journal: Option<Mutex<File>>,
    tasks: OnceLock<[AbortHandle; 2]>,
}

impl Simulator {
    /// Starts the simulator, which first reports what was left over from the last run. Must be called inside a tokio
    /// runtime.
    pub fn start(settings: SimulatorSettings, ports: SimulatorPorts) -> std::io::Result<Arc<Self>> {
        let open = |path: &PathBuf| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map(Mutex::new)
        };
        let SimulatorPorts {
            clock,
            store,
            sink,
            handsets,
            numbers,
        } = ports;
        let network = Arc::new(Self {
            journal: settings.journal.as_ref().map(open).transpose()?,
            settings,
            clock,
            pending: Mutex::default(),
            added: Notify::new(),
            numbers,
            handsets,
            tasks: OnceLock::new(),
        });
        let (task, weak) = (network.clone(), Arc::downgrade(&store));
        let watching = supervise::spawn("simulator-take-over", move || {
            task.clone().watch_nodes(weak.clone())
        });
        let task = network.clone();
        let reporting =
            supervise::spawn("simulator-reports", move || task.clone().run(sink.clone()));
        let tasks = [reporting.abort_handle(), watching.abort_handle()];
        network.tasks.get_or_init(|| tasks);
        Ok(network)
    }

    async fn run(self: Arc<Self>, sink: Arc<dyn ReceiptSink>) {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_RECEIPTS));
        loop {
            let next = self.next().await;
            let permit = permits.clone().acquire_owned().await.expect("never closed");
            let (network, sink) = (self.clone(), sink.clone());
            tokio::spawn(async move {
                network.report(next, &*sink).await;
                drop(permit);
            });
        }
    }

    /// Reports the messages of nodes that are gone. The node of a message is not stored, so everything in transit is
    /// reported.
    async fn watch_nodes(self: Arc<Self>, store: Weak<dyn Store>) {
        let mut known = None;
        loop {
            let Some(open) = store.upgrade() else { return };
            let checked = self.check_nodes(&*open, known.as_ref()).await;
            drop(open);
            let pause = match checked {
                Ok(nodes) => {
                    known = Some(nodes);
                    CHECK_NODES_EVERY
                }
                Err(error) => {
                    tracing::warn!(%error, "the simulator cannot read its messages in transit; retrying");
                    RETRY_AFTER
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// The current nodes. If a known node is missing, and at the start, everything in transit is reported.
    async fn check_nodes(
        &self,
        store: &dyn Store,
        known: Option<&HashSet<NodeId>>,
    ) -> Result<HashSet<NodeId>, StoreError> {
        let nodes = store.list_nodes().await?;
        let nodes: HashSet<NodeId> = nodes.iter().map(|node| node.node).collect();
        if known.is_none_or(|known| !known.is_subset(&nodes)) {
            self.resume(store).await?;
        }
        Ok(nodes)
    }

    /// Delivers a receipt and, if the channel supports it, reports that the message was seen.
    async fn report(&self, next: Pending, sink: &dyn ReceiptSink) {
        if let Some(echo) = next.echo {
            self.send_back(echo).await;
        }
        let receipt = Receipt {
            of: next.of,
            to: None,
            outcome: next.outcome,
            report: None,
            network: None,
            at: self.clock.now(),
        };
        while sink.receive(receipt.clone()).await.is_err() {
            tokio::time::sleep(RETRY_AFTER).await;
        }
        if next.reports_seen && receipt.outcome == Outcome::Delivered {
            tokio::time::sleep(self.settings.delay).await;
            while sink
                .mark_seen(receipt.of.clone(), self.clock.now())
                .await
                .is_err()
            {
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    async fn resume(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            while self.pending.lock().expect("no holder panics").len() >= MAX_PENDING {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            let parts = store.list_in_transit(NAME, &after, RESUME_BATCH).await?;
            for part in &parts {
                self.report_later(
                    part.reference.clone(),
                    simulated_outcome(&part.to),
                    false,
                    None,
                );
            }
            self.added.notify_one();
            match parts.last() {
                Some(last) if parts.len() >= RESUME_BATCH as usize => {
                    after.clone_from(&last.reference);
                }
                _ => return Ok(()),
            }
        }
    }

    fn report_later(
        &self,
        reference: String,
        simulated: SimulatedOutcome,
        reports_seen: bool,
        echo: Option<HandsetText>,
    ) {
        let outcome = match simulated {
            SimulatedOutcome::Delivered => Outcome::Delivered,
            SimulatedOutcome::Failed(code) | SimulatedOutcome::Refused(code) => {
                Outcome::Failed(code)
            }
            SimulatedOutcome::Silent => return,
        };
        let of = CarrierRef {
            carrier: NAME.to_owned(),
            reference,
        };
        let due = Instant::now() + self.settings.delay;
        let mut pending = self.pending.lock().expect("no holder panics");
        pending.push_back(Pending {
            due,
            of,
            outcome,
            reports_seen,
            echo,
        });
    }

    /// Waits for the next receipt that is due. The delay is the same for all, so the first one is the earliest.
    async fn next(&self) -> Pending {
        loop {
            let due = self
                .pending
                .lock()
                .expect("no holder panics")
                .front()
                .map(|first| first.due);
            match due {
                None => self.added.notified().await,
                Some(due) if due > Instant::now() => tokio::time::sleep_until(due).await,
                Some(_) => {
                    let first = self.pending.lock().expect("no holder panics").pop_front();
                    if let Some(first) = first {
                        return first;
                    }
                }
            }
        }
    }

    fn write_journal(&self, queued: &QueuedMessage) -> std::io::Result<()> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let line = format!("{} {}\n", queued.id, queued.shape.parts);
        journal
            .lock()
            .expect("no holder panics")
            .write_all(line.as_bytes())
    }
}

#[async_trait]
impl Carrier for Simulator {
    fn name(&self) -> &str {
        NAME
    }

    fn window(&self) -> usize {
        self.settings.window
    }

    fn health(&self) -> Health {
        Health::Up
    }

    fn state(&self) -> CarrierState {
        CarrierState {
            health: Health::Up,
            links_up: 0,
            links: 0,
            links_total: 0,
            note: None,
        }
    }

    async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
    }

    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        let simulated = simulated_outcome(&queued.to);
        if queued.channel == Channel::Hlr {
            return self.look_up(&queued.to, simulated);
        }
        if let SimulatedOutcome::Refused(code) = simulated {
            return CarrierAnswer::Refused(code);
        }
        if self.pending.lock().expect("no holder panics").len() >= MAX_PENDING {
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        if let Err(error) = self.write_journal(queued) {
            tracing::error!(%error, "the simulator cannot write its journal, so it accepts no messages");
            return CarrierAnswer::NotNow(Code::SYSTEM_FAILURE);
        }
        let references: Vec<String> = (1..=queued.shape.parts)
            .map(|part| format!("{}-{part}", queued.id))
            .collect();
        let mut echo = echo::of(queued);
        for reference in &references {
            let reports_seen = queued.channel == Channel::Viber;
            self.report_later(reference.clone(), simulated, reports_seen, echo.take());
        }
        self.added.notify_one();
        CarrierAnswer::Taken(references)
    }
}
