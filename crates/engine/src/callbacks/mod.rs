//! Reports on their way to the callers, one queue for each receiving host.
//!
//! A host that is slow or dead delays nobody else: it has its own queue and its own bound on tries under way, and after
//! repeated failures it is left alone for a while. What does not fit into memory waits in the database.

mod hosts;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::backoff::callback_pause;
use domain::delivery::{Callback, CallbackNext, CallbackSettlement, Delivery};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{CallbackSender, Ended, StoreError, WorkStore};
use domain::{AccountId, CallbackId, Clock, NodeId, Timestamp};
use jiff::SignedDuration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::batcher::{BatchError, Batcher, Limits};
use crate::entropy;
use crate::node::{Held, Node, UNSURE_FOR};
use hosts::{Host, Hosts, Placed};

/// Callbacks that a node holds in memory at once.
const HELD: usize = 20_000;
/// Tries that may be under way or waiting to be stored: more than there can ever be, so that only the end waits.
const UNDER_WAY: u32 = 1 << 20;
/// How often the database is asked for due callbacks.
const SCAN_EVERY: Duration = Duration::from_millis(250);
/// The most that one scan takes.
const SCAN_MOST: usize = 1000;
/// How often it is looked for what a write of unknown outcome may have left.
const LOOK_BACK_EVERY: Duration = Duration::from_secs(5);
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
    hosts: Mutex<Hosts>,
    held: Arc<AtomicUsize>,
    secrets: Mutex<Secrets>,
    settle: Batcher<Held<CallbackSettlement>, bool, StoreError>,
    park_after: Option<SignedDuration>,
    lost_track: Mutex<Option<LostTrack>>,
    /// Each try has a place until its result is stored; the end takes them all.
    under_way: Arc<Semaphore>,
    scanning: std::sync::OnceLock<AbortHandle>,
}

#[derive(Default)]
struct Secrets {
    known: HashMap<AccountId, Arc<str>>,
    since: Timestamp,
}

/// Writes whose outcome is unknown.
#[derive(Debug, Clone, Copy)]
struct LostTrack {
    /// When to look next for what they left.
    look_at: Instant,
    /// The last look is the first after this time.
    until: Instant,
}

/// Places in memory, kept for callbacks that a write may bring forth.
pub(crate) struct Room {
    held: Arc<AtomicUsize>,
    count: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.count, Ordering::AcqRel);
    }
}

