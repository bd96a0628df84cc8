//! Dispatch: takes messages from the lanes to a carrier, and stores the results.
//!
//! There is one path for all messages: new ones, scheduled ones, retries and those of a dead node pass the same lanes.
//! The scan of the database finds all of them; the hand-over at acceptance only saves its delay.
//!
//! Each carrier has its own queue, with lanes and a window, so that a slow or dead carrier does not delay the messages
//! of others. A message waits in the queue of the first carrier of its route that works; if that cannot take it, it
//! goes to the next.

mod binds;
mod enqueue;
mod in_order;
mod reconcile;
mod replan;
mod results;
mod unanswered;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use domain::delivery::backoff::send_pause;
use domain::delivery::{CarrierAnswer, QueuedMessage, SendResult};
use domain::kill_point::{KillPoint, pass};
use domain::message::Submission;
use domain::message::lookup::Subscriber;
use domain::ports::{Carrier, StoreError, WorkStore};
use domain::{Clock, Code, MessageId, Outcome, PoolId, TestMode, Timestamp};
use jiff::SignedDuration;
use tokio::task::{AbortHandle, JoinHandle};

use crate::callbacks::Callbacks;
use crate::cluster::held::{HeldRows, OpenWrite};
use crate::cluster::node::Node;
use crate::entropy;
use crate::monitoring::ended::EndedCounters;
use crate::ported::Source;
use crate::sending::carriers::held_messages::{HeldMessage, held_messages};
use crate::sending::carriers::lanes::{Admission, LANES};
use crate::sending::carriers::pools::Pools;
use crate::sending::carriers::queue::{CHECK_EVERY, CarrierQueue, RoutedMessage};
use crate::sending::carriers::{Carriers, Reserved, Routed, SlotRequest};
use crate::sending::routing::{Plan, Routing};
use binds::Binds;
use enqueue::pooled;
use in_order::start_in_order;
use reconcile::Reconcile;
use replan::Replan;
use results::{Results, answered, expired, over};
use unanswered::as_taken;

/// Minimum number of slots of a lane, however many carriers share the memory.
const MIN_SLOTS: usize = 4;

/// A carrier and its kind in the configuration.
pub struct CarrierHandle {
    pub carrier: Arc<dyn Carrier>,
    pub kind: String,
}

/// Sends due messages.
pub struct Dispatch {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    routing: Arc<Routing>,
    results: Results,
    /// The messages that this node holds.
    rows: Arc<HeldRows<MessageId>>,
    reconcile: Reconcile,
    /// How many messages may wait in memory, for all carriers together.
    held: usize,
    /// The loop of each carrier queue, by the carrier's name.
    sending: Mutex<HashMap<String, JoinHandle<()>>>,
    watching: std::sync::OnceLock<[AbortHandle; 4]>,
    binds: Binds,
    pools: Pools,
    replan: Replan,
}

/// Reserved slots for the messages of a submission, one for each recipient, with their routes.
pub(crate) struct Reservations(Vec<(Routed, Reserved)>);

