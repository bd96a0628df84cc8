//! Callbacks on their way to the callers, one queue for each receiver.
//!
//! A receiver that is slow or dead delays nobody else: it has its own queue, its own share of memory and of the tries
//! under way, and after repeated failures it is paused. What finds no room in memory waits in the receiver's queue in the
//! database, where it costs nothing until there is room.

mod claims;
mod compare;
pub mod history;
mod limit;
mod receivers;
mod slots;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use domain::delivery::backoff::callback_pause;
use domain::delivery::{Callback, CallbackNext, CallbackSettlement, Delivery};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{CallbackSender, Ended, SigningSecrets, StoreError, WorkStore};
use domain::{AccountId, CallbackId, Clock, NodeId, Origin, ReceiverId, Timestamp};
use jiff::SignedDuration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::batcher::{BatchError, Batcher, Limits};
use crate::cluster::held::{HeldRow, HeldRows, OpenWrite};
use crate::cluster::node::{Held, Node};
use crate::entropy;
use limit::Answer;
pub use receivers::PausedReceiver;
use receivers::{Address, Receivers, Source, Try};
use slots::{HELD, Slot, Slots};

/// Tries under way at once, unless the settings say fewer.
pub const MOST_TRIES: usize = 2_048;
/// Tries that may be under way or waiting to be stored: more than there can ever be, so that only the end waits.
const UNDER_WAY: u32 = 1 << 20;
/// The most results that one transaction stores.
const BATCH: usize = 512;
/// How long to wait before a result that could not be stored is stored again.
const STORE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a secret is remembered.
const SECRETS_FOR: SignedDuration = SignedDuration::from_secs(60);

/// Delivers callbacks.
pub struct Callbacks {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    sender: Arc<dyn CallbackSender>,
    receivers: Arc<Mutex<Receivers<Job>>>,
    slots: Arc<Slots>,
    rows: Arc<HeldRows<CallbackId>>,
    secrets: Mutex<Secrets>,
    settle: Batcher<Held<CallbackSettlement>, bool, StoreError>,
    park_after: Option<SignedDuration>,
    /// A write failed: what it may have left is looked for soon.
    write_failed: Notify,
    /// Each try has a place until its result is stored; the end takes them all.
    under_way: Arc<Semaphore>,
    tasks: OnceLock<[AbortHandle; 2]>,
}

/// What [`Callbacks`] works by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallbackSettings {
    /// Callbacks that keep failing for this long are parked.
    pub(crate) park_after: Option<SignedDuration>,
    /// Tries under way at once.
    pub(crate) most_tries: usize,
}

#[derive(Default)]
struct Secrets {
    known: HashMap<AccountId, Option<Arc<SigningSecrets>>>,
    since: Timestamp,
}

/// A callback in memory. While this exists it has a slot and is registered as held.
struct Job {
    held: Held<Callback>,
    receiver: ReceiverId,
    slot: Slot,
    _row: HeldRow<CallbackId>,
}

/// Slots for the callbacks that a write may make this node the holder of. Exists from before the write until its callbacks
/// are registered.
pub(crate) struct Room {
    slots: slots::Room,
    _write: OpenWrite<CallbackId>,
}

/// The place of a try under way, freed also by a panic.
struct Permit {
    receivers: Arc<Mutex<Receivers<Job>>>,
    running: Option<Try>,
}

impl Permit {
    /// Notes how the try went. Returns what belongs into the database now.
    fn finish(mut self, answer: Answer, now: Timestamp) -> Vec<Job> {
        let Some(running) = self.running.take() else {
            return Vec::new();
        };
        lock(&self.receivers).finish(&running, answer, now)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            lock(&self.receivers).abandon(&running);
        }
    }
}

