//! Sending: from the lanes to a carrier, and the result into the store.
//!
//! One path for everything: what was accepted a moment ago, what was scheduled, what is tried again and what a dead
//! node left behind all pass the same lanes. The scan of the database is the truth; the hand-over at acceptance only
//! saves its delay.
//!
//! Each carrier has a queue of its own, with its lanes and its window, so that one that is slow or down holds up nobody
//! else's messages. A parcel waits in the queue of the first carrier of its route that works; a carrier that cannot take
//! it sends it on to the next.

mod binds;
mod placing;
mod reconcile;
mod replan;
mod results;
mod watch;

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use domain::delivery::backoff::send_pause;
use domain::delivery::{Parcel, Sent, Submitted};
use domain::kill_point::{KillPoint, pass};
use domain::message::Submission;
use domain::ports::{Carrier, StoreError, WorkStore};
use domain::{Clock, Code, MessageId, Outcome, PoolId, TestMode, Timestamp};
use jiff::SignedDuration;
use tokio::task::{AbortHandle, JoinHandle, unconstrained};

use crate::callbacks::Callbacks;
use crate::cluster::held::{HeldRows, OpenWrite};
use crate::cluster::node::Node;
use crate::entropy;
use crate::sending::carriers::lanes::{Admission, LANES};
use crate::sending::carriers::parcels::{HeldParcel, parcels};
use crate::sending::carriers::pools::Pools;
use crate::sending::carriers::queue::{CarrierQueue, LOOK_EVERY, Waiting};
use crate::sending::carriers::{Carriers, Kept, Routed, Wanted};
use crate::sending::routing::{Plan, Routing};
use binds::Binds;
use placing::pooled;
use reconcile::Reconcile;
use replan::Replan;
use results::{Results, answered, expired, over};

/// The fewest slots of a lane, however many carriers share the memory.
const FEWEST_SLOTS: usize = 4;

/// A carrier with the word that configuration has for its kind.
pub struct CarrierHandle {
    /// The carrier.
    pub carrier: Arc<dyn Carrier>,
    /// Its kind.
    pub kind: String,
}

/// Sends what is due.
pub struct Dispatch {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    routing: Arc<Routing>,
    results: Results,
    /// The messages that this node holds.
    rows: Arc<HeldRows<MessageId>>,
    reconcile: Reconcile,
    /// Messages that may wait in memory, over all carriers.
    held: usize,
    /// The loop of each queue, by its carrier's name.
    sending: Mutex<HashMap<String, JoinHandle<()>>>,
    watching: std::sync::OnceLock<[AbortHandle; 4]>,
    binds: Binds,
    pools: Pools,
    replan: Replan,
}

/// Room that is reserved for the messages of a submission, one for each recipient, with their routes.
pub(crate) struct Reservations(Vec<(Routed, Kept)>);

