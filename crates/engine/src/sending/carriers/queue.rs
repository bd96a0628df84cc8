//! A carrier queue: one carrier, the messages that wait for it in memory, and its window.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier, CarrierStatus, Health};
use domain::{AccountId, PoolId, Timestamp};
use metrics::{Counter, counter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fair::Queued;
use super::held_messages::HeldMessage;
use super::lanes::{Lanes, Reservation};
use super::{Carriers, SlotRequest};
use super::{Route, Routed};

/// How often a carrier that is down is checked.
pub(in crate::sending) const CHECK_EVERY: Duration = Duration::from_millis(100);

/// A message on its way to a carrier.
pub(in crate::sending) struct RoutedMessage {
    pub(in crate::sending) held: HeldMessage,
    /// Empty if there is no route.
    pub(in crate::sending) route: Route,
    /// The carriers that the route refers to.
    pub(in crate::sending) carriers: Arc<Carriers>,
    /// The position in the route of the carrier that it waits for.
    pub(in crate::sending) position: usize,
    /// Whether a carrier that could not take it may do so later.
    pub(in crate::sending) may_work_later: bool,
}

impl RoutedMessage {
    pub(in crate::sending) fn new(held: HeldMessage, routed: Routed) -> Self {
        Self {
            held,
            route: routed.route,
            carriers: routed.carriers,
            position: 0,
            may_work_later: false,
        }
    }

    /// Whether a carrier of its route works, here or on another node. A message without a route may use any carrier.
    pub(in crate::sending) fn can_go(&self) -> bool {
        let works =
            |queue: &Arc<CarrierQueue>| !queue.is_down() || queue.pool_elsewhere().is_some();
        if self.route.is_empty() {
            return self.carriers.queues.iter().any(works);
        }
        let mut route = self.route.iter();
        route.any(|queue| works(&self.carriers.queues[usize::from(*queue)]))
    }
}

impl Queued for RoutedMessage {
    fn account(&self) -> AccountId {
        self.held.item.account
    }

    fn parts(&self) -> u32 {
        self.held.item.shape.parts.into()
    }

    fn expires_at(&self) -> Timestamp {
        self.held.item.expires_at
    }
}

pub(crate) struct CarrierQueue {
    pub(in crate::sending) carrier: Arc<dyn Carrier>,
    /// Its kind in the configuration.
    kind: String,
    pub(in crate::sending) lanes: Arc<Lanes<RoutedMessage>>,
    window: Arc<Semaphore>,
    /// The number of permits of the window.
    window_size: AtomicU32,
    /// Whether the loop holds a permit for the next message.
    is_ready: AtomicBool,
    /// Parts handed over since the carrier was last asked whether it is ready.
    announced: AtomicU32,
    answers: Answers,
    /// The pool in which messages wait for another node; 0 if unknown.
    pool: AtomicU64,
    /// Whether another node has a link to the carrier.
    is_up_elsewhere: AtomicBool,
    /// The number of parts handed to the carrier.
    handed: AtomicU64,
    last_sample: Mutex<RateSample>,
}

/// How many parts a carrier may hold without an answer.
fn window_size_of(carrier: &dyn Carrier) -> u32 {
    u32::try_from(carrier.window().max(1)).unwrap_or(u32::MAX)
}

/// The number of parts handed over at a point in time.
#[derive(Debug, Clone, Copy)]
struct RateSample {
    at: Instant,
    handed: u64,
}

impl RateSample {
    /// Parts per second since this sample, rounded.
    fn rate(self, now: Instant, handed: u64) -> u32 {
        let millis = now.saturating_duration_since(self.at).as_millis().max(1);
        let parts = u128::from(handed.saturating_sub(self.handed));
        u32::try_from((parts * 1000 + millis / 2) / millis).unwrap_or(u32::MAX)
    }
}

/// Counters of the carrier's answers, looked up once because every message counts.
struct Answers {
    taken: Counter,
    answered: Counter,
    not_now: Counter,
    declined: Counter,
    refused: Counter,
    unknown: Counter,
}

impl Answers {
    fn new(carrier: &str) -> Self {
        let count = |result: &'static str| {
            let carrier = carrier.to_owned();
            counter!("switchboard_carrier_submits_total", "carrier" => carrier, "result" => result)
        };
        Self {
            taken: count("taken"),
            answered: count("answered"),
            not_now: count("not_now"),
            declined: count("declined"),
            refused: count("refused"),
            unknown: count("unknown"),
        }
    }
}

impl CarrierQueue {
    pub(in crate::sending) fn new(
        carrier: Arc<dyn Carrier>,
        kind: String,
        capacity: usize,
    ) -> Arc<Self> {
        let window_size = window_size_of(&*carrier);
        Arc::new(Self {
            lanes: Lanes::new(capacity),
            window: Arc::new(Semaphore::new(window_size as usize)),
            window_size: AtomicU32::new(window_size),
            is_ready: AtomicBool::new(false),
            announced: AtomicU32::new(0),
            answers: Answers::new(carrier.name()),
            pool: AtomicU64::new(0),
            is_up_elsewhere: AtomicBool::new(false),
            handed: AtomicU64::new(0),
            last_sample: Mutex::new(RateSample {
                at: Instant::now(),
                handed: 0,
            }),
            carrier,
            kind,
        })
    }

    /// Reserves a slot in memory, if one is free.
    pub(in crate::sending) fn reserve(
        &self,
        request: SlotRequest,
    ) -> Option<Reservation<RoutedMessage>> {
        let SlotRequest {
            account,
            priority,
            admission,
        } = request;
        self.lanes.reserve(account, priority, admission)
    }

    pub(in crate::sending) fn is_down(&self) -> bool {
        self.carrier.health() == Health::Down
    }

