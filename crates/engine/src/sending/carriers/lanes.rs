//! The lanes of a carrier queue: messages in memory that wait for the carrier.
//!
//! Each lane is bounded. A slot is reserved before a message is stored, so that every message that is stored as held
//! has one; other messages wait in the database.
//!
//! Accounts share a lane ([`super::fair`]). A new message gets a slot only while its account has less than three times
//! as many slots as are free, and claims leave a quarter of the slots free. So an account with nothing waiting finds a
//! slot, however much others send.

use std::sync::{Arc, Mutex};

use domain::{AccountId, Priority, Timestamp};
use tokio::sync::Notify;

use super::fair::{FairQueue, Queued};

pub(in crate::sending) const LANES: usize = Priority::ALL.len();
/// How many messages each lane may send per round: most from the high lane, but always some from the low one.
const SHARES: [u32; LANES] = [12, 4, 1];
/// An account may have this many times as many slots as are free.
const MAX_TIMES_FREE: usize = 3;
/// Claims leave one in this many slots free.
const LEFT_FREE: usize = 4;

/// The kinds of messages that need a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sending) enum Admission {
    /// A new message, which must leave slots for other accounts.
    Shared,
    /// A message that was claimed for a free slot, or that was in memory before. It may take any slot.
    Any,
}

/// The lanes of a carrier queue.
pub(in crate::sending) struct Lanes<T: Queued> {
    state: Mutex<State<T>>,
    filled: Notify,
}

struct State<T> {
    queues: [FairQueue<T>; LANES],
    /// The number of slots of each lane.
    capacity: usize,
    /// What each lane may still send in this round.
    shares: [u32; LANES],
    is_closed: bool,
}

/// A slot that is reserved for a message. Freed when dropped without being filled.
pub(in crate::sending) struct Reservation<T: Queued> {
    lanes: Arc<Lanes<T>>,
    lane: usize,
    account: AccountId,
    is_filled: bool,
}

impl<T: Queued> Reservation<T> {
    /// Puts a message into the slot. Returns it if the lanes were closed in the meantime.
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

    /// Changes the number of slots of each lane. Waiting messages stay.
    pub(in crate::sending) fn resize(&self, capacity: usize) {
        self.lock().capacity = capacity;
    }

    /// Reserves a slot, if one is free.
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
        if admission == Admission::Shared && queue.used_by(account) >= MAX_TIMES_FREE * free {
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
    pub(in crate::sending) fn claimable(&self) -> [usize; LANES] {
        let state = self.lock();
        let left_free = state.capacity / LEFT_FREE;
        std::array::from_fn(|lane| state.free(lane).saturating_sub(left_free))
    }

    /// Waits for the next message. `None` if the lanes are closed.
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

    /// Takes out the messages that `wanted` selects; the others keep their order.
    pub(in crate::sending) fn take_out(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let queues = state.queues.iter_mut();
        queues
            .flat_map(|queue| queue.take_out(&mut wanted))
            .collect()
    }

    /// Takes out the expired messages.
    pub(in crate::sending) fn take_expired(&self, now: Timestamp) -> Vec<T> {
        let mut state = self.lock();
        let queues = state.queues.iter_mut();
        queues.flat_map(|queue| queue.take_expired(now)).collect()
    }

    /// Closes the lanes and returns the waiting messages.
    pub(in crate::sending) fn close(&self) -> Vec<T> {
        self.lock().is_closed = true;
        self.filled.notify_one();
        self.take_out(|_| true)
    }

    pub(in crate::sending) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

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

    /// The most urgent lane that has a message and a share left in this round, else the next round begins.
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

/// The index of a lane in arrays of lanes.
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

    fn reserve(
        lanes: &Arc<Lanes<Item>>,
        account_id: u64,
        priority: Priority,
    ) -> Option<Reservation<Item>> {
        lanes.reserve(account(account_id), priority, Admission::Any)
    }

    fn fill(lanes: &Arc<Lanes<Item>>, priority: Priority, ids: std::ops::Range<u64>) {
        for id in ids {
            let slot = reserve(lanes, 1, priority).expect("a free slot");
            slot.fill((id, priority)).expect("open");
        }
    }

    #[tokio::test]
    async fn high_priority_goes_first_and_low_priority_never_starves() {
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
    async fn slots_are_bounded_and_freed() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::Normal, 1..10);
        let slot = reserve(&lanes, 1, Priority::Normal).expect("a free slot");
        assert!(reserve(&lanes, 1, Priority::Normal).is_none(), "full");
        assert!(
            reserve(&lanes, 1, Priority::High).is_some(),
            "another lane has its own slots"
        );
        drop(slot);
        fill(&lanes, Priority::Normal, 10..11);
        lanes.next().await;
        let free = || [0, 1, 2].map(|lane| lanes.lock().free(lane));
        assert_eq!(
            free(),
            [10, 1, 10],
            "a slot is free once its message is taken"
        );
        assert_eq!(lanes.claimable(), [8, 0, 8], "a quarter is left free");
        lanes.resize(5);
        assert_eq!(free(), [5, 0, 5]);
        assert_eq!(lanes.waiting(), 9, "waiting messages stay");
    }

    #[test]
    fn taking_messages_out_frees_their_slots() {
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
    fn closed_lanes_refuse_messages_even_with_a_reservation() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::High, 1..3);
        let slot = reserve(&lanes, 1, Priority::Low).expect("a free slot");
        assert_eq!(lanes.close().len(), 2);
        assert!(slot.fill((3, Priority::Low)).is_err());
        assert!(reserve(&lanes, 1, Priority::High).is_none());
        assert_eq!(lanes.waiting(), 0);
    }
}
