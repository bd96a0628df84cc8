//! The bound on callbacks in memory, and how receivers share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ReceiverId;

use super::limit::{FEW, may_take, shared};

/// Callbacks of all receivers that wait or are tried.
pub(super) const HELD: usize = 20_000;
/// Callbacks of one receiver among them, however quick it is.
const OF_ONE: usize = 4_000;
/// Callbacks of one receiver that nothing is known about, or that is slow.
const OF_SLOW: usize = 512;
/// A receiver may have as many more in memory as it took in this number of ticks.
const TICKS_AHEAD: usize = 8;
/// Callbacks that writes under way may bring, and those that are on their way back to the database.
const RESERVED: usize = 16_384;

/// Counts the callbacks in memory.
#[derive(Default)]
pub(super) struct Slots(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    reserved: usize,
    held: usize,
    of: HashMap<ReceiverId, Use>,
}

/// What one receiver uses.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    held: usize,
    /// Callbacks that left memory since the last tick.
    left: usize,
    /// A moving average of those that left with each tick.
    per_tick: usize,
}

impl Use {
    /// How many it may hold. What it takes only slowly waits in the database as well as in memory.
    fn most(self) -> usize {
        (OF_SLOW + TICKS_AHEAD * self.per_tick).min(OF_ONE)
    }

    fn may_hold(self, share: Share, held: usize) -> bool {
        let used = match share {
            Share::Whole => self.held,
            Share::Half => 2 * self.held,
        };
        used < self.most() && may_take(used, held, HELD)
    }
}

/// Slots for the callbacks that a write may bring.
pub(super) struct Room {
    slots: Arc<Slots>,
    count: usize,
}

/// A callback's slot. Freed when this is dropped.
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// Whose queue it was admitted to.
    receiver: Option<ReceiverId>,
}

/// How much of its share a receiver may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it.
    Whole,
    /// Half of it: the other half is for older callbacks that wait in the database.
    Half,
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves slots, if there are as many.
    pub(super) fn reserve(self: &Arc<Self>, count: usize) -> Option<Room> {
        let mut counts = self.lock();
        if counts.reserved + count > RESERVED {
            return None;
        }
        counts.reserved += count;
        drop(counts);
        Some(Room {
            slots: self.clone(),
            count,
        })
    }

    /// How many callbacks to claim for each of these receivers, at most `most` in all: as many as will be admitted.
    pub(super) fn plan(&self, receivers: &[ReceiverId], most: usize) -> Vec<(ReceiverId, usize)> {
        let counts = self.lock();
        let mut free = HELD.saturating_sub(counts.held);
        let mut left = most;
        let mut planned = Vec::with_capacity(receivers.len());
        for (place, receiver) in receivers.iter().enumerate() {
            let of = counts.of.get(receiver).copied().unwrap_or_default();
            if left == 0 || !of.may_hold(Share::Whole, HELD - free) {
                continue;
            }
            let fair = left.div_ceil(receivers.len() - place);
            // One more is admitted while it holds less than half of what is free, and each takes one of that.
            let shared = free.saturating_sub(HELD - shared(HELD));
            let fitting = shared.saturating_sub(2 * of.held) / 3;
            let fitting = fitting.max(FEW.saturating_sub(of.held)).max(1);
            let count = fair.min(fitting).min(of.most() - of.held).min(free);
            free -= count;
            left -= count;
            planned.push((*receiver, count));
        }
        planned
    }

    /// Brings up to date how quick receivers are. To be called at regular times.
    pub(super) fn tick(&self) {
        self.lock().of.retain(|_, of| {
            // Rounded so that it falls to nothing.
            of.per_tick = (3 * of.per_tick + of.left) / 4 + usize::from(of.left > of.per_tick);
            of.left = 0;
            of.held > 0 || of.per_tick > 0
        });
    }
}

