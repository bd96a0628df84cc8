//! What the loops of a session and those who submit share.

use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tracing::warn;

use super::clock::{Clock, later};
use super::outstanding::{Answer, Outstanding, Sent};
use super::{Ended, SessionOptions, SubmitAnswer, SubmitError};
use crate::encode::{encode_into, encode_message};
use crate::{Body, Pdu, ShortMessage, command};

/// So many octets of answers may wait to be written. Beyond that nothing is read: an SMSC that asks and never listens
/// would fill the memory.
const MAX_REPLIES: usize = 256 << 10;

/// The link, as all see it.
pub(super) struct Shared {
    /// Room for requests under way. Closed when the session takes no more.
    pub(super) window: Semaphore,
    /// Something is to be written, or nothing more will be.
    pub(super) to_write: Notify,
    /// What waits to be written was taken.
    pub(super) taken: Notify,
    /// The state changed in a way that the watching loop must see before its time.
    pub(super) changed: Notify,
    pub(super) limits: Limits,
    state: Mutex<State>,
}

/// The times and sizes of [`SessionOptions`] that matter after the bind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) response: Duration,
    pub(super) late: Duration,
    pub(super) enquire: Duration,
    pub(super) idle: Option<Duration>,
    pub(super) max_pdu: usize,
    pub(super) incoming: usize,
}

pub(super) struct State {
    pub(super) phase: Phase,
    out: Vec<u8>,
    /// When the first of what is in `out` came in. All of it counts as sent then: the clock is not read for each.
    out_since: Sent,
    /// How much of `out` are answers.
    replies: usize,
    pub(super) outstanding: Outstanding,
    /// Our `enquire_link` that is not answered yet.
    pub(super) probe: Option<(u32, Sent)>,
    /// When the link was last probed because an answer was late.
    pub(super) late_probe: Option<Instant>,
    /// When the SMSC was heard last.
    pub(super) heard: Instant,
    /// When a message last went in either direction.
    pub(super) message_at: Instant,
    pub(super) clock: Clock,
    /// How many messages of the SMSC are being handled.
    pub(super) handling: usize,
}

/// Where a session is on its way.
#[derive(Debug)]
pub(super) enum Phase {
    Open,
    /// We unbind, and wait: first for the answers to what is under way, then for that to `unbind`.
    Unbinding {
        why: Ended,
        until: Instant,
        unbind: Option<u32>,
        answered: bool,
    },
    /// The SMSC unbinds. Its messages are answered, then its `unbind`, then answers of its own may still come.
    PeerUnbinding {
        sequence: u32,
        until: Instant,
        answered: bool,
    },
    Dropped,
    Ended,
}

