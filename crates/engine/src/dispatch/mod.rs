//! Sending: from the lanes to a carrier, and the result into the store.
//!
//! One path for everything: what was accepted a moment ago, what was scheduled, what is tried again and what a dead
//! node left behind all pass the same lanes. The scan of the database is the truth; the hand-over at acceptance only
//! saves its delay.

mod lanes;

use std::sync::Arc;
use std::time::Duration;

use domain::backoff::send_pause;
use domain::delivery::{Claim, Parcel, Sent, Settlement, Submitted};
use domain::lookup::Subscriber;
use domain::message::{Recipient, SendTime, Submission};
use domain::ports::{Carrier, Settled, Store, StoreError};
use domain::{Channel, Clock, Code, NodeId, Outcome, TestMode};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::batcher::{BatchError, Batcher, Limits};
use crate::callbacks::Callbacks;
use crate::entropy;
use crate::node::{Held, Node};
use lanes::Lanes;

pub(crate) use lanes::Reservation;

/// How often the database is asked for work.
const SCAN_EVERY: Duration = Duration::from_millis(250);
/// The most that one scan takes of a lane.
const SCAN_MOST: usize = 1000;
/// How long to wait before a result that could not be stored is stored again.
const STORE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Sends what is due.
pub struct Dispatch {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    carrier: Arc<dyn Carrier>,
    lanes: Arc<Lanes>,
    window: Arc<Semaphore>,
    settle: Batcher<Held<Settlement>, Settled, StoreError>,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

impl Dispatch {
    /// Starts sending. Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        carrier: Arc<dyn Carrier>,
        callbacks: Arc<Callbacks>,
        held: usize,
    ) -> Arc<Self> {
        let limits = Limits {
            queue: carrier.window() + held,
            batch: 512,
        };
        let settle = Batcher::start(limits, {
            let store = store.clone();
            move |batch| settle(store.clone(), callbacks.clone(), batch)
        });
        let dispatch = Arc::new(Self {
            window: Arc::new(Semaphore::new(carrier.window())),
            lanes: Lanes::new(held / lanes::LANES),
            store,
            clock,
            node,
            carrier,
            settle,
            tasks: std::sync::OnceLock::new(),
        });
        let sending = tokio::spawn(dispatch.clone().send_all()).abort_handle();
        let scanning = tokio::spawn(dispatch.clone().scan_all()).abort_handle();
        dispatch.tasks.get_or_init(|| [sending, scanning]);
        dispatch
    }

    /// Keeps places for a submission that could be sent at once.
    pub(crate) fn reserve(&self, submission: &Submission) -> Option<Reservation> {
        if submission.send != SendTime::Now {
            return None;
        }
        self.lanes
            .reserve(submission.priority, submission.recipients.len())
    }

    /// The node that holds what is handed over.
    pub(crate) fn node(&self) -> NodeId {
        self.node.id()
    }

    /// Takes a stored submission over.
    pub(crate) fn hand_over(places: Reservation, submission: &Submission) {
        places.fill(parcels(submission));
    }

    /// A submission may have been stored as held although its write failed: if so, it is given back.
    pub(crate) fn disown(self: &Arc<Self>, submission: &Submission) {
        for parcel in parcels(submission) {
            let dispatch = self.clone();
            tokio::spawn(async move {
                let now = dispatch.clock.now();
                dispatch.store_result(&parcel, Sent::Later(now)).await;
            });
        }
    }

