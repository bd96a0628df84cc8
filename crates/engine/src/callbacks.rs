//! Sends callbacks, with one queue for each receiver.
//!
//! A slow or dead receiver delays no other: each has its own queue and its own share of memory and of concurrent
//! attempts, and is paused after repeated failures. Callbacks beyond that share wait in the receiver's queue in the
//! database, at no cost, until there is capacity.

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
use receivers::{Address, Attempt, Receivers, Source};
use slots::{MAX_HELD, Slot, SlotReservation, Slots};

/// Maximum number of concurrent attempts; the settings may set a lower one.
pub const MOST_TRIES: usize = 2_048;
/// More attempts than can ever be in flight or waiting to be stored, so that only stopping waits for permits.
const MAX_IN_FLIGHT: u32 = 1 << 20;
/// Maximum number of results in one transaction.
const BATCH: usize = 1024;
/// No caller waits for these writes. If a node dies before a write, its callbacks are sent again.
const WRITE_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait before storing a result again.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long signing secrets are cached.
const SECRETS_CACHED_FOR: SignedDuration = SignedDuration::from_secs(60);

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
    /// A write failed: soon, the database is searched for callbacks that it may have left.
    write_failed: Notify,
    /// Each attempt holds a permit until its result is stored. Stopping takes all of them.
    in_flight: Arc<Semaphore>,
    tasks: OnceLock<[AbortHandle; 2]>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallbackSettings {
    /// Callbacks that keep failing for this long are parked.
    pub(crate) park_after: Option<SignedDuration>,
    /// Maximum number of concurrent attempts.
    pub(crate) most_tries: usize,
}

#[derive(Default)]
struct Secrets {
    by_account: HashMap<AccountId, Option<Arc<SigningSecrets>>>,
    since: Timestamp,
}

/// A callback in memory. While this exists it has a slot and is registered as held.
struct Job {
    held: Held<Callback>,
    receiver: ReceiverId,
    slot: Slot,
    _row: HeldRow<CallbackId>,
}

/// Slots for the callbacks that a write may make this node the holder of. Exists from before the write until its
/// callbacks are registered.
pub(crate) struct Reservation {
    slots: SlotReservation,
    _write: OpenWrite<CallbackId>,
}

/// Ends its attempt when dropped, also after a panic.
struct Permit {
    receivers: Arc<Mutex<Receivers<Job>>>,
    attempt: Option<Attempt>,
}

impl Permit {
    fn origin(&self) -> Option<Origin> {
        let attempt = self.attempt.as_ref();
        attempt.map(|attempt| attempt.origin.clone())
    }

    /// Ends the attempt with its result. Returns callbacks that must go back to the database.
    fn finish(mut self, answer: Answer, now: Timestamp) -> Vec<Job> {
        let Some(attempt) = self.attempt.take() else {
            return Vec::new();
        };
        lock(&self.receivers).finish(&attempt, answer, now)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            lock(&self.receivers).abandon(&attempt);
        }
    }
}

