//! What the product does, one file a use case.
//!
//! What belongs here: accepting messages ([`submit`]), finding carriers for them ([`routing`]), sending them ([`dispatch`]), hearing what became of them
//! ([`receipts`]) and reporting it ([`callbacks`]); reading them back and cancelling them ([`messages`]), looking for them
//! ([`history`], [`reports`]) and counting them ([`traffic`]); how the service does ([`operations`]); deciding who
//! may call ([`gate`]), keeping accounts, tokens, people and sign-ins ([`accounts`], [`people`], [`sign_in`]), granting to
//! clients ([`grants`]); reference data and what
//! messages cost ([`catalogues`], [`prices`]); what accounts may send under ([`senders`]); and the machinery that several
//! of these share ([`batcher`], [`id_blocks`], [`node`], [`throttle`]).
//!
//! What never enters: HTTP and SQL. The doors in `web` call these use cases; the databases stand behind the port
//! traits of `domain`.

pub mod audit;
pub mod batcher;
pub mod callbacks;
pub mod catalogue;
pub mod cluster;
mod entropy;
pub mod identity;
mod maintenance;
pub mod reading;
pub mod senders;
pub mod sending;
// Test code that reaches into the crate, so it is compiled as a part of it.
#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::sync::Arc;

use domain::ports::{
    CallbackSender, ClientDocuments, ImageGuard, NodeCard, ReceiptSink, Store, StoreError, UrlGuard,
};
use domain::{Clock, NodeId, Originator, Timestamp};
use jiff::SignedDuration;

pub use audit::{Audit, By};
pub use callbacks::history::Reports;
pub use callbacks::{Callbacks, MOST_TRIES, PausedReceiver};
pub use catalogue::Catalogues;
pub use cluster::node::Node;
pub use identity::accounts::Accounts;
pub use identity::gate::Gate;
pub use identity::grants::{GrantSettings, Grants};
pub use identity::people::{OwnAccess, People};
pub use identity::sign_in::SignIn;
pub use reading::history::History;
pub use reading::messages::Messages;
pub use reading::operations::Operations;
pub use reading::traffic::Traffic;
pub use senders::{SenderReview, Senders};
pub use sending::dispatch::{CarrierHandle, Dispatch};
pub use sending::receipts::Receipts;
pub use sending::routing::{Plan, Routing};
pub use sending::submit::Submit;

/// How much the use cases may hold in memory, and how they write.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What this process says of itself to whoever runs the service.
    pub card: NodeCard,
    /// Submissions that may wait for the database at once; beyond, callers are told to come back.
    pub accept_queue: usize,
    /// The most submissions that one transaction stores.
    pub accept_batch: usize,
    /// Messages that may wait in memory to be sent; more wait in the database.
    pub held: usize,
    /// How long a callback is tried; `None`: for ever.
    pub park_callbacks_after: Option<SignedDuration>,
    /// Tries to deliver callbacks that may be under way at once, at most [`MOST_TRIES`]: each needs a connection.
    pub callback_tries: usize,
    /// How long messages that have ended are kept; `None`: for ever.
    pub keep_messages: Option<SignedDuration>,
    /// Ledger entries older than this are folded into daily sums; `None` keeps every entry.
    pub fold_ledger_after: Option<SignedDuration>,
    /// Who the PINs to numbers that are registered as senders come from.
    pub pin_from: Originator,
    /// Who grants to clients, for what, and for how long.
    pub grants: GrantSettings,
}

/// Who decides about the addresses that callers give.
pub struct Guards {
    /// Where callbacks may go.
    pub urls: Arc<dyn UrlGuard>,
    /// Which images may go with a message.
    pub images: Arc<dyn ImageGuard>,
    /// What clients say of themselves.
    pub clients: Arc<dyn ClientDocuments>,
}

/// The outside world, as the use cases reach it.
pub struct Outside {
    /// The way to those who asked for reports.
    pub callbacks: Arc<dyn CallbackSender>,
}

/// The use cases, built once and shared by every door.
pub struct Engine {
    /// Who may call.
    pub gate: Arc<Gate>,
    /// Sending.
    pub submit: Arc<Submit>,
    /// Reading back and cancelling.
    pub messages: Messages,
    /// Looking for messages.
    pub history: History,
    /// How callbacks went, and sending them again.
    pub reports: Reports,
    /// Figures of what was sent.
    pub traffic: Traffic,
    /// How the service does.
    pub operations: Operations,
    /// What accounts may send under.
    pub senders: Senders,
    /// Deciding about what accounts may send under.
    pub sender_review: SenderReview,
    /// Accounts and tokens.
    pub accounts: Accounts,
    /// Reference data and prices.
    pub catalogues: Arc<Catalogues>,
    /// Invitations and passwords.
    pub people: People,
    /// What people decide about their own ways in.
    pub own: OwnAccess,
    /// The dashboard's sessions.
    pub sign_in: SignIn,
    /// The log of changes.
    pub audit: Audit,
    /// What people grant to clients.
    pub grants: Grants,
    /// Which way messages go.
    pub routing: Arc<Routing>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    worker: Option<Worker>,
}

/// The part that works through what was accepted.
struct Worker {
    dispatch: Arc<Dispatch>,
    receipts: Arc<Receipts>,
    callbacks: Arc<Callbacks>,
    maintenance: maintenance::Maintenance,
}