impl Room {
    /// One of its slots.
    pub(super) fn slot(&mut self) -> Slot {
        if self.count == 0 {
            // More callbacks than reserved slots: they still count.
            self.slots.lock().reserved += 1;
        } else {
            self.count -= 1;
        }
        Slot {
            slots: self.slots.clone(),
            receiver: None,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.slots.lock().reserved -= self.count;
    }
}

impl Slot {
    /// Counts it as one of a receiver's, if that may have one more.
    pub(super) fn admit(&mut self, receiver: ReceiverId, share: Share) -> bool {
        let mut counts = self.slots.lock();
        let of = counts.of.get(&receiver).copied().unwrap_or_default();
        if !of.may_hold(share, counts.held) {
            return false;
        }
        counts.reserved -= 1;
        counts.held += 1;
        counts.of.entry(receiver).or_default().held += 1;
        drop(counts);
        self.receiver = Some(receiver);
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.slots.lock();
        let Some(receiver) = self.receiver else {
            counts.reserved -= 1;
            return;
        };
        counts.held -= 1;
        if let Some(of) = counts.of.get_mut(&receiver) {
            of.held -= 1;
            of.left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(number: i64) -> ReceiverId {
        ReceiverId::from_i64(number).expect("in range")
    }

    /// Slots of a receiver, as many as it gets.
    fn fill(slots: &Arc<Slots>, id: ReceiverId, share: Share, most: usize) -> Vec<Slot> {
        let mut admitted = Vec::new();
        let mut room = slots.reserve(most).expect("room");
        for _ in 0..most {
            let mut slot = room.slot();
            if slot.admit(id, share) {
                admitted.push(slot);
            }
        }
        admitted
    }

    fn counts(slots: &Slots) -> (usize, usize) {
        let counts = slots.lock();
        (counts.reserved, counts.held)
    }

    #[test]
    fn a_receiver_is_bounded_and_every_slot_is_freed() {
        let slots = Arc::<Slots>::default();
        let one = fill(&slots, receiver(1), Share::Whole, 5_000);
        assert_eq!(one.len(), OF_SLOW);
        let half = fill(&slots, receiver(2), Share::Half, 5_000);
        assert_eq!(half.len(), OF_SLOW / 2);
        assert_eq!(counts(&slots), (0, OF_SLOW + OF_SLOW / 2));
        drop((one, half));
        assert_eq!(counts(&slots), (0, 0));
        for _ in 0..20 {
            slots.tick();
        }
        assert!(
            slots.lock().of.is_empty(),
            "those that are done are forgotten"
        );
    }

    #[test]
    fn a_quick_receiver_may_hold_more_and_a_slow_one_less_again() {
        let slots = Arc::<Slots>::default();
        for _ in 0..20 {
            drop(fill(&slots, receiver(1), Share::Whole, 5_000));
            slots.tick();
        }
        let quick = fill(&slots, receiver(1), Share::Whole, 5_000);
        assert_eq!(quick.len(), OF_ONE);
        for _ in 0..40 {
            slots.tick();
        }
        let mut few = quick;
        few.truncate(OF_SLOW - 1);
        for _ in 0..60 {
            slots.tick();
        }
        assert_eq!(fill(&slots, receiver(1), Share::Whole, 5_000).len(), 1);
    }

    #[test]
    fn a_new_receiver_finds_room_however_many_have_a_backlog() {
        let slots = Arc::<Slots>::default();
        let mut held = Vec::new();
        for number in 1..=500 {
            held.push(fill(&slots, receiver(number), Share::Whole, 5_000));
        }
        assert!(held.iter().all(|of| of.len() >= FEW));
        assert_eq!(fill(&slots, receiver(1_000), Share::Whole, FEW).len(), FEW);
        assert!(
            slots.reserve(512).is_some(),
            "writes have slots of their own"
        );
    }

    #[test]
    fn what_is_planned_is_admitted() {
        for busy in [0, 3, 20, 100] {
            let slots = Arc::<Slots>::default();
            let held: Vec<_> = (1..=busy)
                .map(|number| fill(&slots, receiver(number), Share::Whole, 3_000))
                .collect();
            let receivers: Vec<_> = (50..80).map(receiver).collect();
            let planned = slots.plan(&receivers, 1_000);
            assert!(planned.iter().map(|(_, count)| count).sum::<usize>() <= 1_000);
            let mut kept = Vec::new();
            for (id, count) in planned {
                let admitted = fill(&slots, id, Share::Whole, count);
                assert_eq!(admitted.len(), count, "{busy} busy, {id:?}");
                kept.push(admitted);
            }
            assert!(!kept.is_empty() || busy >= 100, "{busy}");
            drop(held);
        }
    }

    #[test]
    fn reservations_are_bounded_and_freed_with_their_write() {
        let slots = Arc::<Slots>::default();
        let room = slots.reserve(RESERVED).expect("all");
        assert!(slots.reserve(1).is_none());
        drop(room);
        assert!(slots.reserve(1).is_some());
    }

    #[test]
    fn a_panic_frees_the_slot() {
        let slots = Arc::<Slots>::default();
        let held = fill(&slots, receiver(1), Share::Whole, 1);
        let panicked = std::thread::spawn(move || {
            let _held = held;
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(counts(&slots), (0, 0));
    }
}
