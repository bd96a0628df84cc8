//! The requests that wait for their answers: found by sequence number, and kept in the order of sending.
//!
//! A timeout needs no timer of its own: the oldest is the first to time out.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::{SubmitAnswer, SubmitError};

/// The last sequence number; after it comes 1 again.
pub(super) const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;

/// No place: the end of a list.
const NONE: usize = usize::MAX;

pub(super) type Answer = Result<SubmitAnswer, SubmitError>;

/// When a request was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// The same without the time in which nothing was read; see `Clock`.
    pub(super) active: Duration,
    /// How many buffers were taken to be written before the one that holds it.
    pub(super) buffer: u64,
}

/// All that is under way.
pub(super) struct Outstanding {
    places: Vec<Place>,
    free: Vec<usize>,
    by_sequence: HashMap<u32, usize, BuildHasherDefault<SequenceHasher>>,
    oldest: usize,
    newest: usize,
    next_sequence: u32,
}

struct Place {
    sequence: u32,
    sent: Sent,
    older: usize,
    newer: usize,
    waits: Waits,
}

/// Who waits at a place.
enum Waits {
    Nobody,
    /// The one who asked.
    Task(Waker),
    /// Nobody any more, but the other side still has it: it counts.
    Gone,
    /// The one who asked has not come for it yet.
    Done(Answer),
}

impl Outstanding {
    pub(super) fn new(first_sequence: u32) -> Self {
        Self {
            places: Vec::new(),
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

    /// A number that no request under way has, `also_taken` neither.
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

    /// Enters a request; returns its place, where its answer is fetched.
    pub(super) fn enter(&mut self, sequence: u32, sent: Sent, waker: Waker) -> usize {
        let place = Place {
            sequence,
            sent,
            older: self.newest,
            newer: NONE,
            waits: Waits::Task(waker),
        };
        let at = if let Some(at) = self.free.pop() {
            self.places[at] = place;
            at
        } else {
            self.places.push(place);
            self.places.len() - 1
        };
        match self.newest {
            NONE => self.oldest = at,
            newest => self.places[newest].newer = at,
        }
        self.newest = at;
        self.by_sequence.insert(sequence, at);
        at
    }

    /// Brings an answer to its request, whose waker goes into `wakers`. False when nobody asked, or not any more.
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
        let place = &mut self.places[at];
        match mem::replace(&mut place.waits, Waits::Nobody) {
            Waits::Task(waker) => {
                place.waits = Waits::Done(answer);
                wakers.push(waker);
            }
            Waits::Gone | Waits::Nobody | Waits::Done(_) => self.free.push(at),
        }
        true
    }

    /// Fetches the answer, and leaves the place with it.
    pub(super) fn fetch(&mut self, at: usize, context: &Context<'_>) -> Poll<Answer> {
        let place = &mut self.places[at];
        match mem::replace(&mut place.waits, Waits::Nobody) {
            Waits::Done(answer) => {
                self.free.push(at);
                Poll::Ready(answer)
            }
            mut waits => {
                if let Waits::Task(waker) = &mut waits {
                    waker.clone_from(context.waker());
                }
                place.waits = waits;
                Poll::Pending
            }
        }
    }

    /// Whoever asked does not wait any more. The waker is returned to be dropped where nothing is locked.
    pub(super) fn leave(&mut self, at: usize) -> Option<Waker> {
        let place = &mut self.places[at];
        match mem::replace(&mut place.waits, Waits::Gone) {
            Waits::Task(waker) => Some(waker),
            Waits::Done(_) => {
                place.waits = Waits::Nobody;
                self.free.push(at);
                None
            }
            Waits::Nobody | Waits::Gone => None,
        }
    }

    /// The request that waits longest.
    pub(super) fn oldest(&self) -> Option<(u32, Sent)> {
        let place = self.places.get(self.oldest)?;
        Some((place.sequence, place.sent))
    }

    fn unlink(&mut self, at: usize) {
        let Place { older, newer, .. } = self.places[at];
        match older {
            NONE => self.oldest = newer,
            older => self.places[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.places[newer].older = older,
        }
    }
}

/// Numbers that are counted up need spreading, not hashing; and nobody else chooses them.
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

    fn enter(all: &mut Outstanding) -> (u32, usize) {
        let sequence = all.take_sequence([None, None]);
        let sent = Sent {
            at: Instant::now(),
            active: Duration::ZERO,
            buffer: 0,
        };
        (sequence, all.enter(sequence, sent, Waker::noop().clone()))
    }

    fn with_id(id: &'static str) -> SubmitAnswer {
        SubmitAnswer {
            status: Status::OK,
            message_id: id.into(),
            tlvs: crate::Tlvs::new(),
        }
    }

    fn fetch(all: &mut Outstanding, at: usize) -> Poll<Answer> {
        all.fetch(at, &Context::from_waker(Waker::noop()))
    }

    fn oldest(all: &Outstanding) -> Option<u32> {
        all.oldest().map(|(sequence, _)| sequence)
    }

    #[test]
    fn answers_find_their_request_in_any_order() {
        let mut all = Outstanding::new(1);
        let mut wakers = Vec::new();
        let places = [enter(&mut all), enter(&mut all), enter(&mut all)];
        assert_eq!(oldest(&all), Some(1));
        for (sequence, id, left) in [(2, "b", Some(1)), (1, "a", Some(3)), (3, "c", None)] {
            assert!(all.answer(sequence, Ok(with_id(id)), &mut wakers));
            assert_eq!(oldest(&all), left, "after {id}");
        }
        assert_eq!(wakers.len(), 3);
        for ((_, at), id) in places.into_iter().zip(["a", "b", "c"]) {
            assert_eq!(fetch(&mut all, at), Poll::Ready(Ok(with_id(id))));
        }
        assert_eq!((all.len(), all.free.len()), (0, 3));
    }

    #[test]
    fn what_nobody_asked_is_no_answer() {
        let mut all = Outstanding::new(1);
        let (sequence, at) = enter(&mut all);
        let mut wakers = Vec::new();
        assert!(!all.answer(9, Ok(with_id("x")), &mut wakers));
        assert_eq!(fetch(&mut all, at), Poll::Pending);
        let late = Err(SubmitError::Unknown);
        assert!(all.answer(sequence, late.clone(), &mut wakers));
        assert!(!all.answer(sequence, Ok(with_id("late")), &mut wakers));
        assert_eq!(fetch(&mut all, at), Poll::Ready(late));
    }

    #[test]
    fn a_request_left_alone_counts_until_it_is_answered() {
        let mut all = Outstanding::new(1);
        let (sequence, at) = enter(&mut all);
        assert!(all.leave(at).is_some());
        assert_eq!((all.len(), all.free.len()), (1, 0));
        let mut wakers = Vec::new();
        assert!(all.answer(sequence, Ok(with_id("a")), &mut wakers));
        assert!(wakers.is_empty());
        assert_eq!((all.len(), all.free.len()), (0, 1));
        let (sequence, at) = enter(&mut all);
        assert!(all.answer(sequence, Ok(with_id("b")), &mut wakers));
        assert!(all.leave(at).is_none(), "answered, and never fetched");
        assert_eq!(all.free.len(), 1);
    }

    #[test]
    fn numbers_start_again_and_skip_those_in_use() {
        let mut all = Outstanding::new(1);
        assert_eq!([enter(&mut all).0, enter(&mut all).0], [1, 2]);
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