impl Engine {
    /// Builds the use cases on a store; with an outside world, this process also works through what was accepted. Must
    /// be called inside a tokio runtime.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        guards: Guards,
        outside: Option<Outside>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let catalogues = Catalogues::start(store.clone(), clock.clone()).await?;
        let routing = Routing::new(store.clone(), catalogues.clone());
        let card = NodeCard {
            works: outside.is_some(),
            ..settings.card.clone()
        };
        let node = Node::start(store.clone(), clock.clone(), card).await?;
        let worker = outside
            .map(|outside| Worker::start(&store, &clock, &node, &routing, outside, &settings));
        let dispatch = worker.as_ref().map(|worker| worker.dispatch.clone());
        let gate = Gate::start(store.clone(), clock.clone());
        let (urls, clients) = (guards.urls.clone(), guards.clients.clone());
        let submit = Arc::new(Submit::start(
            store.clone(),
            clock.clone(),
            guards,
            routing.clone(),
            sending::submit::Approvals::new(store.clone(), gate.clone()),
            dispatch,
            &settings,
        ));
        let hasher = Arc::new(identity::hasher::Hasher::default());
        Ok(Self {
            gate,
            senders: Senders::new(
                store.clone(),
                clock.clone(),
                urls,
                submit.clone(),
                settings.pin_from,
            ),
            submit,
            sender_review: SenderReview::new(store.clone(), clock.clone()),
            history: History::new(store.clone()),
            reports: Reports::new(store.clone(), clock.clone()),
            traffic: Traffic::new(store.clone(), catalogues.clone()),
            operations: Operations::new(store.clone(), clock.now()),
            catalogues,
            messages: Messages::new(store.clone(), clock.clone()),
            accounts: Accounts::new(store.clone(), clock.clone()),
            people: People::new(store.clone(), clock.clone(), hasher.clone()),
            own: OwnAccess::new(store.clone(), clock.clone(), hasher.clone()),
            sign_in: SignIn::new(store.clone(), clock.clone(), hasher),
            audit: Audit::new(store.clone(), clock.clone()),
            grants: Grants::new(store, clock.clone(), clients, settings.grants),
            clock,
            routing,
            node,
            worker,
        })
    }

    /// Goes over to a plan of carriers and rules; `handles` are the carriers of the plan, in its order. Where this
    /// process does not work, they are not needed, and the plan only says what can be sent at all.
    pub async fn equip(&self, plan: Plan, handles: Vec<CarrierHandle>) -> Result<(), StoreError> {
        match &self.worker {
            Some(worker) => worker.dispatch.equip(plan, handles).await,
            None => self.routing.set(plan, Arc::default()).await,
        }
    }

    /// The time that the use cases go by.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether there is no carrier but simulated ones: nothing real is sent.
    pub fn is_simulated(&self) -> bool {
        self.routing.is_simulated()
    }

    /// Where carriers bring their receipts, where this process works.
    pub fn receipts(&self) -> Option<Arc<dyn ReceiptSink>> {
        self.worker
            .as_ref()
            .map(|worker| worker.receipts.clone() as Arc<dyn ReceiptSink>)
    }

    /// Which node this process is.
    pub fn node(&self) -> NodeId {
        self.node.id()
    }

    /// Whether this process works through what was accepted.
    pub fn works(&self) -> bool {
        self.node.works()
    }

    /// The receivers of callbacks that this process has paused.
    pub fn paused_receivers(&self) -> Vec<PausedReceiver> {
        let worker = self.worker.as_ref();
        worker.map_or_else(Vec::new, |worker| worker.callbacks.paused())
    }

    /// Returns when the store could not make a write durable, be it of a caller or of the work in the background: the
    /// service must end, a restart reads the truth back.
    pub async fn broken(&self) {
        tokio::select! {
            () = self.submit.broken() => {}
            () = self.node.broken() => {}
        }
    }

    /// Returns when a newer program has changed the database so that this one must not go on.
    pub async fn outdated(&self) {
        self.node.outdated().await;
    }

    /// Whether all of its background tasks run.
    pub fn is_running(&self) -> bool {
        supervise::all_up()
    }

    /// Stops taking work and returns once everything taken is stored and answered.
    pub async fn stop(&self) {
        self.submit.stop().await;
        if let Some(worker) = &self.worker {
            worker.stop().await;
        }
        self.node.leave().await;
        self.catalogues.stop();
        self.gate.stop().await;
    }
}

impl Worker {
    fn start(
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        node: &Arc<Node>,
        routing: &Arc<Routing>,
        outside: Outside,
        settings: &Settings,
    ) -> Self {
        let callbacks = Callbacks::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            outside.callbacks,
            callbacks::CallbackSettings {
                park_after: settings.park_callbacks_after,
                most_tries: settings.callback_tries.min(MOST_TRIES),
            },
        );
        let receipts = Receipts::start(store.clone(), node.clone(), callbacks.clone());
        let dispatch = Dispatch::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            routing.clone(),
            callbacks.clone(),
            settings.held,
        );
        let maintenance = maintenance::Maintenance::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            callbacks.clone(),
            maintenance::Retention {
                messages: settings.keep_messages,
                ledger: settings.fold_ledger_after,
            },
        );
        Self {
            dispatch,
            receipts,
            callbacks,
            maintenance,
        }
    }

    async fn stop(&self) {
        self.maintenance.stop();
        self.dispatch.stop().await;
        self.receipts.stop().await;
        self.callbacks.stop().await;
    }
}