impl Dispatch {
    /// Starts sending, as soon as there are carriers. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        routing: Arc<Routing>,
        callbacks: Arc<Callbacks>,
        held: usize,
    ) -> Arc<Self> {
        let dispatch = Arc::new(Self {
            results: Results::start(store.clone(), clock.clone(), callbacks, held),
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
            dispatch.supervise("dispatch-note", Self::note_all),
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

    /// Goes over to another plan and to its carriers, in its order. One that was there before goes on as it is; one that
    /// is not there any more gets nothing new, and stops when what is with it is settled.
    pub(crate) async fn equip(
        self: &Arc<Self>,
        plan: Plan,
        handles: Vec<CarrierHandle>,
    ) -> Result<(), StoreError> {
        let before = self.routing.carriers();
        let capacity = (self.held / LANES / handles.len().max(1)).max(FEWEST_SLOTS);
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
        // Before they are out of service, so that their links are counted at every moment.
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
            let kept = queue.clone();
            let task = self.supervise("dispatch-send", move |dispatch| {
                dispatch.send_all(kept.clone())
            });
            sending.insert(queue.carrier.name().to_owned(), task);
        }
        drop(sending);
        self.replan.note(carriers.all_names(), rules);
        self.binds.hurry();
        Ok(())
    }

    /// Takes a queue out of service: what waits in it goes elsewhere.
    fn retire(self: &Arc<Self>, queue: Arc<CarrierQueue>) {
        let name = queue.carrier.name().to_owned();
        let sending = self.sending.lock().expect("no holder panics").remove(&name);
        for waiting in queue.lanes.close() {
            self.move_on(waiting.parcel);
        }
        let dispatch = self.clone();
        tokio::spawn(async move {
            // It ends by itself, for it may hold a parcel that waits for room in the window: that one is still sent.
            if let Some(sending) = sending
                && let Err(error) = sending.await
            {
                tracing::error!(carrier = name, %error, "sending ended badly");
            }
            queue.drained().await;
            queue.carrier.stop().await;
            dispatch.binds.retired(&queue);
            tracing::info!(carrier = name, "this carrier is out of service");
        });
    }

    /// Takes a stored submission over.
    pub(crate) fn hand_over(self: &Arc<Self>, reserved: Reservations, submission: &Submission) {
        for (held, (routed, kept)) in parcels(submission).zip(reserved.0) {
            let parcel = HeldParcel::register(&self.rows, held);
            self.fill_or_store(kept, Waiting::new(parcel, routed));
        }
    }

    /// Begins a write that may store submissions as held by this node. Open until this is dropped.
    pub(crate) fn open_write(&self) -> OpenWrite<MessageId> {
        self.rows.open()
    }

    /// A write failed, so rows may be this node's without its knowing: compares soon.
    pub(crate) fn write_failed(&self) {
        self.reconcile.hurry();
    }

    /// Stops taking work; what is with the carriers is settled before this returns.
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

    /// Sends what waits for a carrier, as long as it works, until it is out of service.
    async fn send_all(self: Arc<Self>, queue: Arc<CarrierQueue>) {
        loop {
            while queue.is_down() && !queue.lanes.is_closed() {
                self.relieve(&queue);
                tokio::time::sleep(LOOK_EVERY).await;
            }
            let Some((waiting, place)) = queue.next().await else {
                return;
            };
            let (dispatch, queue) = (self.clone(), queue.clone());
            begin(async move {
                // What is not this node's any more is sent by somebody else.
                if dispatch.node.owns(&waiting.parcel).await {
                    dispatch.try_once(&queue, waiting).await;
                }
                // Only now: an answer that is not stored yet still counts as being with the carrier.
                drop(place);
            })
            .await;
        }
    }

    /// Takes from a carrier that is down what another can have.
    fn relieve(self: &Arc<Self>, queue: &CarrierQueue) {
        for waiting in queue.lanes.take_out(Waiting::can_go) {
            self.move_on(waiting.parcel);
        }
    }

    /// Ends what waits in memory and has no time left, whatever its carrier does.
    fn expire_waiting(self: &Arc<Self>) {
        let now = self.clock.now();
        for queue in &self.routing.carriers().queues {
            for waiting in queue.lanes.take_expired(now) {
                let sent = expired(&waiting.parcel.it);
                self.settle_later(waiting.parcel, sent);
            }
        }
    }

    async fn try_once(self: &Arc<Self>, queue: &CarrierQueue, waiting: Waiting) {
        let parcel = &waiting.parcel.it;
        let sent = match parcel.test_mode {
            _ if parcel.expires_at <= self.clock.now() => expired(parcel),
            Some(TestMode::Deliver) => Sent::Over(Outcome::Delivered),
            Some(TestMode::Fail) => Sent::Over(Outcome::Failed(Code::ABSENT)),
            None if waiting.route.is_empty() => return self.send_on(waiting, Code::NO_ROUTE, true),
            None => {
                pass(KillPoint::SubmitBegins);
                let submitted = queue.carrier.submit(parcel).await;
                pass(KillPoint::SubmitAnswered);
                queue.count(&submitted);
                match submitted {
                    Submitted::Taken(references) => Sent::Taken {
                        carrier: queue.carrier.name().to_owned(),
                        references,
                    },
                    Submitted::PartlyTaken { references, code } => Sent::PartlyTaken {
                        carrier: queue.carrier.name().to_owned(),
                        references,
                        outcome: Outcome::Failed(code),
                    },
                    // Another carrier would send it twice as well.
                    Submitted::Unknown => Sent::Unknown(self.next_try(parcel)),
                    Submitted::Answered(subscriber) => answered(parcel, &subscriber),
                    Submitted::Refused(code) => over(parcel, code),
                    Submitted::Declined(code) => return self.send_on(waiting, code, false),
                    Submitted::NotNow(code) => return self.send_on(waiting, code, true),
                }
            }
        };
        self.results.store(&waiting.parcel, sent).await;
    }

    /// When a message whose outcome is unknown is tried again.
    fn next_try(&self, parcel: &Parcel) -> Timestamp {
        metrics::counter!("switchboard_send_retries_total").increment(1);
        let pause = send_pause(parcel.unknown_tries + 1, dice());
        (self.clock.now() + pause).min(parcel.expires_at)
    }

    /// Sends what a carrier could not take on to the next of its route; after the last it waits for another try, or, when
    /// none would take it later either, is over.
    fn send_on(self: &Arc<Self>, mut waiting: Waiting, code: Code, may_work_later: bool) {
        waiting.may_work_later |= may_work_later;
        let (carriers, next) = (waiting.carriers.clone(), waiting.position + 1);
        let parcel = &waiting.parcel.it;
        // The link is another node's now, and so is the message.
        if may_work_later && let Some(pool) = carriers.way_out(&waiting.route, waiting.position) {
            return self.hand_on(waiting.parcel, pool);
        }
        let wanted = Wanted {
            account: parcel.account,
            priority: parcel.priority,
            admission: Admission::Any,
        };
        if let Some(kept) = carriers.reserve(&waiting.route, next, wanted) {
            return self.fill_or_store(kept, waiting);
        }
        let skipped = waiting.route.len() > next;
        if waiting.may_work_later || skipped {
            tracing::debug!(%code, "a message is tried again later");
            metrics::counter!("switchboard_send_retries_total").increment(1);
            let pause = send_pause(parcel.tries.saturating_add(1), dice());
            let again = self.clock.now() + pause;
            let sent = Sent::Retry(again.min(parcel.expires_at));
            self.settle_later(waiting.parcel, sent);
        } else {
            let sent = over(parcel, code);
            self.settle_later(waiting.parcel, sent);
        }
    }

    /// Puts a parcel into its slot, or says what is to be stored instead.
    fn fill(self: &Arc<Self>, kept: Kept, mut waiting: Waiting) -> Option<(HeldParcel, Sent)> {
        let (position, slot) = match kept {
            Kept::Here(position, slot) => (position, slot),
            Kept::Elsewhere(pool) => {
                metrics::counter!("switchboard_messages_handed_on_total").increment(1);
                let sent = pooled(&waiting.parcel, pool);
                return Some((waiting.parcel, sent));
            }
        };
        waiting.position = position;
        // A carrier that goes out of service at this very moment: whoever looks next finds another.
        let waiting = slot.fill(waiting).err()?;
        Some((waiting.parcel, Sent::Later(self.clock.now())))
    }

    fn fill_or_store(self: &Arc<Self>, kept: Kept, waiting: Waiting) {
        if let Some((parcel, sent)) = self.fill(kept, waiting) {
            self.settle_later(parcel, sent);
        }
    }

    /// Leaves a parcel to the nodes that have a link to the carrier of a pool.
    fn hand_on(self: &Arc<Self>, parcel: HeldParcel, pool: PoolId) {
        metrics::counter!("switchboard_messages_handed_on_total").increment(1);
        let sent = pooled(&parcel, pool);
        self.settle_later(parcel, sent);
    }

    /// Gives a parcel back to the store, to be tried after a pause, but before its time is over.
    fn put_back(self: &Arc<Self>, parcel: HeldParcel, pause: SignedDuration) {
        let again = self.clock.now() + pause;
        let sent = Sent::Later(again.min(parcel.it.expires_at));
        self.settle_later(parcel, sent);
    }

    fn settle_later(self: &Arc<Self>, parcel: HeldParcel, sent: Sent) {
        let dispatch = self.clone();
        tokio::spawn(async move {
            dispatch.results.store(&parcel, sent).await;
        });
    }
}

/// Begins a future here and leaves the rest of it to a task. Tasks start in any order; what is begun here asks the carrier
/// for its turn before the next one does, so messages leave in the order of their lane.
async fn begin(future: impl Future<Output = ()> + Send + 'static) {
    let mut future = Box::pin(future);
    let begun = poll_fn(|context| {
        // Without tokio's budget: once that is used up nothing is ready, and the next message would begin first.
        let mut unlimited = unconstrained(&mut future);
        let begin = AssertUnwindSafe(|| Pin::new(&mut unlimited).poll(context));
        Poll::Ready(catch_unwind(begin))
    });
    // A panic ends it, as it ends a task, and not the loop.
    if let Ok(Poll::Pending) = begun.await {
        tokio::spawn(future);
    }
}

fn dice() -> u32 {
    u32::from_le_bytes(entropy::bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn what_is_begun_queues_up_in_order() {
        const MANY: usize = 2000;
        let (turn, order) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::default());
        let order: Arc<Mutex<Vec<usize>>> = order;
        let (done, mut all_done) = tokio::sync::mpsc::channel::<()>(1);
        for number in 0..MANY {
            let (turn, order, done) = (turn.clone(), order.clone(), done.clone());
            begin(async move {
                let mine = turn.acquire().await.expect("never closed");
                order.lock().expect("no holder panics").push(number);
                drop(mine);
                drop(done);
            })
            .await;
        }
        drop(done);
        turn.add_permits(1);
        assert_eq!(all_done.recv().await, None);
        let order = order.lock().expect("no holder panics");
        assert_eq!(*order, (0..MANY).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_panic_at_the_beginning_ends_only_what_panics() {
        let kept = Arc::new(());
        let held = kept.clone();
        begin(async move { std::panic::resume_unwind(Box::new(held)) }).await;
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