    /// Stops taking work; what is with the carrier is settled before this returns.
    pub(crate) async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        let all = u32::try_from(self.carrier.window()).unwrap_or(u32::MAX);
        let _drained = self.window.acquire_many(all).await;
        self.settle.stop().await;
    }

    async fn send_all(self: Arc<Self>) {
        loop {
            let place = self
                .window
                .clone()
                .acquire_owned()
                .await
                .expect("never closed");
            let parcel = self.lanes.next().await;
            let dispatch = self.clone();
            tokio::spawn(async move {
                // What is not this node's any more is sent by somebody else.
                if dispatch.node.owns(&parcel).await {
                    let sent = dispatch.try_once(&parcel.it).await;
                    dispatch.store_result(&parcel, sent).await;
                }
                // Only now: an answer that is not stored yet still counts as being with the carrier.
                drop(place);
            });
        }
    }

    async fn try_once(&self, parcel: &Parcel) -> Sent {
        let now = self.clock.now();
        if parcel.expires_at <= now {
            return over(parcel, Code::EXPIRED);
        }
        match parcel.test_mode {
            Some(TestMode::Deliver) => return Sent::Over(Outcome::Delivered),
            Some(TestMode::Fail) => return Sent::Over(Outcome::Failed(Code::ABSENT)),
            None => {}
        }
        match self.carrier.submit(parcel).await {
            Submitted::Taken(references) => Sent::Taken {
                carrier: self.carrier.name().to_owned(),
                references,
            },
            Submitted::Answered(subscriber) => Sent::Answered {
                outcome: subscriber.outcome(),
                report: subscriber.payload(parcel.id),
            },
            Submitted::Refused(code) | Submitted::Declined(code) => over(parcel, code),
            Submitted::NotNow(code) => {
                tracing::debug!(%code, "a message is tried again later");
                metrics::counter!("switchboard_send_retries_total").increment(1);
                let dice = u32::from_le_bytes(entropy::bytes());
                let again = self.clock.now() + send_pause(parcel.claim.attempt, dice);
                Sent::Later(again.min(parcel.expires_at))
            }
        }
    }

    /// Stores a result, however long that takes: as long as it is not stored, the message is this node's to settle.
    async fn store_result(&self, held: &Held<Parcel>, sent: Sent) {
        let parcel = &held.it;
        let settlement = Settlement {
            id: parcel.id,
            priority: parcel.priority,
            claim: parcel.claim,
            expires_at: parcel.expires_at,
            sent,
            at: self.clock.now(),
        };
        let settlement = Held {
            by: held.by,
            it: settlement,
        };
        loop {
            match self.settle.write(settlement.clone()).await {
                Ok(_) | Err(BatchError::Stopped) => return,
                Err(BatchError::Full | BatchError::Write(_)) => {
                    tokio::time::sleep(STORE_AGAIN_AFTER).await;
                }
            }
        }
    }

    async fn scan_all(self: Arc<Self>) {
        let waiting = metrics::gauge!("switchboard_messages_held");
        let mut tick = tokio::time::interval(SCAN_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            // As long as a scan brings as much as it may, more is likely to wait.
            while self.scan().await {}
            waiting.set(f64::from(
                u32::try_from(self.lanes.waiting()).unwrap_or(u32::MAX),
            ));
        }
    }

    /// Takes due work as far as there is room, and says whether there may be more.
    async fn scan(&self) -> bool {
        let places = self.lanes.reserve_up_to(SCAN_MOST);
        let limits =
            std::array::from_fn(|lane| u32::try_from(places[lane].count()).unwrap_or(u32::MAX));
        if limits == [0; lanes::LANES] {
            return false;
        }
        let by = self.node.id();
        let claimed = match self.store.claim_due(by, limits).await {
            Ok(claimed) => claimed,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "due messages cannot be taken; trying again");
                return false;
            }
        };
        let mut by_lane: [Vec<Held<Parcel>>; lanes::LANES] = Default::default();
        for parcel in claimed {
            by_lane[usize::try_from(parcel.priority.lane()).unwrap_or(0)]
                .push(Held { by, it: parcel });
        }
        let more = by_lane
            .iter()
            .zip(limits)
            .any(|(parcels, limit)| limit > 0 && parcels.len() >= limit as usize);
        for (places, parcels) in places.into_iter().zip(by_lane) {
            places.fill(parcels);
        }
        more
    }
}

/// The end of what no network took. A lookup's caller is told in a lookup's words; one whose time is over got no answer.
fn over(parcel: &Parcel, code: Code) -> Sent {
    if parcel.channel != Channel::Hlr {
        return Sent::Over(Outcome::Failed(code));
    }
    let code = if code == Code::EXPIRED {
        Code::HLR_TIMEOUT
    } else {
        code
    };
    let subscriber = Subscriber::unknown(code);
    Sent::Answered {
        outcome: subscriber.outcome(),
        report: subscriber.payload(parcel.id),
    }
}

/// One parcel for each recipient of a submission that a node holds.
fn parcels(submission: &Submission) -> impl Iterator<Item = Held<Parcel>> {
    let holder = submission.holder.into_iter();
    holder.flat_map(move |by| {
        submission.recipients.iter().map(move |recipient| Held {
            by,
            it: parcel(submission, recipient),
        })
    })
}

fn parcel(submission: &Submission, recipient: &Recipient) -> Parcel {
    Parcel {
        id: recipient.id,
        account: submission.account,
        channel: submission.channel,
        to: recipient.to,
        from: submission.from.clone(),
        text: submission.text.clone(),
        interactive: submission.interactive.clone(),
        shape: submission.shape,
        udh: submission.udh.clone(),
        priority: submission.priority,
        test_mode: submission.test_mode,
        expires_at: submission.expires_at,
        claim: Claim {
            due_at: submission.due_at(),
            attempt: 1,
        },
    }
}

async fn settle(
    store: Arc<dyn Store>,
    callbacks: Arc<Callbacks>,
    batch: Vec<Held<Settlement>>,
) -> Result<Vec<Settled>, StoreError> {
    let mut settled = Vec::with_capacity(batch.len());
    // All of a batch is held by one node, unless this one has just had to start anew.
    for group in batch.chunk_by(|a, b| a.by == b.by) {
        let results: Arc<Vec<Settlement>> =
            Arc::new(group.iter().map(|held| held.it.clone()).collect());
        let room = callbacks.reserve(group.len());
        let result = store
            .settle_sends(group[0].by, results, room.is_some())
            .await;
        let stored = result.inspect_err(|error| {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(%error, cause, "results of sending cannot be stored; trying again");
            callbacks.lost_track();
        })?;
        let ended = stored.iter().filter_map(|settled| match settled {
            Settled::Ended(ended) => Some(ended),
            Settled::Stored | Settled::Stale => None,
        });
        callbacks.take(group[0].by, room, ended);
        settled.extend(stored);
    }
    Ok(settled)
}
