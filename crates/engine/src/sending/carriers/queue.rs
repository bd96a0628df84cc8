//! A queue: one carrier, what waits for it in memory, and how much may be with it at once.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::delivery::Submitted;
use domain::ports::{Carrier, CarrierNote, Health};
use domain::{AccountId, PoolId, Timestamp};
use metrics::{Counter, counter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fair::Queued;
use super::lanes::{Lanes, Reservation};
use super::parcels::HeldParcel;
use super::{Carriers, Wanted};
use super::{Route, Routed};

/// How often a carrier that is down is looked at.
pub(in crate::sending) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A parcel on its way to a carrier.
pub(in crate::sending) struct Waiting {
    /// What is to be sent.
    pub(in crate::sending) parcel: HeldParcel,
    /// The carriers that may take it. Empty where there is no route.
    pub(in crate::sending) route: Route,
    /// The carriers that the route is about.
    pub(in crate::sending) carriers: Arc<Carriers>,
    /// Which of the route it waits for.
    pub(in crate::sending) position: usize,
    /// Whether a carrier that could not take it may do so later.
    pub(in crate::sending) may_work_later: bool,
}

impl Waiting {
    pub(in crate::sending) fn new(parcel: HeldParcel, routed: Routed) -> Self {
        Self {
            parcel,
            route: routed.route,
            carriers: routed.carriers,
            position: 0,
            may_work_later: false,
        }
    }

    /// Whether a carrier of its route works, here or on another node. What has no route goes by any.
    pub(in crate::sending) fn can_go(&self) -> bool {
        let works = |queue: &Arc<CarrierQueue>| !queue.is_down() || queue.way_out().is_some();
        if self.route.is_empty() {
            return self.carriers.queues.iter().any(works);
        }
        let mut route = self.route.iter();
        route.any(|queue| works(&self.carriers.queues[usize::from(*queue)]))
    }
}

impl Queued for Waiting {
    fn account(&self) -> AccountId {
        self.parcel.it.account
    }

    fn parts(&self) -> u32 {
        self.parcel.it.shape.parts.into()
    }

    fn expires_at(&self) -> Timestamp {
        self.parcel.it.expires_at
    }
}

/// A carrier, as dispatch sees it.
pub(crate) struct CarrierQueue {
    pub(in crate::sending) carrier: Arc<dyn Carrier>,
    /// Its kind in configuration.
    kind: String,
    pub(in crate::sending) lanes: Arc<Lanes<Waiting>>,
    window: Arc<Semaphore>,
    /// How many parts the window has room for.
    places: AtomicU32,
    /// Whether the loop holds a place for whatever comes next.
    is_ready: AtomicBool,
    /// Parts that were handed over since the carrier was last asked whether it is ready.
    announced: AtomicU32,
    answers: Answers,
    /// Where messages wait for another node; 0 while that is not known.
    pool: AtomicU64,
    /// Whether another node takes messages for it.
    is_up_elsewhere: AtomicBool,
    /// Parts that were handed to it.
    handed: AtomicU64,
    noted: Mutex<Noted>,
}

/// How many parts may be with a carrier at once.
fn places_of(carrier: &dyn Carrier) -> u32 {
    u32::try_from(carrier.window().max(1)).unwrap_or(u32::MAX)
}

/// How many parts had been handed over when a queue was noted last.
#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Instant,
    handed: u64,
}

impl Noted {
    /// Parts in a second since then, rounded.
    fn rate(self, now: Instant, handed: u64) -> u32 {
        let millis = now.saturating_duration_since(self.at).as_millis().max(1);
        let parts = u128::from(handed.saturating_sub(self.handed));
        u32::try_from((parts * 1000 + millis / 2) / millis).unwrap_or(u32::MAX)
    }
}

/// How often a carrier answered how. The counters are looked up once, for each message counts.
struct Answers {
    taken: Counter,
    answered: Counter,
    not_now: Counter,
    declined: Counter,
    refused: Counter,
    unknown: Counter,
}

impl Answers {
    fn of(carrier: &str) -> Self {
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
        let places = places_of(&*carrier);
        Arc::new(Self {
            lanes: Lanes::new(capacity),
            window: Arc::new(Semaphore::new(places as usize)),
            places: AtomicU32::new(places),
            is_ready: AtomicBool::new(false),
            announced: AtomicU32::new(0),
            answers: Answers::of(carrier.name()),
            pool: AtomicU64::new(0),
            is_up_elsewhere: AtomicBool::new(false),
            handed: AtomicU64::new(0),
            noted: Mutex::new(Noted {
                at: Instant::now(),
                handed: 0,
            }),
            carrier,
            kind,
        })
    }

    /// Keeps a slot in memory, if there is one.
    pub(in crate::sending) fn reserve(&self, wanted: Wanted) -> Option<Reservation<Waiting>> {
        let Wanted {
            account,
            priority,
            admission,
        } = wanted;
        self.lanes.reserve(account, priority, admission)
    }

    pub(in crate::sending) fn is_down(&self) -> bool {
        self.carrier.health() == Health::Down
    }