/// A panic elsewhere leaves the queues usable.
fn lock(receivers: &Mutex<Receivers<Job>>) -> MutexGuard<'_, Receivers<Job>> {
    receivers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callbacks {
    /// Starts sending callbacks. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        sender: Arc<dyn CallbackSender>,
        settings: CallbackSettings,
    ) -> Arc<Self> {
        let limits = Limits {
            queue: 2 * MAX_HELD,
            batch: BATCH,
            writes: 1,
            interval: WRITE_INTERVAL,
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
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT as usize)),
            tasks: OnceLock::new(),
        });
        let this = callbacks.clone();
        let claiming = supervise::spawn("callback-claims", move || this.clone().claim_all());
        let this = callbacks.clone();
        let comparing = supervise::spawn("callback-comparison", move || this.clone().compare_all());
        let tasks = [claiming.abort_handle(), comparing.abort_handle()];
        callbacks.tasks.get_or_init(|| tasks);
        callbacks
    }

    pub(crate) fn paused(&self) -> Vec<PausedReceiver> {
        lock(&self.receivers).paused(self.clock.now())
    }

    /// Reserves slots, if there are enough, for a write that may make this node the holder of callbacks.
    pub(crate) fn reserve(&self, count: usize) -> Option<Reservation> {
        let slots = self.slots.reserve(count)?;
        Some(Reservation {
            slots,
            _write: self.rows.open(),
        })
    }

    /// Takes the callbacks that a write created, and queues them.
    pub(crate) fn take<'a>(
        self: &Arc<Self>,
        by: NodeId,
        reservation: Option<Reservation>,
        ended: impl Iterator<Item = &'a mut Ended>,
    ) {
        let ended = ended.inspect(|ended| {
            if let Some(trace) = &ended.trace {
                let code = ended.outcome.code().number();
                let (message_id, began_us) = (ended.id, ended.began_at.as_microsecond());
                log_traced!(trace, "ended", %message_id, code, began_us);
            }
        });
        let Some(mut reservation) = reservation else {
            ended.for_each(drop);
            return;
        };
        let created = ended.filter_map(|ended| ended.callback.take());
        let refused = self.add_all(by, &mut reservation, Source::Due, created);
        self.requeue(refused);
    }

    /// Call this after a failed write: it may still commit, and then this node holds callbacks that it does not know.
    pub(crate) fn write_failed(&self) {
        self.write_failed.notify_one();
    }

    /// Starts no further attempt and returns once the results of all attempts are stored, so that no receiver gets a
    /// callback twice. Callbacks that were not attempted are released when the node leaves.
    pub(crate) async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        if let Ok(all) = self.in_flight.acquire_many(MAX_IN_FLIGHT).await {
            all.forget();
        }
        self.settle.stop().await;
    }

    /// Puts callbacks into their receivers' queues. Returns those that must go back to the database.
    fn add_all(
        self: &Arc<Self>,
        by: NodeId,
        reservation: &mut Reservation,
        source: Source,
        callbacks: impl Iterator<Item = Callback>,
    ) -> Vec<Job> {
        let mut refused = Vec::new();
        for callback in callbacks {
            let address = Address::new(callback.account, &callback.url);
            let job = Job {
                receiver: address.receiver,
                slot: reservation.slots.slot(),
                _row: self.rows.register(callback.id, callback.claim.attempt),
                held: Held { by, item: callback },
            };
            if !self.sender.can_reach(address.receiver) {
                refused.push(job);
                continue;
            }
            let admit = |job: &mut Job, share| job.slot.admit(address.receiver, share);
            let now = self.clock.now();
            let added = lock(&self.receivers).add(&address, source, job, now, admit);
            match added {
                Ok(()) => self.start_attempts(Some(&address.origin)),
                Err(job) => refused.push(job),
            }
        }
        refused
    }

    /// Starts as many attempts as are allowed: of blocked hosts, and of this one.
    fn start_attempts(self: &Arc<Self>, origin: Option<&Origin>) {
        loop {
            let Ok(in_flight_permit) = self.in_flight.clone().try_acquire_owned() else {
                // The service is stopping.
                return;
            };
            let started = lock(&self.receivers).start(origin);
            let Some((job, attempt)) = started else {
                return;
            };
            let permit = Permit {
                receivers: self.receivers.clone(),
                attempt: Some(attempt),
            };
            tokio::spawn(self.clone().attempt_boxed(job, permit, in_flight_permit));
        }
    }

    /// Boxed because an attempt starts further attempts, which would make its type infinite.
    fn attempt_boxed(
        self: Arc<Self>,
        job: Job,
        permit: Permit,
        in_flight_permit: OwnedSemaphorePermit,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.attempt(job, permit, in_flight_permit))
    }

    /// Makes one attempt and stores its result.
    async fn attempt(
        self: Arc<Self>,
        job: Job,
        permit: Permit,
        in_flight_permit: OwnedSemaphorePermit,
    ) {
        let origin = permit.origin();
        if !self.node.owns(&job.held).await {
            // Another node has taken over.
            drop(permit);
            self.start_attempts(origin.as_ref());
            return;
        }
        let delivery = self.deliver(&job.held.item).await;
        if !delivery.received && !self.sender.can_reach(job.receiver) {
            // Its SMPP session ended before it answered. That is no attempt: the next session gets the callback.
            drop(permit);
            self.start_attempts(origin.as_ref());
            self.requeue(vec![job]);
            return;
        }
        let paused = permit.finish(answer(&delivery), self.clock.now());
        self.requeue(paused);
        self.start_attempts(origin.as_ref());
        self.store_result(self.result(&job.held, delivery)).await;
        drop((job, in_flight_permit));
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
        if let (Some(trace), Some(attempt)) = (&callback.trace, callback.attempt_trace()) {
            log_traced!(
                trace,
                "callback sent",
                message_id = callback.message.map(tracing::field::display),
                callback_id = %callback.id,
                span_id = %attempt.parent_id(),
                status = delivery.attempt.status,
                outcome,
                began_us = now.as_microsecond()
            );
        }
        delivery
    }

    fn result(&self, held: &Held<Callback>, delivery: Delivery) -> Held<CallbackSettlement> {
        let callback = &held.item;
        let next = if delivery.received {
            CallbackNext::Done
        } else if self
            .park_after
            .is_some_and(|age| callback.created_at + age <= self.clock.now())
        {
            CallbackNext::Parked
        } else {
            let random = u32::from_le_bytes(entropy::bytes());
            CallbackNext::Later(self.clock.now() + callback_pause(callback.tries + 1, random))
        };
        let item = CallbackSettlement {
            id: callback.id,
            message: callback.message,
            claim: callback.claim,
            attempt: Some(delivery.attempt),
            next,
        };
        Held { by: held.by, item }
    }

    /// Stores a result, and retries until that succeeds.
    async fn store_result(&self, settlement: Held<CallbackSettlement>) {
        loop {
            match self.settle.write(settlement.clone()).await {
                Ok(_) => return,
                Err(BatchError::Stopped) if self.settle.is_stopped() => return,
                Err(BatchError::Full | BatchError::Stopped | BatchError::Write(_)) => {
                    tokio::time::sleep(STORE_RETRY_AFTER).await;
                }
            }
        }
    }

    /// Moves callbacks to their receivers' queues in the database, without an attempt. Their slots are freed once that
    /// is stored.
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
                    tokio::time::sleep(STORE_RETRY_AFTER).await;
                }
            }
        });
    }

    /// The account's secrets. Without one, the attempt fails and is retried later.
    async fn secrets(&self, account: AccountId) -> Option<Arc<SigningSecrets>> {
        let now = self.clock.now();
        {
            let mut secrets = self.secrets.lock().expect("no holder panics");
            if secrets.since + SECRETS_CACHED_FOR <= now {
                *secrets = Secrets {
                    by_account: HashMap::new(),
                    since: now,
                };
            }
            if let Some(cached) = secrets.by_account.get(&account) {
                return cached.clone();
            }
        }
        match self.store.find_signing_secrets(account).await {
            Ok(found) => {
                let found = found.map(Arc::new);
                self.secrets
                    .lock()
                    .expect("no holder panics")
                    .by_account
                    .insert(account, found.clone());
                found
            }
            Err(error) => {
                tracing::warn!(%error, "a callback cannot be signed: the account's secret cannot be read");
                None
            }
        }
    }
}

impl Job {
    /// Settles the callback without an attempt, so that it goes to its receiver's queue.
    fn requeued(&self) -> Held<CallbackSettlement> {
        let item = CallbackSettlement {
            id: self.held.item.id,
            message: self.held.item.message,
            claim: self.held.item.claim,
            attempt: None,
            next: CallbackNext::Queued(self.receiver),
        };
        Held {
            by: self.held.by,
            item,
        }
    }
}

/// What an attempt says about the host's load. A refusal or a wrong body is no sign of load.
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
    // A batch has one holder, unless this node has just rejoined under another ID.
    for group in batch.chunk_by(|a, b| a.by == b.by) {
        let results = Arc::new(group.iter().map(|held| held.item.clone()).collect());
        settled.extend(store.settle_callbacks(group[0].by, results).await?);
        pass(KillPoint::CallbackSettled);
    }
    Ok(settled)
}