/// A panic elsewhere leaves the queues usable.
fn lock(receivers: &Mutex<Receivers<Job>>) -> MutexGuard<'_, Receivers<Job>> {
    receivers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callbacks {
    /// Starts delivering. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        sender: Arc<dyn CallbackSender>,
        settings: CallbackSettings,
    ) -> Arc<Self> {
        let limits = Limits {
            queue: 2 * HELD,
            batch: BATCH,
        };
        let settle = Batcher::start(limits, {
            let store = store.clone();
            move |batch| settle(store.clone(), batch)
        });
        let callbacks = Arc::new(Self {
            store,
            clock,
            node,
            sender,
            receivers: Arc::new(Mutex::new(Receivers::new(settings.most_tries))),
            slots: Arc::default(),
            rows: HeldRows::new(),
            secrets: Mutex::default(),
            settle,
            park_after: settings.park_after,
            write_failed: Notify::new(),
            under_way: Arc::new(Semaphore::new(UNDER_WAY as usize)),
            tasks: OnceLock::new(),
        });
        let kept = callbacks.clone();
        let claiming = supervise::spawn("callback-claims", move || kept.clone().claim_all());
        let kept = callbacks.clone();
        let comparing = supervise::spawn("callback-comparison", move || kept.clone().compare_all());
        let tasks = [claiming.abort_handle(), comparing.abort_handle()];
        callbacks.tasks.get_or_init(|| tasks);
        callbacks
    }

    /// The receivers that are paused at present.
    pub(crate) fn paused(&self) -> Vec<PausedReceiver> {
        lock(&self.receivers).paused(self.clock.now())
    }

    /// Keeps slots for so many callbacks, if there are, and begins a write that may make this node their holder.
    pub(crate) fn reserve(&self, count: usize) -> Option<Room> {
        let slots = self.slots.reserve(count)?;
        Some(Room {
            slots,
            _write: self.rows.open(),
        })
    }

    /// Takes over the callbacks that a write created.
    pub(crate) fn take<'a>(
        self: &Arc<Self>,
        by: NodeId,
        room: Option<Room>,
        ended: impl Iterator<Item = &'a Ended>,
    ) {
        let Some(mut room) = room else { return };
        let created = ended.filter_map(|ended| ended.callback.clone());
        let refused = self.add_all(by, &mut room, Source::Due, created);
        self.requeue(refused);
    }

    /// A write failed, and may yet be done: the database may come to say that this node holds callbacks that it does not.
    pub(crate) fn write_failed(&self) {
        self.write_failed.notify_one();
    }

    /// Stops: begins no try, and returns once those under way are stored, so that what a receiver took is not brought
    /// again. What was not tried is given back when the node leaves.
    pub(crate) async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        if let Ok(all) = self.under_way.acquire_many(UNDER_WAY).await {
            all.forget();
        }
        self.settle.stop().await;
    }

    /// Puts callbacks that this node holds into their receivers' queues. Returns those that belong into the database.
    fn add_all(
        self: &Arc<Self>,
        by: NodeId,
        room: &mut Room,
        source: Source,
        callbacks: impl Iterator<Item = Callback>,
    ) -> Vec<Job> {
        let mut refused = Vec::new();
        for it in callbacks {
            let origin = Origin::of(&it.url);
            let address = Address {
                receiver: ReceiverId::new(it.account, &origin),
                account: it.account,
                origin,
            };
            let job = Job {
                receiver: address.receiver,
                slot: room.slots.slot(),
                _row: self.rows.register(it.id, it.claim.attempt),
                held: Held { by, it },
            };
            let admit = |job: &mut Job, share| job.slot.admit(address.receiver, share);
            let now = self.clock.now();
            let added = lock(&self.receivers).add(&address, source, job, now, admit);
            match added {
                Ok(()) => self.start_tries(Some(&address.origin)),
                Err(job) => refused.push(job),
            }
        }
        refused
    }

    /// Starts as many tries as may be under way: of hosts that wait for their turn, and of this one.
    fn start_tries(self: &Arc<Self>, origin: Option<&Origin>) {
        loop {
            let Ok(place) = self.under_way.clone().try_acquire_owned() else {
                // The end: nothing more is tried.
                return;
            };
            let started = lock(&self.receivers).start(origin);
            let Some((job, running)) = started else {
                return;
            };
            let permit = Permit {
                receivers: self.receivers.clone(),
                running: Some(running),
            };
            tokio::spawn(self.clone().attempt_boxed(job, permit, place));
        }
    }

    /// A task that starts others of its own kind needs a type of known size.
    fn attempt_boxed(
        self: Arc<Self>,
        job: Job,
        permit: Permit,
        place: OwnedSemaphorePermit,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.attempt(job, permit, place))
    }

    /// Tries once to deliver a callback, and stores what came of it.
    async fn attempt(self: Arc<Self>, job: Job, permit: Permit, place: OwnedSemaphorePermit) {
        let origin = Origin::of(&job.held.it.url);
        if !self.node.owns(&job.held).await {
            // Another node delivers it.
            drop(permit);
            self.start_tries(Some(&origin));
            return;
        }
        let delivery = self.deliver(&job.held.it).await;
        let paused = permit.finish(answer(&delivery), self.clock.now());
        self.requeue(paused);
        self.start_tries(Some(&origin));
        self.store_result(self.result(&job.held, delivery)).await;
        drop((job, place));
    }

    async fn deliver(&self, callback: &Callback) -> Delivery {
        let secrets = self.secrets(callback.account).await;
        let now = self.clock.now();
        let secrets = secrets.as_ref().map(|secrets| secrets.at(now));
        pass(KillPoint::CallbackBegins);
        let delivery = self
            .sender
            .deliver(callback, &secrets.unwrap_or_default(), now)
            .await;
        if delivery.received {
            pass(KillPoint::CallbackReceived);
        }
        let outcome = if delivery.received {
            "received"
        } else {
            "failed"
        };
        metrics::counter!("switchboard_callback_tries_total", "outcome" => outcome).increment(1);
        delivery
    }

    /// What follows from a try.
    fn result(&self, held: &Held<Callback>, delivery: Delivery) -> Held<CallbackSettlement> {
        let callback = &held.it;
        let next = if delivery.received {
            CallbackNext::Done
        } else if self
            .park_after
            .is_some_and(|age| callback.created_at + age <= self.clock.now())
        {
            CallbackNext::Parked
        } else {
            let dice = u32::from_le_bytes(entropy::bytes());
            CallbackNext::Later(self.clock.now() + callback_pause(callback.tries + 1, dice))
        };
        let it = CallbackSettlement {
            id: callback.id,
            claim: callback.claim,
            attempt: Some(delivery.attempt),
            next,
        };
        Held { by: held.by, it }
    }

    /// Stores a result, however long that takes.
    async fn store_result(&self, settlement: Held<CallbackSettlement>) {
        loop {
            match self.settle.write(settlement.clone()).await {
                Ok(_) => return,
                Err(BatchError::Stopped) if self.settle.is_stopped() => return,
                Err(BatchError::Full | BatchError::Stopped | BatchError::Write(_)) => {
                    tokio::time::sleep(STORE_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Puts callbacks untried into their receivers' queues in the database. They keep their slots until that is stored.
    fn requeue(self: &Arc<Self>, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let store = self.store.clone();
        tokio::spawn(async move {
            for jobs in jobs.chunks(BATCH) {
                let batch: Vec<_> = jobs.iter().map(Job::requeued).collect();
                while let Err(error) = settle(store.clone(), batch.clone()).await {
                    tracing::warn!(%error, "callbacks cannot be put back into the queue; trying again");
                    tokio::time::sleep(STORE_AGAIN_AFTER).await;
                }
            }
        });
    }

    /// The account's secrets. Without one the try fails, says so, and is made again later.
    async fn secrets(&self, account: AccountId) -> Option<Arc<SigningSecrets>> {
        let now = self.clock.now();
        {
            let mut secrets = self.secrets.lock().expect("no holder panics");
            if secrets.since + SECRETS_FOR <= now {
                *secrets = Secrets {
                    known: HashMap::new(),
                    since: now,
                };
            }
            if let Some(known) = secrets.known.get(&account) {
                return known.clone();
            }
        }
        match self.store.find_signing_secrets(account).await {
            Ok(found) => {
                let found = found.map(Arc::new);
                self.secrets
                    .lock()
                    .expect("no holder panics")
                    .known
                    .insert(account, found.clone());
                found
            }
            Err(error) => {
                tracing::warn!(%error, "a report cannot be signed: the account's secret cannot be read");
                None
            }
        }
    }
}

impl Job {
    /// Back into its receiver's queue, untried.
    fn requeued(&self) -> Held<CallbackSettlement> {
        let it = CallbackSettlement {
            id: self.held.it.id,
            claim: self.held.it.claim,
            attempt: None,
            next: CallbackNext::Queued(self.receiver),
        };
        Held {
            by: self.held.by,
            it,
        }
    }
}

/// What a try says about the load of the host. A refusal, or an answer with the wrong body, is no sign of load.
fn answer(delivery: &Delivery) -> Answer {
    let attempt = &delivery.attempt;
    if delivery.received {
        return Answer::Received {
            elapsed_ms: attempt.elapsed_ms,
        };
    }
    match attempt.status {
        None | Some(429 | 500..) => Answer::Overloaded,
        Some(_) => Answer::Refused,
    }
}

async fn settle(
    store: Arc<dyn WorkStore>,
    batch: Vec<Held<CallbackSettlement>>,
) -> Result<Vec<bool>, StoreError> {
    let mut settled = Vec::with_capacity(batch.len());
    // All of a batch is held by one node, unless this one has just had to start anew.
    for group in batch.chunk_by(|a, b| a.by == b.by) {
        let results = Arc::new(group.iter().map(|held| held.it.clone()).collect());
        settled.extend(store.settle_callbacks(group[0].by, results).await?);
        pass(KillPoint::CallbackSettled);
    }
    Ok(settled)
}
