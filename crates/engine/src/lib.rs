//! What the product does, one file per use case.
//!
//! | module | subject |
//! |---|---|
//! | [`sending`] | the path of a message: submit, route, hand to a carrier, settle by receipts |
//! | [`callbacks`] | delivery reports and other events, sent to the customers' receivers |
//! | [`identity`] | who may call and who may sign in: accounts, tokens, people, sessions, OAuth grants |
//! | [`catalogue`] | imported reference data and price lists |
//! | [`reading`] | lists and details: messages, traffic figures, the state of the service |
//! | [`cluster`] | one process as a node among others: heartbeat, clock, message IDs, held rows |
//! | [`refusals`] | messages that are not sent: opt-outs and the operators' block list |
//! | [`senders`] | the sender IDs of accounts: registering, confirming, reviewing |
//! | [`verify`] | one-time codes as a service: sending and checking them |
//! | `monitoring` | metrics for operators |
//! | `ported` | the networks that numbers were ported to |
//! | [`subject`] | what is stored about one number: exporting and erasing it |
//! | `maintenance` | background jobs: expiry, retention, folding the ledger |
//! | [`Invalid`] | a field of a request that breaks a rule |
//! | [`alerts`] | what is wrong at present, and the notifications about it |
//! | [`inbound`] | messages from handsets, and the numbers that they are sent to |
//! | [`audit`] | the audit log, which most use cases write |
//! | [`clock`] | the machine's clock, which `serve` and the commands pass to everything else |
//! | [`batcher`] | many writes in one transaction |
//!
//! HTTP and SQL do not belong here: `web` calls these use cases, and they reach the databases and the network through
//! the port traits of `domain`.

#[macro_use]
mod traced;

pub mod alerts;
pub mod audit;
pub mod batcher;
pub mod callbacks;
pub mod catalogue;
pub mod clock;
pub mod cluster;
mod csv_cells;
mod entropy;
pub mod identity;
pub mod inbound;
mod invalid;
mod maintenance;
mod monitoring;
mod ported;
pub mod reading;
pub mod refusals;
pub mod senders;
pub mod sending;
pub mod subject;
pub mod verify;
// Test code that reaches into the crate, so it is compiled as a part of it.
#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;
mod worker;

use std::sync::Arc;

use domain::inbound::words::Words;
use domain::ports::{
    CallbackSender, ClientDocuments, HandsetSink, ImageGuard, Machine, Mailer, NodeInfo,
    NotificationSender, ReceiptSink, Store, StoreError, UrlGuard,
};
use domain::{Clock, NodeId, Originator, Timestamp};
use jiff::SignedDuration;

use identity::hasher::Hasher;
use inbound::Composer;
use ported::follow::PortedFollower;
use refusals::follow::ListFollower;
use sending::submit::{Approvals, CallerLimits, GrantCaps};
use worker::Worker;

pub use alerts::Alerts;
pub use alerts::targets::{Address, NotifyTarget};
pub use audit::{Actor, Audit};
pub use callbacks::history::CallbackHistory;
pub use callbacks::{Callbacks, MOST_TRIES, PausedReceiver};
pub use catalogue::Catalogues;
pub use cluster::node::Node;
pub use identity::accounts::Accounts;
pub use identity::gate::Gate;
pub use identity::grants::{GrantSettings, Grants};
pub use identity::people::{OwnAccess, People};
pub use identity::request_log::RequestLog;
pub use identity::sign_in::SignIn;
pub use identity::smpp_users::{SmppUserRegistry, SmppUsers};
pub use inbound::{Numbers, SimulatedHandset};
pub use invalid::{Field, Invalid};
pub use reading::export::Exports;
pub use reading::history::History;
pub use reading::messages::Messages;
pub use reading::operations::Operations;
pub use reading::statement::Statements;
pub use reading::traffic::Traffic;
pub use refusals::blocks::Blocks;
pub use refusals::opt_outs::OptOuts;
pub use senders::{SenderReview, Senders};
pub use sending::dispatch::{CarrierHandle, Dispatch};
pub use sending::receipts::Receipts;
pub use sending::routing::{Plan, Routing};
pub use sending::submit::Submit;
pub use sending::templates::Templates;
pub use subject::Subjects;
pub use verify::{Conversions, Verify};

