//! The loop that watches the time: late answers, a silent link, the steps of unbinding.

use std::task::Waker;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::clock::later;
use super::link::{Phase, Shared, State};
use super::{Ended, SubmitError};
use crate::{Body, Pdu};

/// After `unbind_resp` answers of the SMSC are awaited for so long at most.
const LINGER: Duration = Duration::from_secs(1);

/// Returns when the session is to end.
pub(super) async fn keep(shared: &Shared) -> Ended {
    let mut wakers = Vec::new();
    loop {
        let (next, given_up) = {
            let now = Instant::now();
            let mut state = shared.lock();
            let given_up = state.give_up_late(shared, now, &mut wakers);
            (state.step(shared, now), given_up)
        };
        shared.release(given_up, &mut wakers);
        match next {
            Err(ended) => return ended,
            Ok(until) => tokio::select! {
                () = sleep_until(until) => {}
                () = shared.changed.notified() => {}
            },
        }
    }
}

impl State {
    /// Gives up messages whose answer is later than a live link may take; returns how many.
    fn give_up_late(&mut self, shared: &Shared, now: Instant, wakers: &mut Vec<Waker>) -> usize {
        let mut given_up = 0;
        while let Some((sequence, sent)) = self.outstanding.oldest() {
            if !self.clock.left(sent, now, shared.limits.late).is_zero() {
                break;
            }
            debug!(sequence, "no answer, although the link is alive");
            self.outstanding
                .answer(sequence, Err(SubmitError::Unknown), wakers);
            given_up += 1;
        }
        if given_up > 0 {
            self.ask(shared);
        }
        given_up
    }

    /// Probes the link while the oldest answer is late, once in each response timeout; returns when to look again.
    fn probe_late(&mut self, shared: &Shared, now: Instant) -> Option<Instant> {
        let limits = shared.limits;
        let (_, sent) = self.outstanding.oldest()?;
        let left = self.clock.left(sent, now, limits.response);
        if !left.is_zero() {
            self.late_probe = None;
            return Some(later(now, left));
        }
        let again = self
            .late_probe
            .map_or(now, |last| later(last, limits.response));
        let again = if again <= now {
            self.ask(shared);
            self.late_probe = Some(now);
            later(now, limits.response)
        } else {
            again
        };
        let give_up = later(now, self.clock.left(sent, now, limits.late));
        Some(again.min(give_up))
    }

    fn ask(&mut self, shared: &Shared) {
        if self.probe.is_none() {
            self.probe = Some(self.request(shared, Body::EnquireLink));
        }
    }

    /// What is due, and when to look again; the end, when that is due.
    fn step(&mut self, shared: &Shared, now: Instant) -> Result<Instant, Ended> {
        let limits = shared.limits;
        if let Some((_, sent)) = self.probe
            && self.clock.left(sent, now, limits.response).is_zero()
        {
            return Err(Ended::NotAnswering);
        }
        let mut next = later(now, limits.response);
        if self.probe.is_none() {
            let silent = later(self.heard, limits.enquire);
            if silent <= now {
                self.ask(shared);
            } else {
                next = next.min(silent);
            }
        }
        if let Some(until) = self.probe_late(shared, now) {
            next = next.min(until);
        }
        next = next.min(self.idle(shared, now));
        if let Some(until) = self.leave(shared, now)? {
            next = next.min(until);
        }
        if let Some((_, sent)) = self.probe {
            next = next.min(later(now, self.clock.left(sent, now, limits.response)));
        }
        Ok(next)
    }

    /// Begins to unbind when there was no message for too long; returns when that is.
    fn idle(&mut self, shared: &Shared, now: Instant) -> Instant {
        let Some(idle) = shared.limits.idle else {
            return later(now, Duration::MAX);
        };
        let until = later(self.message_at, idle);
        if until > now {
            return until;
        }
        if self.outstanding.is_empty() && self.handling == 0 {
            self.begin_unbind(shared, Ended::Idle);
        }
        later(now, idle)
    }

    /// The next step of unbinding, if the session is at that; returns when to look again.
    fn leave(&mut self, shared: &Shared, now: Instant) -> Result<Option<Instant>, Ended> {
        let drained = self.outstanding.is_empty();
        match &mut self.phase {
            Phase::Open => Ok(None),
            Phase::Unbinding {
                unbind: None,
                until,
                ..
            } => {
                let mut look = *until;
                if drained || *until <= now {
                    look = later(now, shared.limits.response);
                    let (sent, _) = self.request(shared, Body::Unbind);
                    if let Phase::Unbinding { unbind, until, .. } = &mut self.phase {
                        (*unbind, *until) = (Some(sent), look);
                    }
                }
                Ok(Some(look))
            }
            Phase::Unbinding {
                why,
                until,
                answered,
                ..
            } => {
                if (*answered && self.handling == 0) || *until <= now {
                    return Err(why.clone());
                }
                Ok(Some(*until))
            }
            Phase::PeerUnbinding {
                sequence,
                until,
                answered,
            } => {
                if *answered && (drained || *until <= now) {
                    return Err(Ended::UnboundByPeer);
                }
                if !*answered && (self.handling == 0 || *until <= now) {
                    *answered = true;
                    let resp = Pdu::new(*sequence, Body::UnbindResp);
                    *until = later(now, LINGER.min(shared.limits.response));
                    let look = if drained { now } else { *until };
                    self.reply(&resp);
                    shared.to_write.notify_one();
                    return Ok(Some(look));
                }
                Ok(Some(*until))
            }
            Phase::Dropped => {
                // A courtesy: nobody waits for its answer.
                self.request(shared, Body::Unbind);
                Err(Ended::Dropped)
            }
            Phase::Ended => Err(Ended::Stopped),
        }
    }
}
