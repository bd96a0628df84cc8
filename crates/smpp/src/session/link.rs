//! State shared by the tasks of a session and its submitters.

use std::fmt;
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tracing::warn;

use super::clock::{Clock, add_saturating};
use super::outstanding::{Answer, Outstanding, Sent};
use super::{EndReason, SessionOptions, SubmitAnswer, SubmitError};
use crate::encode::{encode_into, encode_message};
use crate::{Body, Pdu, ShortMessage, command};

/// The maximum size of buffered responses, in octets. Beyond it nothing is read, because an SMSC that sends requests
/// but never reads would fill the memory.
const MAX_REPLIES: usize = 256 << 10;

pub(super) struct Shared {
    /// Permits for requests in flight. Closed when the session accepts no more.
    pub(super) window: Semaphore,
    /// There is something to write, or the session has ended.
    pub(super) write_needed: Notify,
    /// The writer took the buffer.
    pub(super) buffer_taken: Notify,
    /// The state changed, so the timers must be checked now.
    pub(super) changed: Notify,
    pub(super) limits: Limits,
    state: Mutex<State>,
}

/// The limits of [`SessionOptions`] that apply after the bind.
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
    /// When the first PDU of `out` was added. It counts for all of them, which saves reading the clock each time.
    out_since: Sent,
    /// How many octets of `out` are responses.
    replies: usize,
    pub(super) outstanding: Outstanding,
    pub(super) probe: Option<Probe>,
    /// When the link was last probed because of a late answer.
    pub(super) late_probe: Option<Instant>,
    /// When something was last received.
    pub(super) last_received: Instant,
    /// When a message last went in either direction.
    pub(super) last_message: Instant,
    pub(super) clock: Clock,
    /// How many messages from the SMSC are being handled.
    pub(super) handling: usize,
}

/// Our unanswered `enquire_link`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) sequence: u32,
    pub(super) sent: Sent,
    /// Since then the SMSC has neither sent nor answered a message. Its answer to the probe may wait behind the messages
    /// that it sends.
    pub(super) silent_since: Sent,
}

#[derive(Debug)]
pub(super) enum Phase {
    Open,
    /// We unbind: first we wait for outstanding answers, then for `unbind_resp`.
    Unbinding {
        why: EndReason,
        until: Instant,
        unbind: Option<u32>,
        answered: bool,
    },
    /// The SMSC unbinds: its messages are answered, then its `unbind`; answers to ours may still arrive.
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
        let _bind_sequence = outstanding.take_sequence([None, None]);
        Self {
            window: Semaphore::new(options.window.clamp(1, Semaphore::MAX_PERMITS)),
            write_needed: Notify::new(),
            buffer_taken: Notify::new(),
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
                last_received: now,
                last_message: now,
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

    /// Adds a message to the write buffer. The caller holds a permit of the window.
    pub(super) fn submit(
        &self,
        message: &ShortMessage,
        waker: &Waker,
    ) -> Result<PendingSubmit<'_>, SubmitError> {
        let waker = waker.clone();
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Open) {
            return Err(SubmitError::NotSent);
        }
        let first = state.start_buffer();
        let sequence = state.take_sequence();
        encode_message(command::SUBMIT_SM, sequence, message, &mut state.out)?;
        let sent = state.out_since;
        let slot = state.outstanding.insert(sequence, sent, waker);
        state.last_message = sent.at;
        drop(state);
        if first {
            self.write_needed.notify_one();
        }
        Ok(PendingSubmit {
            shared: self,
            slot: Some(slot),
        })
    }

    /// Hands answers to their waiters. Leaves both lists empty for reuse.
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
        if answered > 0 && state.probe.is_some() {
            state.record_activity(Instant::now());
        }
        let drained = state.outstanding.is_empty() && !matches!(state.phase, Phase::Open);
        drop(state);
        self.release(answered, wakers);
        if drained {
            self.changed.notify_one();
        }
    }

    /// Returns permits to the window and wakes the tasks.
    pub(super) fn release(&self, permits: usize, wakers: &mut Vec<Waker>) {
        self.window.add_permits(permits);
        for waker in wakers.drain(..) {
            waker.wake();
        }
    }

    /// Adds a response to the write buffer.
    pub(super) fn reply(&self, pdu: &Pdu) {
        let mut state = self.lock();
        let first = state.reply(pdu);
        drop(state);
        if first {
            self.write_needed.notify_one();
        }
    }

    /// Swaps the write buffer for an empty one. Returns false if the session has ended and everything is written.
    pub(super) fn take(&self, buffer: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        if state.out.is_empty() {
            return !matches!(state.phase, Phase::Ended);
        }
        mem::swap(&mut state.out, buffer);
        state.out_since.buffer += 1;
        let had_too_many = mem::take(&mut state.replies) > MAX_REPLIES;
        drop(state);
        if had_too_many {
            self.buffer_taken.notify_one();
        }
        true
    }

    /// Whether too many responses wait to be written.
    pub(super) fn has_too_many_replies(&self) -> bool {
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
        self.lock().begin_unbind(self, EndReason::Unbound);
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

    /// Ends the session and every wait for an answer. Messages that are reported as unsent are removed from the buffer.
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
        self.write_needed.notify_one();
    }
}

