//! The lanes: messages that this node holds in memory until a carrier has room for them.
//!
//! Each lane is bounded. A place is reserved before a message is stored, so what is stored as held does fit; what does
//! not fit is stored as nobody's and waits in the database.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use domain::Priority;
use domain::delivery::Parcel;
use tokio::sync::Notify;

use crate::node::Held;

/// How many lanes there are.
pub(super) const LANES: usize = Priority::ALL.len();
/// In a round each lane may send so many: the urgent one most, and even mass messages always some.
const SHARES: [u32; LANES] = [12, 4, 1];

/// The lanes of a node.
pub(super) struct Lanes {
    state: Mutex<State>,
    filled: Notify,
}

struct State {
    queues: [VecDeque<Held<Parcel>>; LANES],
    /// Places that are neither taken nor reserved.
    free: [usize; LANES],
    /// What each lane may still send in this round.
    shares: [u32; LANES],
}

/// Places in a lane, kept for messages that are on their way into it. Those that are not used are given back.
pub(crate) struct Reservation {
    lanes: Arc<Lanes>,
    lane: usize,
    count: usize,
}

impl Reservation {
    /// How many places are kept.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Puts parcels into their places; there must be no more than were kept.
    pub(crate) fn fill(mut self, parcels: impl IntoIterator<Item = Held<Parcel>>) {
        let mut state = self.lanes.lock();
        for parcel in parcels {
            debug_assert_eq!(
                lane(parcel.it.priority),
                self.lane,
                "a place is kept in one lane"
            );
            self.count = self.count.saturating_sub(1);
            state.queues[self.lane].push_back(parcel);
        }
        drop(state);
        self.lanes.filled.notify_one();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.count > 0 {
            self.lanes.lock().free[self.lane] += self.count;
        }
    }
}

impl Lanes {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let state = State {
            queues: std::array::from_fn(|_| VecDeque::new()),
            free: [capacity; LANES],
            shares: SHARES,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            filled: Notify::new(),
        })
    }

    /// Keeps places, if there are so many.
    pub(super) fn reserve(
        self: &Arc<Self>,
        priority: Priority,
        count: usize,
    ) -> Option<Reservation> {
        let lane = lane(priority);
        let free = &mut self.lock().free[lane];
        *free = free.checked_sub(count)?;
        Some(Reservation {
            lanes: self.clone(),
            lane,
            count,
        })
    }

    /// Keeps all the places there are in each lane, up to `most`.
    pub(super) fn reserve_up_to(self: &Arc<Self>, most: usize) -> [Reservation; LANES] {
        let mut state = self.lock();
        std::array::from_fn(|lane| {
            let count = state.free[lane].min(most);
            state.free[lane] -= count;
            Reservation {
                lanes: self.clone(),
                lane,
                count,
            }
        })
    }

    /// Takes the next parcel, waiting for one.
    pub(super) async fn next(&self) -> Held<Parcel> {
        loop {
            if let Some(parcel) = self.lock().pop() {
                return parcel;
            }
            self.filled.notified().await;
        }
    }

    /// How many parcels wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().queues.iter().map(VecDeque::len).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}

impl State {
    fn pop(&mut self) -> Option<Held<Parcel>> {
        let index = self.choose()?;
        self.shares[index] -= 1;
        self.free[index] += 1;
        self.queues[index].pop_front()
    }

    /// The most urgent lane that has something and is still allowed to in this round; then a new round.
    fn choose(&mut self) -> Option<usize> {
        let ready = |state: &Self| {
            (0..LANES).find(|i| state.shares[*i] > 0 && !state.queues[*i].is_empty())
        };
        ready(self).or_else(|| {
            self.shares = SHARES;
            ready(self)
        })
    }
}

fn lane(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

#[cfg(test)]
mod tests {
    use domain::delivery::Claim;
    use domain::text::measure;
    use domain::{AccountId, Channel, MessageId, Msisdn, NodeId, Originator, Timestamp};

    use super::*;

    fn parcel(id: u64, priority: Priority) -> Held<Parcel> {
        let by = NodeId::new(1).expect("in range");
        let it = Parcel {
            id: MessageId::new(id).expect("in range"),
            account: AccountId::new(1).expect("in range"),
            to: Msisdn::parse("+37120000001").expect("a number"),
            channel: Channel::Sms,
            interactive: None,
            from: Some(Originator::Name("Acme".to_owned())),
            text: "Hello".to_owned(),
            shape: measure("Hello").expect("a text"),
            udh: None,
            priority,
            test_mode: None,
            expires_at: Timestamp::MAX,
            claim: Claim {
                due_at: Timestamp::UNIX_EPOCH,
                attempt: 1,
            },
        };
        Held { by, it }
    }

    fn fill(lanes: &Arc<Lanes>, priority: Priority, ids: std::ops::Range<u64>) {
        let count = usize::try_from(ids.end - ids.start).expect("few");
        let places = lanes.reserve(priority, count).expect("there is room");
        places.fill(ids.map(|id| parcel(id, priority)));
    }

    #[tokio::test]
    async fn urgent_messages_go_first_and_mass_messages_never_starve() {
        let lanes = Lanes::new(100);
        for (priority, ids) in Priority::ALL.into_iter().zip([0, 100, 200]) {
            fill(&lanes, priority, ids + 1..ids + 51);
        }
        let mut round = Vec::new();
        for _ in 0..17 {
            round.push(lanes.next().await.it.priority);
        }
        let count = |priority| round.iter().filter(|p| **p == priority).count();
        assert_eq!(Priority::ALL.map(count), [12, 4, 1]);
        assert_eq!(round[0], Priority::High);
    }

    #[tokio::test]
    async fn an_empty_lane_leaves_its_share_to_the_others() {
        let lanes = Lanes::new(100);
        fill(&lanes, Priority::Low, 1..21);
        for id in 1..21 {
            assert_eq!(lanes.next().await.it.id.get(), id, "in order");
        }
        assert_eq!(lanes.waiting(), 0);
    }

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let lanes = Lanes::new(10);
        let kept = lanes.reserve(Priority::Normal, 10).expect("room");
        assert!(lanes.reserve(Priority::Normal, 1).is_none(), "full");
        assert!(
            lanes.reserve(Priority::High, 10).is_some(),
            "another lane has its own places"
        );
        kept.fill([parcel(1, Priority::Normal)]);
        assert!(
            lanes.reserve(Priority::Normal, 9).is_some(),
            "unused places come back"
        );
        lanes.next().await;
        assert!(
            lanes.reserve(Priority::Normal, 10).is_some(),
            "a place is free once its parcel is taken"
        );
    }
}
