//! The lanes: messages that this node holds in memory until a carrier has room for them.
//!
//! Each lane is bounded. A place is reserved before a message is stored, so what is stored as held does fit; what does
//! not fit is stored as nobody's and waits in the database.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use domain::Priority;
use tokio::sync::Notify;

/// How many lanes there are.
pub(super) const LANES: usize = Priority::ALL.len();
/// In a round each lane may send so many: the urgent one most, and even mass messages always some.
const SHARES: [u32; LANES] = [12, 4, 1];

/// The lanes of a carrier.
pub(super) struct Lanes<T> {
    state: Mutex<State<T>>,
    filled: Notify,
}

struct State<T> {
    queues: [VecDeque<T>; LANES],
    /// How many places each lane has.
    capacity: usize,
    /// Places that are taken or reserved.
    used: [usize; LANES],
    /// What each lane may still send in this round.
    shares: [u32; LANES],
    is_closed: bool,
}

/// A place in a lane, kept for a message that is on its way into it. One that is not used is given back.
pub(super) struct Reservation<T> {
    lanes: Arc<Lanes<T>>,
    lane: usize,
    is_filled: bool,
}

impl<T> Reservation<T> {
    /// Puts a message into its place. Gives it back when the lanes were closed in the meantime.
    pub(super) fn fill(mut self, item: T) -> Result<(), T> {
        let mut state = self.lanes.lock();
        if state.is_closed {
            return Err(item);
        }
        self.is_filled = true;
        state.queues[self.lane].push_back(item);
        drop(state);
        self.lanes.filled.notify_one();
        Ok(())
    }
}

impl<T> Drop for Reservation<T> {
    fn drop(&mut self) {
        if !self.is_filled {
            self.lanes.lock().used[self.lane] -= 1;
        }
    }
}

impl<T> Lanes<T> {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let state = State {
            queues: std::array::from_fn(|_| VecDeque::new()),
            capacity,
            used: [0; LANES],
            shares: SHARES,
            is_closed: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            filled: Notify::new(),
        })
    }

    /// Gives each lane so many places from now on. What waits already stays.
    pub(super) fn resize(&self, capacity: usize) {
        self.lock().capacity = capacity;
    }

    /// Keeps a place, if there is one.
    pub(super) fn reserve(self: &Arc<Self>, priority: Priority) -> Option<Reservation<T>> {
        let lane = lane(priority);
        let mut state = self.lock();
        if state.is_closed || state.used[lane] >= state.capacity {
            return None;
        }
        state.used[lane] += 1;
        drop(state);
        Some(Reservation {
            lanes: self.clone(),
            lane,
            is_filled: false,
        })
    }

    /// How many places of each lane are free.
    pub(super) fn free(&self) -> [usize; LANES] {
        let state = self.lock();
        state.used.map(|used| state.capacity.saturating_sub(used))
    }

    /// Takes the next one, waiting for it. `None`: they were closed.
    pub(super) async fn next(&self) -> Option<T> {
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

    /// Takes those out that `wanted` chooses; the others keep their order.
    pub(super) fn take_out(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let mut taken = Vec::new();
        for lane in 0..LANES {
            let (out, kept): (VecDeque<T>, VecDeque<T>) = std::mem::take(&mut state.queues[lane])
                .into_iter()
                .partition(&mut wanted);
            state.used[lane] -= out.len();
            state.queues[lane] = kept;
            taken.extend(out);
        }
        taken
    }

    /// Takes nothing more, and gives back what waits.
    pub(super) fn close(&self) -> Vec<T> {
        self.lock().is_closed = true;
        self.filled.notify_one();
        self.take_out(|_| true)
    }

    /// Whether they take nothing more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().queues.iter().map(VecDeque::len).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state.lock().expect("no holder panics")
    }
}

impl<T> State<T> {
    fn pop(&mut self) -> Option<T> {
        let index = self.choose()?;
        self.shares[index] -= 1;
        self.used[index] -= 1;
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
    use super::*;

    fn fill(lanes: &Arc<Lanes<(u64, Priority)>>, priority: Priority, ids: std::ops::Range<u64>) {
        for id in ids {
            let place = lanes.reserve(priority).expect("there is room");
            place.fill((id, priority)).expect("open");
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
        let kept = lanes.reserve(Priority::Normal).expect("room");
        assert!(lanes.reserve(Priority::Normal).is_none(), "full");
        assert!(
            lanes.reserve(Priority::High).is_some(),
            "another lane has its own places"
        );
        drop(kept);
        fill(&lanes, Priority::Normal, 10..11);
        lanes.next().await;
        assert_eq!(
            lanes.free(),
            [10, 1, 10],
            "a place is free once its message is taken"
        );
        lanes.resize(5);
        assert_eq!(lanes.free(), [5, 0, 5]);
        assert_eq!(lanes.waiting(), 9, "what waits stays");
    }

    #[test]
    fn what_is_taken_out_frees_its_places() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::Normal, 1..7);
        let odd = lanes.take_out(|(id, _)| id % 2 == 1);
        assert_eq!(odd.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!((lanes.waiting(), lanes.free()), (3, [10, 7, 10]));
    }

    #[test]
    fn closed_lanes_take_nothing_not_even_into_a_place_that_was_kept() {
        let lanes = Lanes::new(10);
        fill(&lanes, Priority::High, 1..3);
        let kept = lanes.reserve(Priority::Low).expect("room");
        assert_eq!(lanes.close().len(), 2);
        assert!(kept.fill((3, Priority::Low)).is_err());
        assert!(lanes.reserve(Priority::High).is_none());
        assert_eq!(lanes.waiting(), 0);
    }
}