/// Limits and retention periods of the use cases.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What this process tells operators about itself.
    pub node_info: NodeInfo,
    /// How many submissions may wait for the database; further callers must retry.
    pub accept_queue: usize,
    /// Maximum number of submissions in one transaction.
    pub accept_batch: usize,
    /// How many messages may wait in memory to be sent; the rest wait in the database.
    pub held: usize,
    /// How long a callback is retried; `None`: without end.
    pub park_callbacks_after: Option<SignedDuration>,
    /// How many callback attempts may run at once, at most [`MOST_TRIES`]: each needs a connection.
    pub callback_tries: usize,
    /// How long messages in a final state are stored; `None`: without end.
    pub keep_messages: Option<SignedDuration>,
    /// How long texts of messages in a final state are stored; `None`: as long as the messages.
    pub keep_texts: Option<SignedDuration>,
    /// How long a text from a handset waits for missing parts.
    pub incomplete_after: SignedDuration,
    /// Words such as STOP.
    pub words: Arc<Words>,
    /// How long the networks of ported numbers are remembered.
    pub keep_ported: SignedDuration,
    /// Ledger entries older than this are folded into daily sums; `None` keeps every entry.
    pub fold_ledger_after: Option<SignedDuration>,
    /// Whether accounts have metrics of their own.
    pub metrics_by_account: bool,
    /// Where notifications go.
    pub notify: Vec<NotifyTarget>,
    /// The originator of the PINs that confirm numbers, and of verifications that name none.
    pub pin_from: Originator,
    /// Issuer, resource and lifetimes of OAuth grants.
    pub grants: GrantSettings,
}

/// Checks of the addresses that callers give, and what requests need of the outside world.
pub struct Guards {
    /// Decides which URLs callbacks may go to.
    pub urls: Arc<dyn UrlGuard>,
    /// Decides which images a message may carry.
    pub images: Arc<dyn ImageGuard>,
    /// Fetches the metadata that OAuth clients publish.
    pub clients: Arc<dyn ClientDocuments>,
    /// Sends e-mail, if that is configured.
    pub mailer: Option<Arc<dyn Mailer>>,
}

/// The outside world, as the use cases reach it.
pub struct Outside {
    /// Sends callbacks to receivers.
    pub callbacks: Arc<dyn CallbackSender>,
    /// The machine that this process runs on.
    pub machine: Arc<dyn Machine>,
    /// Sends notifications.
    pub notifications: Arc<dyn NotificationSender>,
    /// Sends e-mail, if that is configured.
    pub mailer: Option<Arc<dyn Mailer>>,
}

/// The use cases, built once and shared by REST, MCP and the dashboard.
pub struct Engine {
    /// Checks tokens.
    pub gate: Arc<Gate>,
    /// Accepts messages.
    pub submit: Arc<Submit>,
    /// Reads and cancels messages.
    pub messages: Messages,
    /// Searches messages.
    pub history: History,
    /// Lists callbacks and replays them.
    pub reports: CallbackHistory,
    /// Traffic figures.
    pub traffic: Traffic,
    /// Exports of messages.
    pub exports: Exports,
    /// Monthly statements.
    pub statements: Statements,
    /// The state of nodes, carriers and queues.
    pub operations: Operations,
    /// Registers and confirms sender IDs.
    pub senders: Senders,
    /// One-time codes.
    pub verify: Verify,
    /// Approves and rejects sender IDs.
    pub sender_review: SenderReview,
    /// Accounts and tokens.
    pub accounts: Accounts,
    /// Numbers that accounts own, and their inboxes.
    pub numbers: Numbers,
    /// Sends texts as if a handset had sent them.
    pub simulated_handset: SimulatedHandset,
    /// Reference data and prices.
    pub catalogues: Arc<Catalogues>,
    /// Invitations, roles and password resets.
    pub people: People,
    /// What people change about their own sign-in: password, second factor.
    pub own: OwnAccess,
    /// The dashboard's sessions.
    pub sign_in: SignIn,
    /// Checks the passwords of SMPP users, and follows those that are bound.
    pub smpp_users: Arc<SmppUsers>,
    /// Creates and revokes SMPP users.
    pub smpp_user_registry: SmppUserRegistry,
    /// What is wrong at present.
    pub alerts: Alerts,
    /// Sends e-mail, if that is configured.
    pub mailer: Option<Arc<dyn Mailer>>,
    /// The audit log.
    pub audit: Audit,
    /// OAuth grants.
    pub grants: Grants,
    /// The opt-out lists of accounts.
    pub opt_outs: Arc<OptOuts>,
    /// The operators' block list.
    pub blocks: Blocks,
    /// Refused requests of programs.
    pub request_log: Arc<RequestLog>,
    /// Saved texts of accounts.
    pub templates: Templates,
    /// Carriers and routing rules in force.
    pub routing: Arc<Routing>,
    follower: Arc<ListFollower>,
    ported: Arc<PortedFollower>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    worker: Option<Worker>,
}

