//! The nodes: each is the real engine with a simulated store, clock and network.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use domain::message::AcceptedMessages;
use domain::ports::{NodeInfo, StoreError, WorkStore};
use domain::{Channel, Clock, Code, Money, Msisdn};
use memory_store::MemoryStore;
use numbering::reference::Location;
use tokio::time::Instant;

use super::environment::{Environment, SimulatedClock};
use super::faulty_store::FaultyCalls;
use super::liveness::Liveness;
use super::network::{NETWORKS, Network, Receiver, Sinks};
use super::unused::Unused;
use super::{OPTED_OUT, Request};
use crate::audit::Audit;
use crate::batcher::Limits;
use crate::callbacks::{CallbackSettings, Callbacks, MOST_TRIES};
use crate::catalogue::Catalogues;
use crate::maintenance;
use crate::monitoring::ended::EndedCounters;
use crate::sending::dispatch::{CarrierHandle, Dispatch};
use crate::sending::receipts::Receipts;
use crate::sending::routing::{CarrierFacts, Locations, Plan, Routing};
use crate::sending::submit::{Destination, Intake, RoutedRequest};

/// How many messages a node may hold.
const MAX_HELD: usize = 24;
/// How long a caller waits for an answer.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(20);
const INTAKE: Limits = Limits {
    queue: 100,
    batch: 20,
    writes: 2,
    interval: Duration::ZERO,
};

/// Read once for all runs, because it takes long.
static CATALOGUES: LazyLock<Arc<Catalogues>> = LazyLock::new(|| {
    let read = || async {
        let clock: Arc<dyn Clock> = Arc::new(crate::clock::SystemClock);
        let audit = Audit::new(Arc::new(Unused), clock.clone());
        Catalogues::read(Arc::new(Unused), audit, clock).await
    };
    let read = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(read())
    };
    // In a new thread, because the first caller is already inside a runtime.
    let read = std::thread::spawn(read).join();
    Arc::new(
        read.expect("no panic")
            .expect("the embedded catalogues are valid"),
    )
});

struct Running {
    liveness: Arc<Liveness>,
    intake: Arc<Intake>,
    routing: Arc<Routing>,
}

/// Runs one node at a time: when it dies, another is started.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<Running>>);

impl Slot {
    /// Starts a node, and another one whenever it dies.
    pub(super) async fn run(self: Arc<Self>, env: Arc<Environment>, sinks: Arc<Sinks>) {
        loop {
            let liveness = Liveness::start();
            tokio::select! {
                biased;
                () = liveness.wait_for_death() => {}
                started = start(&env, &liveness, &sinks) => if let Ok(running) = started {
                    *self.0.lock().expect("no holder panics") = Some(running);
                    liveness.wait_for_death().await;
                },
            }
            *self.0.lock().expect("no holder panics") = None;
            liveness.kill();
            tokio::time::sleep(env.pause(300, 15_000)).await;
            env.log("a node is started again");
        }
    }

    pub(super) fn kill(&self) {
        if let Some(running) = &*self.0.lock().expect("no holder panics") {
            running.liveness.kill();
        }
    }

    pub(super) fn pause_for(&self, time: Duration) {
        if let Some(running) = &*self.0.lock().expect("no holder panics") {
            running.liveness.pause_until(Instant::now() + time);
        }
    }

    /// Submits a request. `None` if its outcome is unknown.
    pub(super) async fn submit(&self, request: Request) -> Option<AcceptedMessages> {
        let (intake, routing) = {
            let running = self.0.lock().expect("no holder panics");
            let running = running.as_ref()?;
            (running.intake.clone(), running.routing.clone())
        };
        let table = routing.table();
        let checked = request.checked;
        let (location, locations) = (Location::default(), Locations::default());
        let opted_out = Msisdn::parse(OPTED_OUT).expect("a number");
        let destinations = checked.recipients.iter().map(|to| {
            let refused = (*to == opted_out).then_some(Code::OPTED_OUT);
            Destination {
                to: *to,
                refused,
                location,
                per_part: request.price,
                price: refused.map_or(request.price, |_| Money::ZERO),
                route: table
                    .choose(checked.channel, checked.account, to, &locations)
                    .map(|(choice, _)| choice),
            }
        });
        let routed = RoutedRequest {
            destinations: destinations.collect(),
            carriers: table.carriers(),
            checked,
        };
        let stored = intake.store(routed, request.idempotency);
        tokio::time::timeout(SUBMIT_TIMEOUT, stored)
            .await
            .ok()?
            .ok()
            .map(|stored| stored.receipt)
    }
}

async fn start(
    env: &Arc<Environment>,
    liveness: &Arc<Liveness>,
    sinks: &Arc<Sinks>,
) -> Result<Running, StoreError> {
    let calls = FaultyCalls::new(env.clone(), liveness.clone());
    let store: Arc<dyn WorkStore> = Arc::new(MemoryStore::new(calls));
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock(env.clone()));
    let info = NodeInfo {
        roles: Vec::new(),
        works: true,
        version: String::new(),
        host: String::new(),
        listen: String::new(),
    };
    let node = crate::cluster::node::Node::start(store.clone(), clock.clone(), info).await?;
    let receiver = Receiver {
        env: env.clone(),
        liveness: liveness.clone(),
    };
    let callbacks = Callbacks::start(
        store.clone(),
        clock.clone(),
        node.clone(),
        Arc::new(receiver),
        CallbackSettings {
            park_after: None,
            most_tries: MOST_TRIES,
        },
    );
    let ended = EndedCounters::new(CATALOGUES.clone(), Arc::default());
    let receipts = Receipts::start(
        store.clone(),
        node.clone(),
        callbacks.clone(),
        ended.clone(),
    );
    let routing = Routing::new(Arc::new(Unused), CATALOGUES.clone());
    let dispatch = Dispatch::start(
        store.clone(),
        clock.clone(),
        node.clone(),
        routing.clone(),
        callbacks.clone(),
        ended.clone(),
        MAX_HELD,
    );
    maintenance::spawn_expiry(store.clone(), node, callbacks, ended.clone());
    let networks = NETWORKS.iter().enumerate();
    let (carriers, handles) = networks
        .map(|(index, (name, _))| {
            let facts = CarrierFacts {
                name: (*name).to_owned(),
                channels: vec![Channel::Sms],
                costs: None,
                is_simulated: true,
            };
            let carrier = Network::new(env.clone(), liveness.clone(), sinks.clone(), index);
            let handles = CarrierHandle {
                carrier,
                kind: "simulated".to_owned(),
            };
            (facts, handles)
        })
        .unzip();
    let plan = Plan {
        carriers,
        rules: Vec::new(),
    };
    dispatch.equip(plan, handles).await?;
    sinks.add(liveness.clone(), receipts);
    let intake = Intake::start(store, clock, Some(dispatch), ended, INTAKE);
    Ok(Running {
        liveness: liveness.clone(),
        intake: Arc::new(intake),
        routing,
    })
}