    /// Where its messages wait for a node that has a link, once that is known.
    pub(in crate::sending) fn pool(&self) -> Option<PoolId> {
        PoolId::new(self.pool.load(Ordering::Relaxed))
    }

    /// The pool for messages that this node cannot send by it and another one can.
    pub(in crate::sending) fn way_out(&self) -> Option<PoolId> {
        let is_wanted = self.is_up_elsewhere.load(Ordering::Relaxed) && self.is_down();
        self.pool().filter(|_| is_wanted)
    }

    /// Notes what is known of other nodes.
    pub(in crate::sending) fn set_elsewhere(&self, pool: PoolId, is_up: bool) {
        self.pool.store(pool.get(), Ordering::Relaxed);
        self.is_up_elsewhere.store(is_up, Ordering::Relaxed);
    }

    /// Whether messages had better go elsewhere, if they can: it takes less than it should, and enough waits for it.
    pub(in crate::sending) fn is_busy(&self) -> bool {
        match self.carrier.health() {
            Health::Up => false,
            Health::Strained => self.lanes.waiting() >= self.places() as usize,
            Health::Down => true,
        }
    }

    /// The next parcel, with its places in the window: one for each part, as far as the window has so many. `None`: the
    /// queue is out of service. Not to be cancelled while the queue is in service: a parcel may be in hand.
    pub(in crate::sending) async fn next(&self) -> Option<(Waiting, OwnedSemaphorePermit)> {
        let mut place = self.acquire(1).await;
        self.is_ready.store(true, Ordering::Relaxed);
        // The carrier sends in FIFO order, so messages wait here, where accounts share.
        let announced = self.announced.swap(0, Ordering::Relaxed);
        self.carrier.ready(announced).await;
        let waiting = self.lanes.next().await;
        self.is_ready.store(false, Ordering::Relaxed);
        let waiting = waiting?;
        let parts = u32::from(waiting.parcel.it.shape.parts);
        self.announced.store(parts, Ordering::Relaxed);
        // Only this queue's one loop acquires, so no two wait for each other. The window may shrink meanwhile.
        while place.num_permits() < parts.min(self.places()) as usize {
            if let Ok(more) = tokio::time::timeout(LOOK_EVERY, self.acquire(1)).await {
                place.merge(more);
            }
        }
        self.handed.fetch_add(parts.into(), Ordering::Relaxed);
        Some((waiting, place))
    }

    async fn acquire(&self, places: u32) -> OwnedSemaphorePermit {
        let window = self.window.clone();
        window
            .acquire_many_owned(places)
            .await
            .expect("never closed")
    }

    /// Counts an answer of the carrier.
    pub(in crate::sending) fn count(&self, submitted: &Submitted) {
        let counter = match submitted {
            Submitted::Taken(_) => &self.answers.taken,
            Submitted::Answered(_) => &self.answers.answered,
            Submitted::NotNow(_) => &self.answers.not_now,
            Submitted::Declined(_) => &self.answers.declined,
            Submitted::Refused(_) | Submitted::PartlyTaken { .. } => &self.answers.refused,
            Submitted::Unknown => &self.answers.unknown,
        };
        counter.increment(1);
    }

    fn places(&self) -> u32 {
        self.places.load(Ordering::Relaxed)
    }

    /// Gives the window as much room as the carrier has now: it grows and shrinks with the links. One that shrinks does
    /// so as soon as what is under way leaves room for it. Called by one task alone.
    pub(in crate::sending) fn resize_window(&self) {
        let places = places_of(&*self.carrier);
        let before = self.places.swap(places, Ordering::Relaxed);
        if let Some(more) = places.checked_sub(before) {
            self.window.add_permits(more as usize);
        } else {
            let (window, fewer) = (self.window.clone(), before - places);
            tokio::spawn(async move {
                let gone = window.acquire_many(fewer).await;
                gone.expect("never closed").forget();
            });
        }
    }

    /// Returns once nothing is with the carrier whose result is not stored.
    pub(in crate::sending) async fn drained(&self) {
        let _all = self.acquire(self.places()).await;
    }

    /// Parts in a second since this was asked last.
    fn per_second(&self) -> u32 {
        let now = Noted {
            at: Instant::now(),
            handed: self.handed.load(Ordering::Relaxed),
        };
        let mut noted = self.noted.lock().expect("no holder panics");
        let before = std::mem::replace(&mut *noted, now);
        before.rate(now.at, now.handed)
    }

    /// How the carrier does, for people. The rate is that since the note before.
    pub(in crate::sending) fn note(&self) -> CarrierNote {
        let free = u32::try_from(self.window.available_permits()).unwrap_or(u32::MAX);
        let kept = u32::from(self.is_ready.load(Ordering::Relaxed));
        CarrierNote {
            name: self.carrier.name().to_owned(),
            kind: self.kind.clone(),
            state: self.carrier.state(),
            waiting: u32::try_from(self.lanes.waiting()).unwrap_or(u32::MAX),
            under_way: self.places().saturating_sub(free).saturating_sub(kept),
            window: self.places(),
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
        let noted = Noted {
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
            assert_eq!(noted.rate(now, handed), expected, "{millis} {handed}");
        }
    }
}