    /// The pool in which messages wait for a node with a link, if it is known.
    pub(in crate::sending) fn pool(&self) -> Option<PoolId> {
        PoolId::new(self.pool.load(Ordering::Relaxed))
    }

    /// The pool for messages that this node cannot send by the carrier but another one can.
    pub(in crate::sending) fn pool_elsewhere(&self) -> Option<PoolId> {
        let is_usable = self.is_up_elsewhere.load(Ordering::Relaxed) && self.is_down();
        self.pool().filter(|_| is_usable)
    }

    /// Records what is known about the carrier on other nodes.
    pub(in crate::sending) fn set_elsewhere(&self, pool: PoolId, is_up: bool) {
        self.pool.store(pool.get(), Ordering::Relaxed);
        self.is_up_elsewhere.store(is_up, Ordering::Relaxed);
    }

    /// Whether messages should go elsewhere if they can: the carrier is slow, and enough messages wait for it.
    pub(in crate::sending) fn is_busy(&self) -> bool {
        match self.carrier.health() {
            Health::Up => false,
            Health::Strained => self.lanes.waiting() >= self.window_size() as usize,
            Health::Down => true,
        }
    }

    /// The next message, with one window permit for each part, as far as the window has so many. `None` if the carrier
    /// is out of service. Must not be cancelled while it is in service, because a message may be lost.
    pub(in crate::sending) async fn next(&self) -> Option<(RoutedMessage, OwnedSemaphorePermit)> {
        let mut permit = self.acquire(1).await;
        self.is_ready.store(true, Ordering::Relaxed);
        // The carrier sends in FIFO order, so messages wait here, where accounts share fairly.
        let announced = self.announced.swap(0, Ordering::Relaxed);
        self.carrier.ready(announced).await;
        let message = self.lanes.next().await;
        self.is_ready.store(false, Ordering::Relaxed);
        let message = message?;
        let parts = u32::from(message.held.item.shape.parts);
        self.announced.store(parts, Ordering::Relaxed);
        // Only this loop acquires permits, so there is no deadlock. The window may shrink in the meantime.
        while permit.num_permits() < parts.min(self.window_size()) as usize {
            if let Ok(more) = tokio::time::timeout(CHECK_EVERY, self.acquire(1)).await {
                permit.merge(more);
            }
        }
        self.handed.fetch_add(parts.into(), Ordering::Relaxed);
        Some((message, permit))
    }

    async fn acquire(&self, permits: u32) -> OwnedSemaphorePermit {
        let window = self.window.clone();
        window
            .acquire_many_owned(permits)
            .await
            .expect("never closed")
    }

    /// Counts an answer of the carrier.
    pub(in crate::sending) fn count(&self, submitted: &CarrierAnswer) {
        let counter = match submitted {
            CarrierAnswer::Taken(_) => &self.answers.taken,
            CarrierAnswer::Answered(_) => &self.answers.answered,
            CarrierAnswer::NotNow(_) => &self.answers.not_now,
            CarrierAnswer::Declined(_) => &self.answers.declined,
            CarrierAnswer::Refused(_) | CarrierAnswer::PartlyTaken { .. } => &self.answers.refused,
            CarrierAnswer::Unknown => &self.answers.unknown,
        };
        counter.increment(1);
    }

    fn window_size(&self) -> u32 {
        self.window_size.load(Ordering::Relaxed)
    }

    /// Adjusts the window to the carrier, whose links may come and go. It shrinks as permits are returned. Must be
    /// called by one task only.
    pub(in crate::sending) fn resize_window(&self) {
        let window_size = window_size_of(&*self.carrier);
        let before = self.window_size.swap(window_size, Ordering::Relaxed);
        if let Some(more) = window_size.checked_sub(before) {
            self.window.add_permits(more as usize);
        } else {
            let (window, fewer) = (self.window.clone(), before - window_size);
            tokio::spawn(async move {
                let gone = window.acquire_many(fewer).await;
                gone.expect("never closed").forget();
            });
        }
    }

    /// Returns once the results of all messages that the carrier got are stored.
    pub(in crate::sending) async fn drained(&self) {
        let _all = self.acquire(self.window_size()).await;
    }

    /// Parts per second since the last call.
    fn per_second(&self) -> u32 {
        let now = RateSample {
            at: Instant::now(),
            handed: self.handed.load(Ordering::Relaxed),
        };
        let mut last_sample = self.last_sample.lock().expect("no holder panics");
        let before = std::mem::replace(&mut *last_sample, now);
        before.rate(now.at, now.handed)
    }

    /// The carrier's state for operators. The rate covers the time since the last call.
    pub(in crate::sending) fn status(&self) -> CarrierStatus {
        let free = u32::try_from(self.window.available_permits()).unwrap_or(u32::MAX);
        let reserved = u32::from(self.is_ready.load(Ordering::Relaxed));
        CarrierStatus {
            name: self.carrier.name().to_owned(),
            kind: self.kind.clone(),
            state: self.carrier.state(),
            waiting: u32::try_from(self.lanes.waiting()).unwrap_or(u32::MAX),
            under_way: self
                .window_size()
                .saturating_sub(free)
                .saturating_sub(reserved),
            window: self.window_size(),
            per_second: self.per_second(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_rounded_to_whole_parts() {
        let start = Instant::now();
        let sample = RateSample {
            at: start,
            handed: 100,
        };
        for (millis, handed, expected) in [
            (2000, 100, 0),
            (2000, 101, 1),
            (2000, 300, 100),
            (1500, 101, 1),
            (0, 101, 1000),
            (1000, 99, 0),
        ] {
            let now = start + Duration::from_millis(millis);
            assert_eq!(sample.rate(now, handed), expected, "{millis} {handed}");
        }
    }
}