impl Dispatch {
    /// Starts sending, as soon as there are carriers. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        routing: Arc<Routing>,
        callbacks: Arc<Callbacks>,
        ended: Arc<EndedCounters>,
        held: usize,
    ) -> Arc<Self> {
        let dispatch = Arc::new(Self {
            results: Results::start(store.clone(), clock.clone(), callbacks, ended, held),
            rows: HeldRows::new(),
            reconcile: Reconcile::default(),
            sending: Mutex::default(),
            watching: std::sync::OnceLock::new(),
            binds: Binds::default(),
            pools: Pools::default(),
            replan: Replan::default(),
            store,
            clock,
            node,
            routing,
            held,
        });
        let tasks = [
            dispatch.supervise("dispatch-scan", Self::scan_all),
            dispatch.supervise("dispatch-note", Self::report_all),
            dispatch.supervise("dispatch-share", Self::share_all),
            dispatch.supervise("dispatch-reconcile", Self::reconcile_all),
        ];
        dispatch
            .watching
            .get_or_init(|| tasks.map(|task| task.abort_handle()));
        dispatch
    }

    fn supervise<F>(
        self: &Arc<Self>,
        task: &'static str,
        run: impl Fn(Arc<Self>) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let dispatch = self.clone();
        supervise::spawn(task, move || run(dispatch.clone()))
    }

    /// Puts a plan and its carriers in force. Carriers that were there before are not touched. Carriers that are gone
    /// get no new messages and stop once their results are stored.
    pub(crate) async fn equip(
        self: &Arc<Self>,
        plan: Plan,
        handles: Vec<CarrierHandle>,
    ) -> Result<(), StoreError> {
        let before = self.routing.carriers();
        let capacity = (self.held / LANES / handles.len().max(1)).max(MIN_SLOTS);
        let rules = format!("{:?}", plan.rules);
        let queues = handles.into_iter().map(|CarrierHandle { carrier, kind }| {
            let same = before
                .queues
                .iter()
                .find(|queue| Arc::ptr_eq(&queue.carrier, &carrier));
            let queue = same
                .cloned()
                .unwrap_or_else(|| CarrierQueue::new(carrier, kind, capacity));
            queue.lanes.resize(capacity);
            queue
        });
        let carriers = Arc::new(Carriers {
            queues: queues.collect(),
        });
        let gone = before.queues.iter().filter(|queue| !carriers.has(queue));
        let gone: Vec<_> = gone.cloned().collect();
        // Before they go out of service, so that their links are counted all the time.
        self.binds.retiring(gone.iter().cloned());
        if let Err(error) = self.routing.set(plan, carriers.clone()).await {
            for queue in &gone {
                self.binds.retired(queue);
            }
            return Err(error);
        }
        for queue in gone {
            self.retire(queue);
        }
        let mut sending = self.sending.lock().expect("no holder panics");
        for queue in carriers.queues.iter().filter(|queue| !before.has(queue)) {
            let its_queue = queue.clone();
            let task = self.supervise("dispatch-send", move |dispatch| {
                dispatch.send_all(its_queue.clone())
            });
            sending.insert(queue.carrier.name().to_owned(), task);
        }
        drop(sending);
        self.replan.set_plan(carriers.all_names(), rules);
        self.binds.run_soon();
        Ok(())
    }

    /// Takes a carrier out of service and reroutes its waiting messages.
    fn retire(self: &Arc<Self>, queue: Arc<CarrierQueue>) {
        let name = queue.carrier.name().to_owned();
        let sending = self.sending.lock().expect("no holder panics").remove(&name);
        for message in queue.lanes.close() {
            self.reroute(message.held);
        }
        let dispatch = self.clone();
        tokio::spawn(async move {
            // The loop ends by itself: it may hold a message that waits for window permits, which is still sent.
            if let Some(sending) = sending
                && let Err(error) = sending.await
            {
                tracing::error!(carrier = name, %error, "the sending loop failed");
            }
            queue.drained().await;
            queue.carrier.stop().await;
            dispatch.binds.retired(&queue);
            tracing::info!(carrier = name, "this carrier is out of service");
        });
    }

    /// Queues the messages of a submission that was just stored.
    pub(crate) fn hand_over(self: &Arc<Self>, reservations: Reservations, submission: &Submission) {
        for (message, (routed, reserved)) in held_messages(submission).zip(reservations.0) {
            let held = HeldMessage::register(&self.rows, message);
            self.fill_or_store(reserved, RoutedMessage::new(held, routed));
        }
    }

    /// Begins a write that may store messages as held by this node. It ends when the result is dropped.
    pub(crate) fn open_write(&self) -> OpenWrite<MessageId> {
        self.rows.open()
    }

    /// Call this after a failed write: this node may hold messages without knowing, so a comparison follows soon.
    pub(crate) fn write_failed(&self) {
        self.reconcile.run_soon();
    }

    /// Stops sending and returns once the results of all messages that carriers got are stored.
    pub(crate) async fn stop(&self) {
        for task in self.watching.get().into_iter().flatten() {
            task.abort();
        }
        for task in self.sending.lock().expect("no holder panics").values() {
            task.abort();
        }
        let carriers = self.routing.carriers();
        for queue in &carriers.queues {
            queue.drained().await;
        }
        for queue in &carriers.queues {
            queue.carrier.stop().await;
        }
        self.results.stop().await;
    }

    /// Sends waiting messages while the carrier works, until it is out of service.
    async fn send_all(self: Arc<Self>, queue: Arc<CarrierQueue>) {
        loop {
            while queue.is_down() && !queue.lanes.is_closed() {
                self.reroute_waiting(&queue);
                tokio::time::sleep(CHECK_EVERY).await;
            }
            let Some((message, permit)) = queue.next().await else {
                return;
            };
            let (dispatch, queue) = (self.clone(), queue.clone());
            start_in_order(async move {
                // If the claim is void, another node sends the message.
                if dispatch.node.owns(&message.held).await {
                    dispatch.attempt(&queue, message).await;
                }
                // Only now, because the carrier's window counts messages whose result is not stored yet.
                drop(permit);
            })
            .await;
        }
    }

    /// Reroutes the messages of a carrier that is down if another carrier can take them.
    fn reroute_waiting(self: &Arc<Self>, queue: &CarrierQueue) {
        for message in queue.lanes.take_out(RoutedMessage::can_go) {
            self.reroute(message.held);
        }
    }

    /// Ends expired messages in memory, in whatever state their carrier is.
    fn expire_waiting(self: &Arc<Self>) {
        let now = self.clock.now();
        for queue in &self.routing.carriers().queues {
            for message in queue.lanes.take_expired(now) {
                let sent = expired(&message.held.item);
                self.settle_later(message.held, sent);
            }
        }
    }

    async fn attempt(self: &Arc<Self>, queue: &CarrierQueue, message: RoutedMessage) {
        let queued = &message.held.item;
        let refused = || self.routing.refusals().find(queued);
        let reported = self.reported(queued).await;
        let sent = match queued.test_mode {
            _ if let Some(taken) = reported => taken,
            _ if queued.expires_at <= self.clock.now() => expired(queued),
            Some(TestMode::Deliver) => SendResult::Over(Outcome::Delivered),
            Some(TestMode::Fail) => SendResult::Over(Outcome::Failed(Code::ABSENT)),
            None if let Some(code) = refused() => {
                let sent = as_taken(queued).unwrap_or_else(|| over(queued, code));
                return self.settle_later(message.held, sent);
            }
            None if message.route.is_empty() => {
                return self.try_next_carrier(message, Code::NO_ROUTE, true);
            }
            None => {
                pass(KillPoint::SubmitBegins);
                let submitted = queue.carrier.submit(queued).await;
                pass(KillPoint::SubmitAnswered);
                queue.count(&submitted);
                match submitted {
                    CarrierAnswer::Taken(references) => SendResult::Taken {
                        carrier: queue.carrier.name().to_owned(),
                        references,
                    },
                    CarrierAnswer::PartlyTaken { references, code } => SendResult::PartlyTaken {
                        carrier: queue.carrier.name().to_owned(),
                        references,
                        outcome: Outcome::Failed(code),
                    },
                    // The carrier may have it, so another carrier could send it a second time.
                    CarrierAnswer::Unknown => SendResult::Unknown {
                        carrier: queue.carrier.name().to_owned(),
                        again: self.retry_time(queued),
                    },
                    // That says nothing about the earlier attempts.
                    CarrierAnswer::Refused(_) | CarrierAnswer::Declined(_)
                        if let Some(taken) = as_taken(queued) =>
                    {
                        taken
                    }
                    CarrierAnswer::Answered(subscriber) => {
                        self.learn(queued, &subscriber);
                        answered(queued, queue.carrier.name(), &subscriber)
                    }
                    CarrierAnswer::Refused(code) => over(queued, code),
                    CarrierAnswer::Declined(code) => {
                        return self.try_next_carrier(message, code, false);
                    }
                    CarrierAnswer::NotNow(code) => {
                        return self.try_next_carrier(message, code, true);
                    }
                }
            }
        };
        // A message in test mode is not given to the carrier.
        let carrier = queued.test_mode.is_none().then(|| queue.carrier.name());
        let cost = results::cost(&self.routing, queued, &sent);
        self.results.store(&message.held, sent, carrier, cost).await;
    }

    /// Remembers the network that a lookup found, before its result is known to anybody.
    fn learn(&self, queued: &QueuedMessage, found: &Subscriber) {
        let Some(network) = found.network else {
            return;
        };
        let (live, now) = (self.routing.catalogues().live(), self.clock.now());
        let ported = self.routing.ported();
        ported.learn(&live.reference, &queued.to, network, Source::Lookup, now);
    }

    /// When a message with an unknown outcome is sent again.
    fn retry_time(&self, queued: &QueuedMessage) -> Timestamp {
        metrics::counter!("switchboard_send_retries_total").increment(1);
        let pause = send_pause(queued.unknown_tries + 1, random());
        (self.clock.now() + pause).min(queued.expires_at)
    }

    /// Passes a message that a carrier could not take to the next one of its route. After the last one it is retried
    /// later, or ends if no carrier would take it later either.
    fn try_next_carrier(
        self: &Arc<Self>,
        mut message: RoutedMessage,
        code: Code,
        may_work_later: bool,
    ) {
        message.may_work_later |= may_work_later;
        let (carriers, next) = (message.carriers.clone(), message.position + 1);
        let queued = &message.held.item;
        // Another node has the link now, so the message goes there.
        if may_work_later
            && let Some(pool) = carriers.pool_elsewhere(&message.route, message.position)
        {
            return self.move_to_pool(message.held, pool);
        }
        let request = SlotRequest {
            account: queued.account,
            priority: queued.priority,
            admission: Admission::Any,
        };
        if let Some(reserved) = carriers.reserve(&message.route, next, request) {
            return self.fill_or_store(reserved, message);
        }
        let skipped = message.route.len() > next;
        if message.may_work_later || skipped {
            let trace_id = queued
                .trace
                .map(|trace| tracing::field::display(trace.trace_id()));
            tracing::debug!(message_id = %queued.id, trace_id, %code, "a message is tried again later");
            metrics::counter!("switchboard_send_retries_total").increment(1);
            let pause = send_pause(queued.tries.saturating_add(1), random());
            let again = self.clock.now() + pause;
            let sent = SendResult::Retry(again.min(queued.expires_at));
            self.settle_later(message.held, sent);
        } else {
            let sent = over(queued, code);
            let carrier = message.route.get(message.position);
            let carrier = carrier.map(|queue| carriers.queues[usize::from(*queue)].clone());
            self.settle_later_by(message.held, sent, carrier);
        }
    }

    /// Puts a message into its slot, or returns it with what to store instead.
    fn fill(
        self: &Arc<Self>,
        reserved: Reserved,
        mut message: RoutedMessage,
    ) -> Option<(HeldMessage, SendResult)> {
        let (position, slot) = match reserved {
            Reserved::Slot(position, slot) => (position, slot),
            Reserved::Pool(pool) => {
                metrics::counter!("switchboard_messages_handed_on_total").increment(1);
                let sent = pooled(&message.held, pool);
                return Some((message.held, sent));
            }
        };
        message.position = position;
        // The carrier is just going out of service, so the message returns to the store and is routed again.
        let message = slot.fill(message).err()?;
        Some((message.held, SendResult::Later(self.clock.now())))
    }

    fn fill_or_store(self: &Arc<Self>, reserved: Reserved, message: RoutedMessage) {
        if let Some((held, sent)) = self.fill(reserved, message) {
            self.settle_later(held, sent);
        }
    }

    /// Leaves a message to the nodes that have a link to the pool's carrier.
    fn move_to_pool(self: &Arc<Self>, held: HeldMessage, pool: PoolId) {
        metrics::counter!("switchboard_messages_handed_on_total").increment(1);
        let sent = pooled(&held, pool);
        self.settle_later(held, sent);
    }

    /// Returns a message to the store, to be claimed again after a pause but before it expires.
    fn requeue(self: &Arc<Self>, held: HeldMessage, pause: SignedDuration) {
        let again = self.clock.now() + pause;
        let sent = SendResult::Later(again.min(held.item.expires_at));
        self.settle_later(held, sent);
    }

    fn settle_later(self: &Arc<Self>, held: HeldMessage, sent: SendResult) {
        self.settle_later_by(held, sent, None);
    }

    /// Like [`Self::settle_later`], with the carrier that decided.
    fn settle_later_by(
        self: &Arc<Self>,
        held: HeldMessage,
        sent: SendResult,
        carrier: Option<Arc<CarrierQueue>>,
    ) {
        let dispatch = self.clone();
        tokio::spawn(async move {
            let carrier = carrier.as_ref().map(|queue| queue.carrier.name());
            dispatch.results.store(&held, sent, carrier, None).await;
        });
    }
}

fn random() -> u32 {
    u32::from_le_bytes(entropy::bytes())
}