impl Callbacks {
    /// Starts delivering. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        sender: Arc<dyn CallbackSender>,
        park_after: Option<SignedDuration>,
    ) -> Arc<Self> {
        let limits = Limits {
            queue: HELD,
            batch: 512,
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
            hosts: Mutex::new(Hosts::default()),
            held: Arc::new(AtomicUsize::new(0)),
            secrets: Mutex::default(),
            settle,
            park_after,
            lost_track: Mutex::default(),
            under_way: Arc::new(Semaphore::new(UNDER_WAY as usize)),
            scanning: std::sync::OnceLock::new(),
        });
        let kept = callbacks.clone();
        let scanning = supervise::spawn("callback-scan", move || kept.clone().scan_all());
        let scanning = scanning.abort_handle();
        callbacks.scanning.get_or_init(|| scanning);
        callbacks
    }

    /// The receivers that are left alone at present, each with the time until when.
    pub(crate) fn paused(&self) -> HashMap<String, Timestamp> {
        let hosts = self.hosts.lock().expect("no holder panics");
        hosts.paused(self.clock.now())
    }

    /// Keeps room for so many callbacks, if there is.
    pub(crate) fn reserve(&self, count: usize) -> Option<Room> {
        let taken = self
            .held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                (held + count <= HELD).then_some(held + count)
            });
        taken.ok().map(|_| Room {
            held: self.held.clone(),
            count,
        })
    }

    /// Takes over the callbacks that a write brought forth.
    pub(crate) fn take<'a>(
        self: &Arc<Self>,
        by: NodeId,
        room: Option<Room>,
        ended: impl Iterator<Item = &'a Ended>,
    ) {
        let Some(mut room) = room else { return };
        for callback in ended.filter_map(|ended| ended.callback.clone()) {
            room.count = room.count.saturating_sub(1);
            self.place(Held { by, it: callback });
        }
    }

    /// A write's outcome is unknown: the store may hold callbacks for this node that it never saw.
    pub(crate) fn lost_track(&self) {
        let now = Instant::now();
        *self.lost_track.lock().expect("no holder panics") = Some(LostTrack {
            look_at: now,
            until: now + UNSURE_FOR,
        });
    }

    /// Stops: begins no try, and returns once those under way are stored, so that what a receiver took is not brought
    /// again. What was not tried is given back when the node leaves.
    pub(crate) async fn stop(&self) {
        if let Some(scanning) = self.scanning.get() {
            scanning.abort();
        }
        if let Ok(all) = self.under_way.acquire_many(UNDER_WAY).await {
            all.forget();
        }
        self.settle.stop().await;
    }

    /// Puts a callback that this node holds into its host's queue. It counts among the held until it is settled.
    fn place(self: &Arc<Self>, callback: Held<Callback>) {
        let host = Host::of(&callback.it.url);
        let placed =
            self.hosts
                .lock()
                .expect("no holder panics")
                .place(&host, callback, self.clock.now());
        match placed {
            Placed::Queued => {}
            Placed::Start => {
                tokio::spawn(self.clone().serve(host));
            }
            Placed::Full(callback, until) => self.put_back(&callback, until),
        }
    }

    /// Delivers what one host's queue holds, one after the other.
    async fn serve(self: Arc<Self>, host: Host) {
        loop {
            let Ok(place) = self.under_way.clone().try_acquire_owned() else {
                // The end: nothing more is tried.
                return;
            };
            let next = self.hosts.lock().expect("no holder panics").next(&host);
            let Some(callback) = next else { return };
            if !self.node.owns(&callback).await {
                // Somebody else delivers it.
                self.let_go(callback.it.id);
                continue;
            }
            let delivery = self.deliver(&callback.it).await;
            let noted = self.hosts.lock().expect("no holder panics").note(
                &host,
                delivery.received,
                self.clock.now(),
            );
            self.conclude(&callback, delivery, place);
            for (callback, until) in noted.put_back {
                self.put_back(&callback, until);
            }
            for _ in 0..noted.start {
                tokio::spawn(self.clone().serve_boxed(host.clone()));
            }
        }
    }

    /// A task that starts others of its own kind needs a type of known size.
    fn serve_boxed(
        self: Arc<Self>,
        host: Host,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.serve(host))
    }

    async fn deliver(&self, callback: &Callback) -> Delivery {
        let secret = self.secret(callback.account).await;
        pass(KillPoint::CallbackBegins);
        let delivery = self
            .sender
            .deliver(callback, &secret, self.clock.now())
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

    fn conclude(
        self: &Arc<Self>,
        held: &Held<Callback>,
        delivery: Delivery,
        place: OwnedSemaphorePermit,
    ) {
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
        let settlement = CallbackSettlement {
            id: callback.id,
            claim: callback.claim,
            attempt: Some(delivery.attempt),
            next,
        };
        let settlement = Held {
            by: held.by,
            it: settlement,
        };
        self.store_result(settlement, Some(place));
    }

    /// Gives a callback back untried.
    fn put_back(self: &Arc<Self>, held: &Held<Callback>, until: Timestamp) {
        let callback = &held.it;
        let settlement = CallbackSettlement {
            id: callback.id,
            claim: callback.claim,
            attempt: None,
            next: CallbackNext::Later(until),
        };
        let settlement = Held {
            by: held.by,
            it: settlement,
        };
        self.store_result(settlement, None);
    }

    /// Stores a result beside the next delivery, however long that takes, and frees the callback's place in memory.
    fn store_result(
        self: &Arc<Self>,
        settlement: Held<CallbackSettlement>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let callbacks = self.clone();
        tokio::spawn(async move {
            loop {
                match callbacks.settle.write(settlement.clone()).await {
                    Ok(_) | Err(BatchError::Stopped) => break,
                    Err(BatchError::Full | BatchError::Write(_)) => {
                        tokio::time::sleep(STORE_AGAIN_AFTER).await;
                    }
                }
            }
            callbacks.let_go(settlement.it.id);
            drop(place);
        });
    }

    /// A callback is no longer this node's: its place in memory is free.
    fn let_go(&self, id: CallbackId) {
        self.hosts.lock().expect("no holder panics").forget(id);
        self.held.fetch_sub(1, Ordering::AcqRel);
    }

    /// The account's secret. Without one the try fails, says so, and is made again later.
    async fn secret(&self, account: AccountId) -> Arc<str> {
        let now = self.clock.now();
        {
            let mut secrets = self.secrets.lock().expect("no holder panics");
            if secrets.since + SECRETS_FOR <= now {
                *secrets = Secrets {
                    known: HashMap::new(),
                    since: now,
                };
            }
            if let Some(secret) = secrets.known.get(&account) {
                return secret.clone();
            }
        }
        match self.store.find_callback_secret(account).await {
            Ok(secret) => {
                let secret: Arc<str> = secret.unwrap_or_default().into();
                self.secrets
                    .lock()
                    .expect("no holder panics")
                    .known
                    .insert(account, secret.clone());
                secret
            }
            Err(error) => {
                tracing::warn!(%error, "a report cannot be signed: the account's secret cannot be read");
                "".into()
            }
        }
    }

    async fn scan_all(self: Arc<Self>) {
        let mut tick = tokio::time::interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if self.is_time_to_look() {
                self.find_track().await;
            }
            while self.scan().await {}
        }
    }

    /// Takes due callbacks as far as there is room, and says whether there may be more.
    async fn scan(self: &Arc<Self>) -> bool {
        let free = HELD.saturating_sub(self.held.load(Ordering::Acquire));
        let count = free.min(SCAN_MOST);
        let Some(room) = self.reserve(count).filter(|_| count > 0) else {
            return false;
        };
        let by = self.node.id();
        let claimed = self
            .store
            .claim_callbacks(by, u32::try_from(count).unwrap_or(u32::MAX))
            .await;
        match claimed {
            Ok(claimed) => {
                if !claimed.is_empty() {
                    pass(KillPoint::CallbackClaimed);
                }
                let more = claimed.len() >= count;
                let mut room = room;
                for callback in claimed {
                    room.count = room.count.saturating_sub(1);
                    self.place(Held { by, it: callback });
                }
                more
            }
            Err(error) => {
                tracing::warn!(%error, "due callbacks cannot be taken; trying again");
                self.lost_track();
                false
            }
        }
    }

    /// Whether a write of unknown outcome is to be looked for now. The next look is planned.
    fn is_time_to_look(&self) -> bool {
        let now = Instant::now();
        let mut lost = self.lost_track.lock().expect("no holder panics");
        let Some(track) = lost.as_mut().filter(|track| track.look_at <= now) else {
            return false;
        };
        if now >= track.until {
            *lost = None;
        } else {
            track.look_at = now + LOOK_BACK_EVERY;
        }
        true
    }

    /// Gives back what the store thinks this node holds and it does not.
    async fn find_track(&self) {
        let keep: Vec<CallbackId> = self
            .hosts
            .lock()
            .expect("no holder panics")
            .known()
            .collect();
        match self.store.release_callbacks(self.node.id(), keep).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "callbacks of unknown writes wait for delivery again");
            }
            Err(_) => self.lost_track(),
        }
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
