//! Sending: from the lanes to a carrier, and the result into the store.
//!
//! One path for everything: what was accepted a moment ago, what was scheduled, what is tried again and what a dead
//! node left behind all pass the same lanes. The scan of the database is the truth; the hand-over at acceptance only
//! saves its delay.
//!
//! Each carrier has a line of its own, with its lanes and its window, so that one that is slow or down holds up nobody
//! else's messages. A parcel waits in the line of the first carrier of its route that works; a carrier that cannot take
//! it sends it on to the next.

mod binds;
mod fleet;
mod lanes;
mod line;
mod parcels;
mod results;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use domain::backoff::send_pause;
use domain::delivery::{Parcel, Sent, Submitted};
use domain::kill_point::{KillPoint, pass};
use domain::message::{Holder, SendTime, Submission};
use domain::ports::{Carrier, StoreError, WorkStore};
use domain::{Clock, Code, Outcome, PoolId, TestMode, Timestamp};
use jiff::SignedDuration;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use crate::callbacks::Callbacks;
use crate::entropy;
use crate::node::{Held, Node, UNSURE_FOR};
use crate::routing::{Plan, Routed, Routing};
use binds::Binds;
use fleet::Kept;
use lanes::LANES;
use line::{LOOK_EVERY, Line, Waiting};
use parcels::parcels;
use results::{Results, answered, expired, over};

pub(crate) use fleet::Fleet;

/// The longest pause of a message that found no room in memory: its carrier works, so it is worth asking again soon.
const LONGEST_WAIT_FOR_ROOM: SignedDuration = SignedDuration::from_mins(1);

/// How often a submission is given back whose write may still be on its way.
const DISOWN_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// A carrier with the word that configuration has for its kind.
pub struct Equipment {
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
    /// Messages that may wait in memory, over all carriers.
    held: usize,
    /// The loop of each line, by its carrier's name.
    sending: Mutex<HashMap<String, JoinHandle<()>>>,
    watching: std::sync::OnceLock<[AbortHandle; 3]>,
    binds: Binds,
}

