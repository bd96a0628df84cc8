//! Requests that wait for an answer, indexed by sequence number and linked in the order of sending.
//!
//! One timer is enough, because the oldest request times out first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::{SubmitAnswer, SubmitError};

/// The highest sequence number, which is followed by 1.
pub(super) const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;

/// Marks the end of the list.
const NONE: usize = usize::MAX;

pub(super) type Answer = Result<SubmitAnswer, SubmitError>;

/// When a request was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// The same without the time in which nothing was read; see `Clock`.
    pub(super) active: Duration,
    /// How many buffers the writer had taken before the one with this request.
    pub(super) buffer: u64,
}

pub(super) struct Outstanding {
    slots: Vec<Slot>,
    free: Vec<usize>,
    by_sequence: HashMap<u32, usize, BuildHasherDefault<SequenceHasher>>,
    oldest: usize,
    newest: usize,
    next_sequence: u32,
}

struct Slot {
    sequence: u32,
    sent: Sent,
    older: usize,
    newer: usize,
    state: SlotState,
}

enum SlotState {
    Free,
    /// The submitter state for the answer.
    Waiting(Waker),
    /// The submitter has given up. The request still counts, because the SMSC has it.
    Abandoned,
    /// The answer has arrived, but the submitter has not taken it yet.
    Answered(Answer),
}

impl Outstanding {
    pub(super) fn new(first_sequence: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_sequence: HashMap::default(),
            oldest: NONE,
            newest: NONE,
            next_sequence: first_sequence.clamp(1, LAST_SEQUENCE),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_sequence.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_sequence.is_empty()
    }

    /// The next sequence number that no request in flight and none of `also_taken` has.
    pub(super) fn take_sequence(&mut self, also_taken: [Option<u32>; 2]) -> u32 {
        loop {
            let sequence = self.next_sequence;
            self.next_sequence = if sequence == LAST_SEQUENCE {
                1
            } else {
                sequence + 1
            };
            if !self.by_sequence.contains_key(&sequence) && !also_taken.contains(&Some(sequence)) {
                return sequence;
            }
        }
    }

    /// Adds a request. Returns the slot from which its answer is taken.
    pub(super) fn insert(&mut self, sequence: u32, sent: Sent, waker: Waker) -> usize {
        let slot = Slot {
            sequence,
            sent,
            older: self.newest,
            newer: NONE,
            state: SlotState::Waiting(waker),
        };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at] = slot;
            at
        } else {
            self.slots.push(slot);
            self.slots.len() - 1
        };
        match self.newest {
            NONE => self.oldest = at,
            newest => self.slots[newest].newer = at,
        }
        self.newest = at;
        self.by_sequence.insert(sequence, at);
        at
    }

    /// Stores the answer of a request and adds its waker to `wakers`. Returns false if the request does not exist (any
    /// more).
    pub(super) fn answer(
        &mut self,
        sequence: u32,
        answer: Answer,
        wakers: &mut Vec<Waker>,
    ) -> bool {
        let Some(at) = self.by_sequence.remove(&sequence) else {
            return false;
        };
        self.unlink(at);
        let slot = &mut self.slots[at];
        match mem::replace(&mut slot.state, SlotState::Free) {
            SlotState::Waiting(waker) => {
                slot.state = SlotState::Answered(answer);
                wakers.push(waker);
            }
            SlotState::Abandoned | SlotState::Free | SlotState::Answered(_) => self.free.push(at),
        }
        true
    }

    /// Takes the answer and frees the slot.
    pub(super) fn take_answer(&mut self, at: usize, context: &Context<'_>) -> Poll<Answer> {
        let slot = &mut self.slots[at];
        match mem::replace(&mut slot.state, SlotState::Free) {
            SlotState::Answered(answer) => {
                self.free.push(at);
                Poll::Ready(answer)
            }
            mut state => {
                if let SlotState::Waiting(waker) = &mut state {
                    waker.clone_from(context.waker());
                }
                slot.state = state;
                Poll::Pending
            }
        }
    }

    /// Gives up waiting. The waker is returned so that it is dropped outside of the lock.
    pub(super) fn abandon(&mut self, at: usize) -> Option<Waker> {
        let slot = &mut self.slots[at];
        match mem::replace(&mut slot.state, SlotState::Abandoned) {
            SlotState::Waiting(waker) => Some(waker),
            SlotState::Answered(_) => {
                slot.state = SlotState::Free;
                self.free.push(at);
                None
            }
            SlotState::Free | SlotState::Abandoned => None,
        }
    }

    /// The request that has waited longest.
    pub(super) fn oldest(&self) -> Option<(u32, Sent)> {
        let slot = self.slots.get(self.oldest)?;
        Some((slot.sequence, slot.sent))
    }

    fn unlink(&mut self, at: usize) {
        let Slot { older, newer, .. } = self.slots[at];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer].older = older,
        }
    }
}