impl Engine {
    /// Builds the use cases on a store. With an outside world, this process is a worker and also sends what was
    /// accepted. Must be called inside a tokio runtime.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        guards: Guards,
        outside: Option<Outside>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let catalogues = Catalogues::start(store.clone(), clock.clone()).await?;
        let routing = Routing::new(store.clone(), catalogues.clone());
        let mailer = guards.mailer.clone();
        let follower = ListFollower::start(store.clone(), routing.refusals().clone()).await?;
        let ported = PortedFollower::start(
            store.clone(),
            clock.clone(),
            routing.ported().clone(),
            settings.keep_ported,
        )
        .await?;
        let opt_outs = Arc::new(OptOuts::new(
            store.clone(),
            store.clone(),
            clock.clone(),
            Some(follower.clone()),
        ));
        let (node, worker) = join(&store, &clock, &routing, &opt_outs, outside, &settings).await?;
        let dispatch = worker.as_ref().map(|worker| worker.dispatch.clone());
        let gate = Gate::start(store.clone(), clock.clone());
        let (urls, clients) = (guards.urls.clone(), guards.clients.clone());
        let alert_urls = urls.clone();
        let callers = CallerLimits {
            approvals: Approvals::new(store.clone(), gate.clone()),
            grant_caps: GrantCaps::new(store.clone()),
        };
        let submit = Arc::new(Submit::start(
            store.clone(),
            clock.clone(),
            guards,
            routing.clone(),
            callers,
            dispatch,
            &settings,
        ));
        let composer = Composer::new(
            store.clone(),
            catalogues.clone(),
            opt_outs.clone(),
            settings.words,
        );
        let hasher = Arc::new(Hasher::default());
        let (sender_store, pin_from) = (store.clone(), settings.pin_from);
        let verify = Verify::new(
            store.clone(),
            clock.clone(),
            submit.clone(),
            pin_from.clone(),
        );
        let senders = Senders::new(sender_store, clock.clone(), urls, submit.clone(), pin_from);
        Ok(Self {
            senders,
            verify,
            submit,
            sender_review: SenderReview::new(store.clone(), clock.clone()),
            history: History::new(store.clone()),
            reports: CallbackHistory::new(store.clone(), clock.clone()),
            traffic: Traffic::new(store.clone(), catalogues.clone()),
            exports: Exports::new(store.clone(), store.clone(), catalogues.clone()),
            statements: Statements::new(store.clone(), store.clone(), catalogues.clone()),
            operations: Operations::new(store.clone(), clock.now()),
            catalogues,
            messages: Messages::new(store.clone(), clock.clone()),
            accounts: Accounts::new(store.clone(), clock.clone()),
            numbers: Numbers::new(store.clone(), clock.clone(), alert_urls.clone()),
            people: People::new(store.clone(), clock.clone(), hasher.clone()),
            own: OwnAccess::new(store.clone(), clock.clone(), hasher.clone()),
            smpp_users: follow_smpp_users(&store, &clock, &hasher, &gate, &node),
            smpp_user_registry: SmppUserRegistry::new(store.clone(), clock.clone(), hasher.clone()),
            gate,
            sign_in: SignIn::new(store.clone(), clock.clone(), hasher),
            alerts: Alerts::new(store.clone(), clock.clone(), alert_urls),
            mailer,
            audit: Audit::new(store.clone(), clock.clone()),
            opt_outs,
            request_log: RequestLog::start(store.clone(), clock.clone()),
            templates: Templates::new(store.clone(), store.clone(), clock.clone()),
            simulated_handset: SimulatedHandset::new(store.clone(), clock.clone(), composer),
            blocks: Blocks::new(
                store.clone(),
                store.clone(),
                clock.clone(),
                Some(follower.clone()),
            ),
            grants: Grants::new(store, clock.clone(), clients, settings.grants),
            follower,
            ported,
            clock,
            routing,
            node,
            worker,
        })
    }

    /// Puts a plan of carriers and rules in force; `handles` are the carriers of the plan, in its order. A process that
    /// is not a worker needs no handles: it uses the plan only to decide what can be sent at all.
    pub async fn equip(&self, plan: Plan, handles: Vec<CarrierHandle>) -> Result<(), StoreError> {
        match &self.worker {
            Some(worker) => {
                worker.dispatch.equip(plan, handles).await?;
                worker.inbound.send_replies(&self.submit);
                Ok(())
            }
            None => self.routing.set(plan, Arc::default()).await,
        }
    }

    /// The current time, as the use cases see it.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether all carriers are simulated, so that nothing real is sent.
    pub fn is_simulated(&self) -> bool {
        self.routing.is_simulated()
    }

    /// Where carriers deliver their receipts; `None` unless this process is a worker.
    pub fn receipts(&self) -> Option<Arc<dyn ReceiptSink>> {
        self.worker
            .as_ref()
            .map(|worker| worker.receipts.clone() as Arc<dyn ReceiptSink>)
    }

    /// Where carriers deliver messages from handsets; `None` unless this process is a worker.
    pub fn handsets(&self) -> Option<Arc<dyn HandsetSink>> {
        self.worker
            .as_ref()
            .map(|worker| worker.inbound.clone() as Arc<dyn HandsetSink>)
    }

    /// The ID of this node.
    pub fn node(&self) -> NodeId {
        self.node.id()
    }

    /// Whether this process is a worker.
    pub fn works(&self) -> bool {
        self.node.works()
    }

    /// The receivers that this process has paused.
    pub fn paused_receivers(&self) -> Vec<PausedReceiver> {
        let worker = self.worker.as_ref();
        worker.map_or_else(Vec::new, |worker| worker.callbacks.paused())
    }

    /// Returns when the store could not make a write durable. The service must then end: a restart reads the true
    /// state.
    pub async fn broken(&self) {
        tokio::select! {
            () = self.submit.broken() => {}
            () = self.node.broken() => {}
        }
    }

    /// Returns when a newer program has changed the database so that this one must stop.
    pub async fn outdated(&self) {
        self.node.outdated().await;
    }

    /// Whether all background tasks run.
    pub fn is_running(&self) -> bool {
        supervise::all_up()
    }

    /// Stops taking work and returns once all accepted work is stored and answered.
    pub async fn stop(&self) {
        self.submit.stop().await;
        if let Some(worker) = &self.worker {
            worker.stop().await;
        }
        self.node.leave().await;
        self.catalogues.stop();
        self.follower.stop();
        self.ported.stop();
        self.smpp_users.stop();
        self.gate.stop().await;
        self.request_log.stop().await;
    }
}

/// Joins the cluster, and starts sending if this process is a worker.
async fn join(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    routing: &Arc<Routing>,
    opt_outs: &Arc<OptOuts>,
    outside: Option<Outside>,
    settings: &Settings,
) -> Result<(Arc<Node>, Option<Worker>), StoreError> {
    let info = NodeInfo {
        works: outside.is_some(),
        ..settings.node_info.clone()
    };
    let node = Node::start(store.clone(), clock.clone(), info).await?;
    let start = |outside| Worker::start(store, clock, &node, routing, opt_outs, outside, settings);
    let worker = outside.map(start);
    Ok((node, worker))
}

fn follow_smpp_users(
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    hasher: &Arc<Hasher>,
    gate: &Arc<Gate>,
    node: &Arc<Node>,
) -> Arc<SmppUsers> {
    let (store, clock) = (store.clone(), clock.clone());
    SmppUsers::start(store, clock, hasher.clone(), gate.clone(), node.clone())
}
