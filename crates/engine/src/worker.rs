//! What makes a node a worker: dispatch, receipts, callbacks and maintenance.

use std::sync::Arc;

use domain::Clock;
use domain::ports::Store;
use tokio::task::AbortHandle;

use crate::alerts::deliver::Deliverer;
use crate::alerts::targets::NotifyTarget;
use crate::alerts::watch::AlertWatch;
use crate::callbacks::{CallbackSettings, Callbacks, MOST_TRIES};
use crate::cluster::node::Node;
use crate::inbound::{Composer, Inbound};
use crate::maintenance::{Maintenance, Retention};
use crate::monitoring::ended::EndedCounters;
use crate::monitoring::gauges::Gauges;
use crate::refusals::opt_outs::OptOuts;
use crate::sending::dispatch::Dispatch;
use crate::sending::receipts::Receipts;
use crate::sending::routing::Routing;
use crate::{Outside, Settings};

/// The part of a node that sends messages and callbacks.
pub(crate) struct Worker {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) receipts: Arc<Receipts>,
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) callbacks: Arc<Callbacks>,
    maintenance: Maintenance,
    monitoring: [AbortHandle; 3],
}

impl Worker {
    pub(crate) fn start(
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        node: &Arc<Node>,
        routing: &Arc<Routing>,
        opt_outs: &Arc<OptOuts>,
        outside: Outside,
        settings: &Settings,
    ) -> Self {
        let callbacks = Callbacks::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            outside.callbacks,
            CallbackSettings {
                park_after: settings.park_callbacks_after,
                most_tries: settings.callback_tries.min(MOST_TRIES),
            },
        );
        let ended = EndedCounters::new(routing.catalogues().clone());
        let receipts = Receipts::start(
            store.clone(),
            node.clone(),
            callbacks.clone(),
            ended.clone(),
        );
        let inbound = Inbound::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            Composer::new(
                store.clone(),
                routing.catalogues().clone(),
                opt_outs.clone(),
                settings.words.clone(),
            ),
            settings.incomplete_after,
        );
        let dispatch = Dispatch::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            routing.clone(),
            callbacks.clone(),
            ended.clone(),
            settings.held,
        );
        let maintenance = Maintenance::start(
            store.clone(),
            clock.clone(),
            node.clone(),
            callbacks.clone(),
            ended,
            Retention {
                messages: settings.keep_messages,
                texts: settings.keep_texts,
                ledger: settings.fold_ledger_after,
            },
        );
        let gauges = Arc::new(Gauges {
            store: store.clone(),
            clock: clock.clone(),
            machine: outside.machine.clone(),
            by_account: settings.metrics_by_account,
        });
        let monitoring = supervise::spawn("monitoring", move || gauges.clone().run());
        let targets: Arc<[NotifyTarget]> = settings.notify.clone().into();
        let watch = Arc::new(AlertWatch {
            store: store.clone(),
            clock: clock.clone(),
            machine: outside.machine,
            host: settings.node_info.host.clone(),
            targets: targets.clone(),
        });
        let watching = supervise::spawn("alerts", move || watch.clone().run());
        let deliverer = Deliverer::new(
            store.clone(),
            clock.clone(),
            outside.notifications,
            outside.mailer,
            targets,
        );
        let notifying = supervise::spawn("notifications", move || deliverer.clone().run());
        Self {
            monitoring: [monitoring, watching, notifying].map(|task| task.abort_handle()),
            dispatch,
            receipts,
            inbound,
            callbacks,
            maintenance,
        }
    }

    pub(crate) async fn stop(&self) {
        for task in &self.monitoring {
            task.abort();
        }
        self.maintenance.stop();
        self.dispatch.stop().await;
        self.receipts.stop().await;
        self.inbound.stop().await;
        self.callbacks.stop().await;
    }
}