/// Places that are kept for a submission, one for each recipient, with their routes.
pub(crate) struct Places(Vec<(Routed, Kept)>);

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
            sending: Mutex::default(),
            watching: std::sync::OnceLock::new(),
            binds: Binds::default(),
            store,
            clock,
            node,
            routing,
            held,
        });
        let scanning = tokio::spawn(dispatch.clone().scan_all()).abort_handle();
        let noting = tokio::spawn(dispatch.clone().note_all()).abort_handle();
        let sharing = tokio::spawn(dispatch.clone().share_all()).abort_handle();
        dispatch
            .watching
            .get_or_init(|| [scanning, noting, sharing]);
        dispatch
    }

    /// Goes over to another plan and to its carriers, in its order. One that was there before goes on as it is; one that
    /// is not there any more gets nothing new, and stops when what is with it is settled.
    pub(crate) async fn equip(
        self: &Arc<Self>,
        plan: Plan,
        equipment: Vec<Equipment>,
    ) -> Result<(), StoreError> {
        let before = self.routing.fleet();
        let capacity = self.held / LANES / equipment.len().max(1);
        let lines = equipment.into_iter().map(|Equipment { carrier, kind }| {
            let same = before
                .lines
                .iter()
                .find(|line| Arc::ptr_eq(&line.carrier, &carrier));
            let line = same
                .cloned()
                .unwrap_or_else(|| Line::new(carrier, kind, capacity));
            line.lanes.resize(capacity);
            line
        });
        let fleet = Arc::new(Fleet {
            lines: lines.collect(),
        });
        let gone = before.lines.iter().filter(|line| !fleet.has(line));
        let gone: Vec<_> = gone.cloned().collect();
        // Before they are out of service, so that their links are counted at every moment.
        self.binds.retiring(gone.iter().cloned());
        if let Err(error) = self.routing.set(plan, fleet.clone()).await {
            for line in &gone {
                self.binds.retired(line);
            }
            return Err(error);
        }
        for line in gone {
            self.retire(line);
        }
        let mut sending = self.sending.lock().expect("no holder panics");
        for line in fleet.lines.iter().filter(|line| !before.has(line)) {
            let task = tokio::spawn(self.clone().send_all(line.clone()));
            sending.insert(line.carrier.name().to_owned(), task);
        }
        drop(sending);
        self.binds.hurry();
        Ok(())
    }

    /// Takes a line out of service: what waits in it goes elsewhere.
    fn retire(self: &Arc<Self>, line: Arc<Line>) {
        let name = line.carrier.name().to_owned();
        let sending = self.sending.lock().expect("no holder panics").remove(&name);
        for waiting in line.lanes.close() {
            self.place(waiting.parcel);
        }
        let dispatch = self.clone();
        tokio::spawn(async move {
            // It ends by itself, for it may hold a parcel that waits for room in the window: that one is still sent.
            if let Some(sending) = sending
                && let Err(error) = sending.await
            {
                tracing::error!(carrier = name, %error, "sending ended badly");
            }
            line.drained().await;
            line.carrier.stop().await;
            dispatch.binds.retired(&line);
            tracing::info!(carrier = name, "this carrier is out of service");
        });
    }

    /// Says whose a submission is to be from the start. Where that is this node, with the places that it keeps for it.
    pub(crate) fn reserve(&self, submission: &Submission) -> (Holder, Option<Places>) {
        if submission.send != SendTime::Now {
            return (Holder::Nobody, None);
        }
        let mut places = Vec::with_capacity(submission.recipients.len());
        let mut pools = None;
        for recipient in &submission.recipients {
            let routed = self.routing.route(
                submission.channel,
                submission.account,
                &recipient.to,
                recipient.id.get(),
            );
            let kept = routed.fleet.reserve_any(&routed.route, submission.priority);
            match kept {
                Some(kept @ Kept::Here(..)) if pools.is_none() => places.push((routed, kept)),
                Some(Kept::Elsewhere(pool))
                    if places.is_empty() && pools.is_none_or(|other| other == pool) =>
                {
                    pools = Some(pool);
                }
                // All of a submission is one's, so this one is whoever's finds it.
                Some(_) | None => return (Holder::Nobody, None),
            }
        }
        match pools {
            Some(pool) => (Holder::Pool(pool), None),
            None => (Holder::Node(self.node.id()), Some(Places(places))),
        }
    }

    /// Takes a stored submission over.
    pub(crate) fn hand_over(self: &Arc<Self>, places: Places, submission: &Submission) {
        for (parcel, (routed, kept)) in parcels(submission).zip(places.0) {
            self.fill(kept, Waiting::new(parcel, routed));
        }
    }

    /// A submission may have been stored as held although its write failed: if so, it is given back.
    pub(crate) fn disown(self: &Arc<Self>, submission: &Submission) {
        for parcel in parcels(submission) {
            let dispatch = self.clone();
            tokio::spawn(async move {
                // The write may still be on its way.
                let until = Instant::now() + UNSURE_FOR;
                loop {
                    let is_last = Instant::now() >= until;
                    let now = Sent::Later(dispatch.clock.now());
                    if dispatch.results.store(&parcel, now).await || is_last {
                        return;
                    }
                    tokio::time::sleep(DISOWN_EVERY).await;
                }
            });
        }
    }

    /// Stops taking work; what is with the carriers is settled before this returns.
    pub(crate) async fn stop(&self) {
        for task in self.watching.get().into_iter().flatten() {
            task.abort();
        }
        for task in self.sending.lock().expect("no holder panics").values() {
            task.abort();
        }
        let fleet = self.routing.fleet();
        for line in &fleet.lines {
            line.drained().await;
        }
        for line in &fleet.lines {
            line.carrier.stop().await;
        }
        self.results.stop().await;
    }

    /// Sends what waits for a carrier, as long as it works, until it is out of service.
    async fn send_all(self: Arc<Self>, line: Arc<Line>) {
        loop {
            while line.is_down() && !line.lanes.is_closed() {
                self.relieve(&line);
                tokio::time::sleep(LOOK_EVERY).await;
            }
            let Some((waiting, place)) = line.next().await else {
                return;
            };
            let (dispatch, line) = (self.clone(), line.clone());
            tokio::spawn(async move {
                // What is not this node's any more is sent by somebody else.
                if dispatch.node.owns(&waiting.parcel).await {
                    dispatch.try_once(&line, waiting).await;
                }
                // Only now: an answer that is not stored yet still counts as being with the carrier.
                drop(place);
            });
        }
    }

    /// Takes from a carrier that is down what another can have, and what has no time left.
    fn relieve(self: &Arc<Self>, line: &Line) {
        let now = self.clock.now();
        let is_wanted = |waiting: &Waiting| waiting.parcel.it.expires_at <= now || waiting.can_go();
        for waiting in line.lanes.take_out(is_wanted) {
            if waiting.parcel.it.expires_at <= now {
                let sent = expired(&waiting.parcel.it);
                self.settle_later(waiting.parcel, sent);
            } else {
                self.place(waiting.parcel);
            }
        }
    }

    async fn try_once(self: &Arc<Self>, line: &Line, waiting: Waiting) {
        let parcel = &waiting.parcel.it;
        let sent = match parcel.test_mode {
            _ if parcel.expires_at <= self.clock.now() => expired(parcel),
            Some(TestMode::Deliver) => Sent::Over(Outcome::Delivered),
            Some(TestMode::Fail) => Sent::Over(Outcome::Failed(Code::ABSENT)),
            None if waiting.route.is_empty() => return self.send_on(waiting, Code::NO_ROUTE, true),
            None => {
                pass(KillPoint::SubmitBegins);
                let submitted = line.carrier.submit(parcel).await;
                pass(KillPoint::SubmitAnswered);
                line.count(&submitted);
                match submitted {
                    Submitted::Taken(references) => Sent::Taken {
                        carrier: line.carrier.name().to_owned(),
                        references,
                    },
                    Submitted::PartlyTaken { references, code } => Sent::PartlyTaken {
                        carrier: line.carrier.name().to_owned(),
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
        let (fleet, next) = (waiting.fleet.clone(), waiting.position + 1);
        let parcel = &waiting.parcel.it;
        // The link is another node's now, and so is the message.
        if may_work_later && let Some(pool) = fleet.way_out(&waiting.route, waiting.position) {
            return self.hand_on(waiting.parcel, pool);
        }
        if let Some(kept) = fleet.reserve(&waiting.route, next, parcel.priority) {
            return self.fill(kept, waiting);
        }
        let skipped = waiting.route.len() > next;
        if waiting.may_work_later || skipped {
            tracing::debug!(%code, "a message is tried again later");
            metrics::counter!("switchboard_send_retries_total").increment(1);
            let pause = send_pause(parcel.claim.attempt, dice());
            self.put_back(waiting.parcel, pause);
        } else {
            let sent = over(parcel, code);
            self.settle_later(waiting.parcel, sent);
        }
    }

    /// Puts a parcel into the line of a carrier, or back into the store where none has room.
    fn place(self: &Arc<Self>, parcel: Held<Parcel>) {
        let it = &parcel.it;
        let routed = self
            .routing
            .route(it.channel, it.account, &it.to, it.id.get());
        // The carriers before that of its pool have been asked, or are not to be asked here.
        let from = it
            .pool
            .and_then(|pool| routed.fleet.position_of(&routed.route, pool));
        let kept = from.and_then(|from| routed.fleet.reserve(&routed.route, from, it.priority));
        let kept = kept.or_else(|| routed.fleet.reserve_any(&routed.route, it.priority));
        if let Some(kept) = kept {
            let mut waiting = Waiting::new(parcel, routed);
            // What those said is not known here.
            waiting.may_work_later = from.is_some_and(|from| from > 0);
            self.fill(kept, waiting);
        } else {
            let pause = send_pause(it.claim.attempt, dice()).min(LONGEST_WAIT_FOR_ROOM);
            self.put_back(parcel, pause);
        }
    }

    fn fill(self: &Arc<Self>, kept: Kept, mut waiting: Waiting) {
        let (position, place) = match kept {
            Kept::Here(position, place) => (position, place),
            Kept::Elsewhere(pool) => return self.hand_on(waiting.parcel, pool),
        };
        waiting.position = position;
        // A carrier that goes out of service at this very moment: whoever looks next finds another.
        if let Err(waiting) = place.fill(waiting) {
            self.put_back(waiting.parcel, SignedDuration::ZERO);
        }
    }

    /// Leaves a parcel to the nodes that have a link to the carrier of a pool.
    fn hand_on(self: &Arc<Self>, parcel: Held<Parcel>, pool: PoolId) {
        metrics::counter!("switchboard_messages_handed_on_total").increment(1);
        self.settle_later(parcel, Sent::Pooled(pool));
    }

    /// Gives a parcel back to the store, to be tried after a pause, but before its time is over.
    fn put_back(self: &Arc<Self>, parcel: Held<Parcel>, pause: SignedDuration) {
        let again = self.clock.now() + pause;
        let sent = Sent::Later(again.min(parcel.it.expires_at));
        self.settle_later(parcel, sent);
    }

    fn settle_later(self: &Arc<Self>, parcel: Held<Parcel>, sent: Sent) {
        let dispatch = self.clone();
        tokio::spawn(async move {
            dispatch.results.store(&parcel, sent).await;
        });
    }
}

fn dice() -> u32 {
    u32::from_le_bytes(entropy::bytes())
}
