//! The lanes: messages that this node holds in memory until a carrier has room for them.
//!
//! Each lane is bounded. A slot is reserved before a message is stored, so what is stored as held does fit; what does
//! not fit waits in the database.
//!
//! Accounts share a lane ([`super::fair`]). An account may take a slot at acceptance only while it has less than three times
//! as many as are free, and claims leave a quarter of the slots free. So an account that has nothing waiting finds a slot,
//! however much the others send.

use std::sync::{Arc, Mutex};

use domain::{AccountId, Priority, Timestamp};
use tokio::sync::Notify;

use super::fair::{FairQueue, Queued};

/// How many lanes there are.
pub(in crate::sending) const LANES: usize = Priority::ALL.len();
/// In a round each lane may send so many: the urgent one most, and even mass messages always some.
const SHARES: [u32; LANES] = [12, 4, 1];
/// An account may have so many times the free slots.
const MOST_OF_FREE: usize = 3;
/// Claims leave this part of the slots free.
const KEPT_FREE: usize = 4;

/// Who asks for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Admission {
    /// A new message: its account must not take the slots of others.
    Shared,
    /// A message that was claimed because there is room for it, or that was in memory before: any free slot.
    Any,
}

/// The lanes of a carrier.
pub(in crate::sending) struct Lanes<T: Queued> {
    state: Mutex<State<T>>,
    filled: Notify,
}

struct State<T> {
    queues: [FairQueue<T>; LANES],
    /// How many slots each lane has.
    capacity: usize,
    /// What each lane may still send in this round.
    shares: [u32; LANES],
    is_closed: bool,
}

/// A slot in a lane, kept for a message that is on its way into it. One that is not used is given back.
pub(in crate::sending) struct Reservation<T: Queued> {
    lanes: Arc<Lanes<T>>,
    lane: usize,
    account: AccountId,
    is_filled: bool,
}

impl<T: Queued> Reservation<T> {
    /// Puts a message into its slot. Gives it back when the lanes were closed in the meantime.
    pub(in crate::sending) fn fill(mut self, item: T) -> Result<(), T> {
        let mut state = self.lanes.lock();
        if state.is_closed {
            return Err(item);
        }
        self.is_filled = true;
        state.queues[self.lane].push(item);
        drop(state);
        self.lanes.filled.notify_one();
        Ok(())
    }
}

impl<T: Queued> Drop for Reservation<T> {
    fn drop(&mut self) {
        if !self.is_filled {
            self.lanes.lock().queues[self.lane].release(self.account);
        }
    }
}