/// Sequence numbers count up and are chosen by us, so spreading them is enough.
#[derive(Default)]
struct SequenceHasher(u64);

impl Hasher for SequenceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u32((*octet).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Answer, LAST_SEQUENCE, Outstanding, Sent};
    use crate::{Status, SubmitAnswer, SubmitError};

    fn insert(all: &mut Outstanding) -> (u32, usize) {
        let sequence = all.take_sequence([None, None]);
        let sent = Sent {
            at: Instant::now(),
            active: Duration::ZERO,
            buffer: 0,
        };
        (sequence, all.insert(sequence, sent, Waker::noop().clone()))
    }

    fn with_id(id: &'static str) -> SubmitAnswer {
        SubmitAnswer {
            status: Status::OK,
            message_id: id.into(),
            tlvs: crate::Tlvs::new(),
        }
    }

    fn fetch(all: &mut Outstanding, at: usize) -> Poll<Answer> {
        all.take_answer(at, &Context::from_waker(Waker::noop()))
    }

    fn oldest(all: &Outstanding) -> Option<u32> {
        all.oldest().map(|(sequence, _)| sequence)
    }

    #[test]
    fn answers_find_their_request_in_any_order() {
        let mut all = Outstanding::new(1);
        let mut wakers = Vec::new();
        let slots = [insert(&mut all), insert(&mut all), insert(&mut all)];
        assert_eq!(oldest(&all), Some(1));
        for (sequence, id, left) in [(2, "b", Some(1)), (1, "a", Some(3)), (3, "c", None)] {
            assert!(all.answer(sequence, Ok(with_id(id)), &mut wakers));
            assert_eq!(oldest(&all), left, "after {id}");
        }
        assert_eq!(wakers.len(), 3);
        for ((_, at), id) in slots.into_iter().zip(["a", "b", "c"]) {
            assert_eq!(fetch(&mut all, at), Poll::Ready(Ok(with_id(id))));
        }
        assert_eq!((all.len(), all.free.len()), (0, 3));
    }

    #[test]
    fn an_answer_without_a_request_is_ignored() {
        let mut all = Outstanding::new(1);
        let (sequence, at) = insert(&mut all);
        let mut wakers = Vec::new();
        assert!(!all.answer(9, Ok(with_id("x")), &mut wakers));
        assert_eq!(fetch(&mut all, at), Poll::Pending);
        let late = Err(SubmitError::Unknown);
        assert!(all.answer(sequence, late.clone(), &mut wakers));
        assert!(!all.answer(sequence, Ok(with_id("late")), &mut wakers));
        assert_eq!(fetch(&mut all, at), Poll::Ready(late));
    }

    #[test]
    fn an_abandoned_request_counts_until_it_is_answered() {
        let mut all = Outstanding::new(1);
        let (sequence, at) = insert(&mut all);
        assert!(all.abandon(at).is_some());
        assert_eq!((all.len(), all.free.len()), (1, 0));
        let mut wakers = Vec::new();
        assert!(all.answer(sequence, Ok(with_id("a")), &mut wakers));
        assert!(wakers.is_empty());
        assert_eq!((all.len(), all.free.len()), (0, 1));
        let (sequence, at) = insert(&mut all);
        assert!(all.answer(sequence, Ok(with_id("b")), &mut wakers));
        assert!(all.abandon(at).is_none(), "answered, and never fetched");
        assert_eq!(all.free.len(), 1);
    }

    #[test]
    fn sequence_numbers_wrap_and_skip_those_in_use() {
        let mut all = Outstanding::new(1);
        assert_eq!([insert(&mut all).0, insert(&mut all).0], [1, 2]);
        all.next_sequence = LAST_SEQUENCE;
        assert_eq!(all.take_sequence([None, None]), LAST_SEQUENCE);
        assert_eq!(all.take_sequence([Some(3), None]), 4);
        for (first, taken) in [
            (0, 1),
            (u32::MAX, LAST_SEQUENCE),
            (LAST_SEQUENCE, LAST_SEQUENCE),
        ] {
            assert_eq!(Outstanding::new(first).take_sequence([None, None]), taken);
        }
    }
}