impl State {
    /// Records the time if `out` is empty. Returns whether it is.
    fn start_buffer(&mut self) -> bool {
        let first = self.out.is_empty();
        if first {
            let now = Instant::now();
            self.out_since.at = now;
            self.out_since.active = self.clock.active(now);
        }
        first
    }

    fn take_sequence(&mut self) -> u32 {
        let probe = self.probe.map(|probe| probe.sequence);
        let unbind = match self.phase {
            Phase::Unbinding { unbind, .. } => unbind,
            _ => None,
        };
        self.outstanding.take_sequence([probe, unbind])
    }

    /// Records that the SMSC sent a message or answered one.
    pub(super) fn record_activity(&mut self, now: Instant) {
        if let Some(probe) = &mut self.probe {
            probe.silent_since.at = now;
            probe.silent_since.active = self.clock.active(now);
        }
    }

    /// Adds one of the session's own requests to the write buffer.
    pub(super) fn request(&mut self, shared: &Shared, body: Body) -> (u32, Sent) {
        let sequence = self.take_sequence();
        self.queue(&Pdu::new(sequence, body));
        shared.write_needed.notify_one();
        (sequence, self.out_since)
    }

    /// Returns whether the write buffer was empty.
    pub(super) fn reply(&mut self, pdu: &Pdu) -> bool {
        let before = self.out.len();
        self.queue(pdu);
        self.replies += self.out.len() - before;
        before == 0
    }

    fn queue(&mut self, pdu: &Pdu) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        self.start_buffer();
        if let Err(error) = encode_into(pdu, &mut self.out) {
            // The session's own PDUs always fit.
            warn!(%error, "a PDU was not written");
        }
    }

    pub(super) fn begin_unbind(&mut self, shared: &Shared, why: EndReason) {
        if matches!(self.phase, Phase::Open) {
            shared.window.close();
            self.phase = Phase::Unbinding {
                why,
                until: add_saturating(Instant::now(), shared.limits.response),
                unbind: None,
                answered: false,
            };
        }
    }

    /// Handles the response to one of the session's own requests. Returns false if there is none with this sequence
    /// number.
    pub(super) fn answered(&mut self, sequence: u32) -> bool {
        if self.probe.is_some_and(|probe| probe.sequence == sequence) {
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

/// A submitted message that waits for its answer.
pub(super) struct PendingSubmit<'a> {
    shared: &'a Shared,
    /// `None` after the answer was returned.
    slot: Option<usize>,
}

impl PendingSubmit<'_> {
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Answer> {
        let slot = self.slot.expect("not polled after its answer");
        let answer = self.shared.lock().outstanding.take_answer(slot, context);
        if answer.is_ready() {
            self.slot = None;
        }
        answer
    }
}

impl Drop for PendingSubmit<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let waker = self.shared.lock().outstanding.abandon(slot);
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
