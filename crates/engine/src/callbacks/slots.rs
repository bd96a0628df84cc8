//! Limits the callbacks in memory, and shares that limit among receivers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ReceiverId;

use super::limit::{MIN_SHARE, may_take, shared};

/// Maximum number of callbacks in memory, waiting or in flight.
pub(super) const MAX_HELD: usize = 20_000;
/// The maximum for one receiver, however quick it is.
const MAX_PER_RECEIVER: usize = 4_000;
/// The maximum for a slow or unknown receiver.
const MAX_PER_SLOW_RECEIVER: usize = 512;
/// A receiver may hold as many more callbacks as it took in this number of ticks.
const TICKS_AHEAD: usize = 8;
/// Maximum number of callbacks that writes may create, including those on their way back to the database.
const MAX_RESERVED: usize = 16_384;

#[derive(Default)]
pub(super) struct Slots(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    reserved: usize,
    held: usize,
    by_receiver: HashMap<ReceiverId, Usage>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    held: usize,
    /// Callbacks that left memory since the last tick.
    left: usize,
    /// A moving average of the callbacks that left per tick.
    per_tick: usize,
}

impl Usage {
    /// A slow receiver may hold little: its callbacks can as well wait in the database.
    fn max_held(self) -> usize {
        (MAX_PER_SLOW_RECEIVER + TICKS_AHEAD * self.per_tick).min(MAX_PER_RECEIVER)
    }

    fn may_hold(self, share: Share, held: usize) -> bool {
        let used = match share {
            Share::Whole => self.held,
            Share::Half => 2 * self.held,
        };
        used < self.max_held() && may_take(used, held, MAX_HELD)
    }
}

/// Slots for the callbacks that a write may create.
pub(super) struct SlotReservation {
    slots: Arc<Slots>,
    count: usize,
}

/// A callback's slot, freed when dropped.
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// The receiver that it was admitted for.
    receiver: Option<ReceiverId>,
}

/// How much of its share a receiver may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Whole,
    /// The other half is for older callbacks in the database.
    Half,
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves slots, if there are enough.
    pub(super) fn reserve(self: &Arc<Self>, count: usize) -> Option<SlotReservation> {
        let mut counts = self.lock();
        if counts.reserved + count > MAX_RESERVED {
            return None;
        }
        counts.reserved += count;
        drop(counts);
        Some(SlotReservation {
            slots: self.clone(),
            count,
        })
    }

    /// How many callbacks to claim for each of these receivers, at most `most` in all. All of them will be admitted.
    pub(super) fn plan(&self, receivers: &[ReceiverId], most: usize) -> Vec<(ReceiverId, usize)> {
        let counts = self.lock();
        let mut free = MAX_HELD.saturating_sub(counts.held);
        let mut left = most;
        let mut planned = Vec::with_capacity(receivers.len());
        for (index, receiver) in receivers.iter().enumerate() {
            let usage = counts
                .by_receiver
                .get(receiver)
                .copied()
                .unwrap_or_default();
            if left == 0 || !usage.may_hold(Share::Whole, MAX_HELD - free) {
                continue;
            }
            let fair = left.div_ceil(receivers.len() - index);
            // A callback is admitted while its receiver holds less than half of the free slots, and each takes one of
            // them.
            let shared = free.saturating_sub(MAX_HELD - shared(MAX_HELD));
            let fitting = shared.saturating_sub(2 * usage.held) / 3;
            let fitting = fitting.max(MIN_SHARE.saturating_sub(usage.held)).max(1);
            let count = fair
                .min(fitting)
                .min(usage.max_held() - usage.held)
                .min(free);
            free -= count;
            left -= count;
            planned.push((*receiver, count));
        }
        planned
    }

    /// Updates how quick receivers are. Call it at regular intervals.
    pub(super) fn tick(&self) {
        self.lock().by_receiver.retain(|_, usage| {
            // Rounded so that it falls to zero.
            usage.per_tick =
                (3 * usage.per_tick + usage.left) / 4 + usize::from(usage.left > usage.per_tick);
            usage.left = 0;
            usage.held > 0 || usage.per_tick > 0
        });
    }
}