impl<T: Queued> Lanes<T> {
    pub(in crate::sending) fn new(capacity: usize) -> Arc<Self> {
        let state = State {
            queues: std::array::from_fn(|_| FairQueue::default()),
            capacity,
            shares: SHARES,
            is_closed: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            filled: Notify::new(),
        })
    }

    /// Gives each lane so many slots from now on. What waits already stays.
    pub(in crate::sending) fn resize(&self, capacity: usize) {
        self.lock().capacity = capacity;
    }

    /// Keeps a slot, if there is one.
    pub(in crate::sending) fn reserve(
        self: &Arc<Self>,
        account: AccountId,
        priority: Priority,
        admission: Admission,
    ) -> Option<Reservation<T>> {
        let lane = lane(priority);
        let mut state = self.lock();
        let free = state.free(lane);
        if state.is_closed || free == 0 {
            return None;
        }
        let queue = &mut state.queues[lane];
        if admission == Admission::Shared && queue.used_by(account) >= MOST_OF_FREE * free {
            return None;
        }
        queue.reserve(account);
        drop(state);
        Some(Reservation {
            lanes: self.clone(),
            lane,
            account,
            is_filled: false,
        })
    }

    /// How many messages of each lane may be claimed.
    pub(in crate::sending) fn room(&self) -> [usize; LANES] {
        let state = self.lock();
        let kept_free = state.capacity / KEPT_FREE;
        std::array::from_fn(|lane| state.free(lane).saturating_sub(kept_free))
    }

    /// Takes the next one, waiting for it. `None`: they were closed.
    pub(in crate::sending) async fn next(&self) -> Option<T> {
        loop {
            {
                let mut state = self.lock();
                if let Some(item) = state.pop() {
                    return Some(item);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Takes out those that `wanted` chooses; the others keep their order.
    pub(in crate::sending) fn take_out(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let queues = state.queues.iter_mut();
        queues
            .flat_map(|queue| queue.take_out(&mut wanted))
            .collect()
    }

    /// Takes out what has no time left.
    pub(in crate::sending) fn take_expired(&self, now: Timestamp) -> Vec<T> {
        let mut state = self.lock();
        let queues = state.queues.iter_mut();
        queues.flat_map(|queue| queue.take_expired(now)).collect()
    }

    /// Takes nothing more, and gives back what waits.
    pub(in crate::sending) fn close(&self) -> Vec<T> {
        self.lock().is_closed = true;
        self.filled.notify_one();
        self.take_out(|_| true)
    }

    /// Whether they take nothing more.
    pub(in crate::sending) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// How many wait.
    pub(in crate::sending) fn waiting(&self) -> usize {
        self.lock().queues.iter().map(FairQueue::waiting).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state.lock().expect("no holder panics")
    }
}

impl<T: Queued> State<T> {
    fn free(&self, lane: usize) -> usize {
        self.capacity.saturating_sub(self.queues[lane].used())
    }

    fn pop(&mut self) -> Option<T> {
        let index = self.choose()?;
        self.shares[index] -= 1;
        self.queues[index].pop()
    }

    /// The most urgent lane that has something and is still allowed to in this round; then a new round.
    fn choose(&mut self) -> Option<usize> {
        let ready = |state: &Self| {
            (0..LANES).find(|i| state.shares[*i] > 0 && state.queues[*i].waiting() > 0)
        };
        ready(self).or_else(|| {
            self.shares = SHARES;
            ready(self)
        })
    }
}

/// The place of a lane in arrays of lanes.
pub(in crate::sending) fn lane(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (u64, Priority);

    impl Queued for Item {
        fn account(&self) -> AccountId {
            account(1)
        }

        fn parts(&self) -> u32 {
            1
        }

        fn expires_at(&self) -> Timestamp {
            Timestamp::MAX
        }
    }

    fn account(id: u64) -> AccountId {
        AccountId::new(id).expect("not zero")
    }

    fn reserve(lanes: &Arc<Lanes<Item>>, of: u64, priority: Priority) -> Option<Reservation<Item>> {
        lanes.reserve(account(of), priority, Admission::Any)
    }

    fn fill(lanes: &Arc<Lanes<Item>>, priority: Priority, ids: std::ops::Range<u64>) {
        for id in ids {
            let slot = reserve(lanes, 1, priority).expect("there is room");
            slot.fill((id, priority)).expect("open");
        }
    }

    #[tokio::test]
    async fn urgent_messages_go_first_and_mass_messages_never_starve() {
        let lanes = Lanes::new(100);
        for (priority, ids) in Priority::ALL.into_iter().zip([0, 100, 200]) {
            fill(&lanes, priority, ids + 1..ids + 51);
        }
        let mut round = Vec::new();
        for _ in 0..17 {
            round.push(lanes.next().await.expect("open").1);
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
            assert_eq!(lanes.next().await.expect("open").0, id, "in order");
        }
        assert_eq!(lanes.waiting(), 0);
    }

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::Normal, 1..10);
        let kept = reserve(&lanes, 1, Priority::Normal).expect("room");
        assert!(reserve(&lanes, 1, Priority::Normal).is_none(), "full");
        assert!(
            reserve(&lanes, 1, Priority::High).is_some(),
            "another lane has its own places"
        );
        drop(kept);
        fill(&lanes, Priority::Normal, 10..11);
        lanes.next().await;
        let free = || [0, 1, 2].map(|lane| lanes.lock().free(lane));
        assert_eq!(
            free(),
            [10, 1, 10],
            "a slot is free once its message is taken"
        );
        assert_eq!(lanes.room(), [8, 0, 8], "a quarter is kept free");
        lanes.resize(5);
        assert_eq!(free(), [5, 0, 5]);
        assert_eq!(lanes.waiting(), 9, "what waits stays");
    }

    #[test]
    fn what_is_taken_out_frees_its_places() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::Normal, 1..7);
        let odd = lanes.take_out(|(id, _)| id % 2 == 1);
        assert_eq!(odd.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!((lanes.waiting(), lanes.lock().free(1)), (3, 7));
    }

    #[test]
    fn an_account_leaves_slots_for_others() {
        let lanes = Lanes::<Item>::new(100);
        let take = |of| lanes.reserve(account(of), Priority::Normal, Admission::Shared);
        let take_all = |of| std::iter::from_fn(|| take(of)).collect::<Vec<_>>();
        let first = take_all(1);
        assert_eq!(first.len(), 75);
        let second = take_all(2);
        assert!(second.len() >= 15, "{}", second.len());
        assert!(take(3).is_some(), "a third finds a slot");
        assert!(
            reserve(&lanes, 1, Priority::Normal).is_some(),
            "a claimed message, too"
        );
        drop(first);
        assert!(take(2).is_some());
    }

    #[test]
    fn closed_lanes_take_nothing_not_even_into_a_place_that_was_kept() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::High, 1..3);
        let kept = reserve(&lanes, 1, Priority::Low).expect("room");
        assert_eq!(lanes.close().len(), 2);
        assert!(kept.fill((3, Priority::Low)).is_err());
        assert!(reserve(&lanes, 1, Priority::High).is_none());
        assert_eq!(lanes.waiting(), 0);
    }
}
