//! The nodes: each the real engine, with a world of ours around it.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use domain::message::AcceptedMessages;
use domain::ports::{NodeInfo, StoreError, WorkStore};
use domain::{Channel, Clock};
use numbering::reference::Location;
use tokio::time::Instant;

use super::Request;
use super::door::Door;
use super::life::Life;
use super::outside::{NETWORKS, Network, Receiver, Sinks};
use super::unused::Unused;
use super::world::{World, WorldClock};
use crate::audit::Audit;
use crate::batcher::Limits;
use crate::callbacks::{CallbackSettings, Callbacks, MOST_TRIES};
use crate::catalogue::Catalogues;
use crate::maintenance;
use crate::sending::dispatch::{CarrierHandle, Dispatch};
use crate::sending::receipts::Receipts;
use crate::sending::routing::{CarrierFacts, Plan, Routing};
use crate::sending::submit::{Destination, Intake, RoutedRequest};

/// Messages that a node may hold.
const HELD: usize = 24;
const INTAKE: Limits = Limits {
    queue: 100,
    batch: 20,
};

/// Numbers are not located here; it takes long to read what would locate them, so that is done once.
static CATALOGUES: LazyLock<Arc<Catalogues>> = LazyLock::new(|| {
    let read = || async {
        let clock: Arc<dyn Clock> = Arc::new(domain::clock::SystemClock);
        let audit = Audit::new(Arc::new(Unused), clock.clone());
        Catalogues::read(Arc::new(Unused), audit, clock).await
    };
    let read = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(read())
    };
    // A thread of its own: the first to ask is inside a runtime already.
    let read = std::thread::spawn(read).join();
    Arc::new(
        read.expect("no panic")
            .expect("what comes with the program"),
    )
});

/// A node that runs.
struct Running {
    life: Arc<Life>,
    intake: Arc<Intake>,
    routing: Arc<Routing>,
}

/// A place for a node: when one dies, another is started in it.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<Running>>);

impl Slot {
    /// Keeps a node running in it.
    pub(super) async fn keep(self: Arc<Self>, world: Arc<World>, sinks: Arc<Sinks>) {
        loop {
            let life = Life::begin();
            tokio::select! {
                biased;
                () = life.death() => {}
                started = start(&world, &life, &sinks) => if let Ok(running) = started {
                    *self.0.lock().expect("no holder panics") = Some(running);
                    life.death().await;
                },
            }
            *self.0.lock().expect("no holder panics") = None;
            life.kill();
            tokio::time::sleep(world.pause(300, 15_000)).await;
            world.note("a node is started again");
        }
    }

    pub(super) fn kill(&self) {
        if let Some(running) = &*self.0.lock().expect("no holder panics") {
            running.life.kill();
        }
    }

    pub(super) fn stop_for(&self, time: Duration) {
        if let Some(running) = &*self.0.lock().expect("no holder panics") {
            running.life.stop_until(Instant::now() + time);
        }
    }

    /// Submits a request; `None` where it is not known what became of it.
    pub(super) async fn submit(&self, request: Request) -> Option<AcceptedMessages> {
        let (intake, routing) = {
            let running = self.0.lock().expect("no holder panics");
            let running = running.as_ref()?;
            (running.intake.clone(), running.routing.clone())
        };
        let table = routing.table();
        let checked = request.checked;
        let location = Location::default();
        let destinations = checked.recipients.iter().map(|to| Destination {
            to: *to,
            location,
            per_part: request.price,
            price: request.price,
            route: table.choose(checked.channel, checked.account, to, &location),
        });
        let routed = RoutedRequest {
            destinations: destinations.collect(),
            carriers: table.carriers(),
            checked,
        };
        let stored = intake.store(routed, request.idempotency);
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, stored).await.ok()?.ok()
    }
}

async fn start(
    world: &Arc<World>,
    life: &Arc<Life>,
    sinks: &Arc<Sinks>,
) -> Result<Running, StoreError> {
    let store: Arc<dyn WorkStore> = Arc::new(Door::new(world.clone(), life.clone()));
    let clock: Arc<dyn Clock> = Arc::new(WorldClock(world.clone()));
    let card = NodeInfo {
        roles: Vec::new(),
        works: true,
        version: String::new(),
        host: String::new(),
        listen: String::new(),
    };
    let node = crate::cluster::node::Node::start(store.clone(), clock.clone(), card).await?;
    let receiver = Receiver {
        world: world.clone(),
        life: life.clone(),
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
    let receipts = Receipts::start(store.clone(), node.clone(), callbacks.clone());
    let routing = Routing::new(Arc::new(Unused), CATALOGUES.clone());
    let dispatch = Dispatch::start(
        store.clone(),
        clock.clone(),
        node.clone(),
        routing.clone(),
        callbacks.clone(),
        HELD,
    );
    maintenance::spawn_expiry(store.clone(), node, callbacks);
    let networks = NETWORKS.iter().enumerate();
    let (carriers, handles) = networks
        .map(|(place, (name, _))| {
            let facts = CarrierFacts {
                name: (*name).to_owned(),
                channels: vec![Channel::Sms],
                costs: None,
                is_simulated: true,
            };
            let carrier = Network::new(world.clone(), life.clone(), sinks.clone(), place);
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
    sinks.add(life.clone(), receipts);
    let intake = Intake::start(store, clock, Some(dispatch), INTAKE);
    Ok(Running {
        life: life.clone(),
        intake: Arc::new(intake),
        routing,
    })
}