impl SlotReservation {
    /// Takes one of the reserved slots.
    pub(super) fn slot(&mut self) -> Slot {
        if self.count == 0 {
            // A write created more callbacks than were reserved; they still count.
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

impl Drop for SlotReservation {
    fn drop(&mut self) {
        self.slots.lock().reserved -= self.count;
    }
}

impl Slot {
    /// Admits the callback if its receiver may have one more.
    pub(super) fn admit(&mut self, receiver: ReceiverId, share: Share) -> bool {
        let mut counts = self.slots.lock();
        let usage = counts
            .by_receiver
            .get(&receiver)
            .copied()
            .unwrap_or_default();
        if !usage.may_hold(share, counts.held) {
            return false;
        }
        counts.reserved -= 1;
        counts.held += 1;
        counts.by_receiver.entry(receiver).or_default().held += 1;
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
        if let Some(usage) = counts.by_receiver.get_mut(&receiver) {
            usage.held -= 1;
            usage.left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(number: i64) -> ReceiverId {
        ReceiverId::from_i64(number).expect("in range")
    }

    /// Takes slots for a receiver, as many as it gets.
    fn fill(slots: &Arc<Slots>, id: ReceiverId, share: Share, most: usize) -> Vec<Slot> {
        let mut admitted = Vec::new();
        let mut reservation = slots.reserve(most).expect("enough slots");
        for _ in 0..most {
            let mut slot = reservation.slot();
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
    fn a_receiver_is_limited_and_every_slot_is_freed() {
        let slots = Arc::<Slots>::default();
        let slow = fill(&slots, receiver(1), Share::Whole, 5_000);
        assert_eq!(slow.len(), MAX_PER_SLOW_RECEIVER);
        let half = fill(&slots, receiver(2), Share::Half, 5_000);
        assert_eq!(half.len(), MAX_PER_SLOW_RECEIVER / 2);
        assert_eq!(
            counts(&slots),
            (0, MAX_PER_SLOW_RECEIVER + MAX_PER_SLOW_RECEIVER / 2)
        );
        drop((slow, half));
        assert_eq!(counts(&slots), (0, 0));
        for _ in 0..20 {
            slots.tick();
        }
        assert!(
            slots.lock().by_receiver.is_empty(),
            "idle receivers are dropped"
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
        assert_eq!(quick.len(), MAX_PER_RECEIVER);
        for _ in 0..40 {
            slots.tick();
        }
        let mut few = quick;
        few.truncate(MAX_PER_SLOW_RECEIVER - 1);
        for _ in 0..60 {
            slots.tick();
        }
        assert_eq!(fill(&slots, receiver(1), Share::Whole, 5_000).len(), 1);
    }

    #[test]
    fn a_new_receiver_gets_slots_however_many_have_a_backlog() {
        let slots = Arc::<Slots>::default();
        let mut held = Vec::new();
        for number in 1..=500 {
            held.push(fill(&slots, receiver(number), Share::Whole, 5_000));
        }
        assert!(held.iter().all(|slots| slots.len() >= MIN_SHARE));
        assert_eq!(
            fill(&slots, receiver(1_000), Share::Whole, MIN_SHARE).len(),
            MIN_SHARE
        );
        assert!(
            slots.reserve(512).is_some(),
            "slots for writes are separate"
        );
    }

    #[test]
    fn planned_callbacks_are_admitted() {
        for busy in [0, 3, 20, 100] {
            let slots = Arc::<Slots>::default();
            let held: Vec<_> = (1..=busy)
                .map(|number| fill(&slots, receiver(number), Share::Whole, 3_000))
                .collect();
            let receivers: Vec<_> = (50..80).map(receiver).collect();
            let planned = slots.plan(&receivers, 1_000);
            assert!(planned.iter().map(|(_, count)| count).sum::<usize>() <= 1_000);
            let mut all_admitted = Vec::new();
            for (id, count) in planned {
                let admitted = fill(&slots, id, Share::Whole, count);
                assert_eq!(admitted.len(), count, "{busy} busy, {id:?}");
                all_admitted.push(admitted);
            }
            assert!(!all_admitted.is_empty() || busy >= 100, "{busy}");
            drop(held);
        }
    }

    #[test]
    fn reservations_are_bounded_and_freed_with_their_write() {
        let slots = Arc::<Slots>::default();
        let reservation = slots.reserve(MAX_RESERVED).expect("all");
        assert!(slots.reserve(1).is_none());
        drop(reservation);
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