impl Shared {
    pub(super) fn new(options: &SessionOptions) -> Self {
        let now = Instant::now();
        let mut outstanding = Outstanding::new(options.first_sequence);
        let _of_the_bind = outstanding.take_sequence([None, None]);
        Self {
            window: Semaphore::new(options.window.clamp(1, Semaphore::MAX_PERMITS)),
            to_write: Notify::new(),
            taken: Notify::new(),
            changed: Notify::new(),
            limits: Limits {
                response: options.response_timeout,
                late: options.late_answer.max(options.response_timeout),
                enquire: match options.enquire_every {
                    Duration::ZERO => Duration::MAX,
                    every => every,
                },
                idle: options.idle,
                max_pdu: options.max_pdu,
                incoming: options.incoming.clamp(1, Semaphore::MAX_PERMITS),
            },
            state: Mutex::new(State {
                phase: Phase::Open,
                out: Vec::new(),
                out_since: Sent {
                    at: now,
                    active: Duration::ZERO,
                    buffer: 0,
                },
                replies: 0,
                outstanding,
                probe: None,
                late_probe: None,
                heard: now,
                message_at: now,
                clock: Clock::new(now),
                handling: 0,
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.lock().phase, Phase::Open)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    /// Puts a message among what is to be written. The caller has room in the window.
    pub(super) fn submit(
        &self,
        message: &ShortMessage,
        waker: &Waker,
    ) -> Result<Begun<'_>, SubmitError> {
        let waker = waker.clone();
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Open) {
            return Err(SubmitError::NotSent);
        }
        let first = state.begin();
        let sequence = state.take_sequence();
        encode_message(command::SUBMIT_SM, sequence, message, &mut state.out)?;
        let sent = state.out_since;
        let place = state.outstanding.enter(sequence, sent, waker);
        state.message_at = sent.at;
        drop(state);
        if first {
            self.to_write.notify_one();
        }
        Ok(Begun {
            shared: self,
            place: Some(place),
        })
    }

    /// Brings answers to those who wait. Leaves both lists empty, to be used again.
    pub(super) fn answer(&self, answers: &mut Vec<(u32, SubmitAnswer)>, wakers: &mut Vec<Waker>) {
        if answers.is_empty() {
            return;
        }
        let mut state = self.lock();
        let mut answered = 0;
        for (sequence, answer) in answers.drain(..) {
            if state.outstanding.answer(sequence, Ok(answer), wakers) {
                answered += 1;
            }
        }
        let drained = state.outstanding.is_empty() && !matches!(state.phase, Phase::Open);
        drop(state);
        self.release(answered, wakers);
        if drained {
            self.changed.notify_one();
        }
    }

    /// Gives room in the window back, and wakes.
    pub(super) fn release(&self, places: usize, wakers: &mut Vec<Waker>) {
        self.window.add_permits(places);
        for waker in wakers.drain(..) {
            waker.wake();
        }
    }

    /// Puts an answer of ours among what is to be written.
    pub(super) fn reply(&self, pdu: &Pdu) {
        let mut state = self.lock();
        let first = state.reply(pdu);
        drop(state);
        if first {
            self.to_write.notify_one();
        }
    }

    /// What is to be written, in exchange for an empty buffer. False when the session has ended and all is written.
    pub(super) fn take(&self, buffer: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        if state.out.is_empty() {
            return !matches!(state.phase, Phase::Ended);
        }
        mem::swap(&mut state.out, buffer);
        state.out_since.buffer += 1;
        let held_up = mem::take(&mut state.replies) > MAX_REPLIES;
        drop(state);
        if held_up {
            self.taken.notify_one();
        }
        true
    }

    /// Whether too many answers wait to be written.
    pub(super) fn is_held_up(&self) -> bool {
        self.lock().replies > MAX_REPLIES
    }

    pub(super) fn pause(&self) {
        let mut state = self.lock();
        state.clock.pause(Instant::now());
    }

    pub(super) fn resume(&self) {
        let mut state = self.lock();
        state.clock.resume(Instant::now());
    }

    pub(super) fn begin_unbind(&self) {
        self.lock().begin_unbind(self, Ended::Unbound);
        self.changed.notify_one();
    }

    pub(super) fn drop_link(&self) {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Ended) {
            state.phase = Phase::Dropped;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The end: nobody waits for an answer any more. What has not left yet, and was promised not to, never will.
    pub(super) fn finish(&self) {
        self.window.close();
        let mut wakers = Vec::new();
        let mut state = self.lock();
        state.phase = Phase::Ended;
        let mut unsent = false;
        while let Some((sequence, sent)) = state.outstanding.oldest() {
            let error = if sent.buffer == state.out_since.buffer {
                unsent = true;
                SubmitError::NotSent
            } else {
                SubmitError::Unknown
            };
            state.outstanding.answer(sequence, Err(error), &mut wakers);
        }
        if unsent {
            state.out.clear();
        }
        drop(state);
        self.release(0, &mut wakers);
        self.to_write.notify_one();
    }
}

impl State {
    /// Notes the time when `out` is empty, and tells whether it is.
    fn begin(&mut self) -> bool {
        let first = self.out.is_empty();
        if first {
            let now = Instant::now();
            self.out_since.at = now;
            self.out_since.active = self.clock.active(now);
        }
        first
    }

    fn take_sequence(&mut self) -> u32 {
        let probe = self.probe.map(|(sequence, _)| sequence);
        let unbind = match self.phase {
            Phase::Unbinding { unbind, .. } => unbind,
            _ => None,
        };
        self.outstanding.take_sequence([probe, unbind])
    }

    /// Puts a request of the session's own among what is to be written.
    pub(super) fn request(&mut self, shared: &Shared, body: Body) -> (u32, Sent) {
        let sequence = self.take_sequence();
        self.put(&Pdu::new(sequence, body));
        shared.to_write.notify_one();
        (sequence, self.out_since)
    }

    /// True when nothing else was to be written.
    pub(super) fn reply(&mut self, pdu: &Pdu) -> bool {
        let before = self.out.len();
        self.put(pdu);
        self.replies += self.out.len() - before;
        before == 0
    }

    fn put(&mut self, pdu: &Pdu) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        self.begin();
        if let Err(error) = encode_into(pdu, &mut self.out) {
            // The session's own PDUs have nothing in them that could be too long.
            warn!(%error, "a PDU was not written");
        }
    }

    pub(super) fn begin_unbind(&mut self, shared: &Shared, why: Ended) {
        if matches!(self.phase, Phase::Open) {
            shared.window.close();
            self.phase = Phase::Unbinding {
                why,
                until: later(Instant::now(), shared.limits.response),
                unbind: None,
                answered: false,
            };
        }
    }

    /// An answer to a request of the session's own. False when there is none with this number.
    pub(super) fn answered(&mut self, sequence: u32) -> bool {
        if self.probe.is_some_and(|(probe, _)| probe == sequence) {
            self.probe = None;
            return true;
        }
        match &mut self.phase {
            Phase::Unbinding {
                unbind: Some(unbind),
                answered,
                ..
            } if *unbind == sequence => {
                *answered = true;
                true
            }
            _ => false,
        }
    }
}

/// A message under way, seen from the one who submitted it.
pub(super) struct Begun<'a> {
    shared: &'a Shared,
    /// None once the answer was fetched.
    place: Option<usize>,
}

impl Begun<'_> {
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Answer> {
        let place = self.place.expect("not polled after its answer");
        let answer = self.shared.lock().outstanding.fetch(place, context);
        if answer.is_ready() {
            self.place = None;
        }
        answer
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let waker = self.shared.lock().outstanding.leave(place);
            drop(waker);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Shared")
            .field("phase", &state.phase)
            .field("in_flight", &state.outstanding.len())
            .finish_non_exhaustive()
    }
}
