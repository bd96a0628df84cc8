//! Watches the timers of a session: late answers, a silent link, the steps of unbinding.

use std::task::Waker;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::clock::add_saturating;
use super::link::{Limits, Phase, Probe, Shared, State};
use super::{EndReason, SubmitError};
use crate::{Body, Pdu};

/// How long to wait for outstanding answers after `unbind_resp`.
const MAX_LINGER: Duration = Duration::from_secs(1);

/// Returns when the session must end.
pub(super) async fn run_timers(shared: &Shared) -> EndReason {
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
    /// Gives up messages whose answer is overdue even for a live link. Returns how many.
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
            self.probe_link(shared);
        }
        given_up
    }

    /// Probes the link while the oldest answer is late, once per response timeout. Returns when to check again.
    fn probe_late(&mut self, shared: &Shared, now: Instant) -> Option<Instant> {
        let limits = shared.limits;
        let (_, sent) = self.outstanding.oldest()?;
        let left = self.clock.left(sent, now, limits.response);
        if !left.is_zero() {
            self.late_probe = None;
            return Some(add_saturating(now, left));
        }
        let again = self
            .late_probe
            .map_or(now, |last| add_saturating(last, limits.response));
        let again = if again <= now {
            self.probe_link(shared);
            self.late_probe = Some(now);
            add_saturating(now, limits.response)
        } else {
            again
        };
        let give_up = add_saturating(now, self.clock.left(sent, now, limits.late));
        Some(again.min(give_up))
    }

    fn probe_link(&mut self, shared: &Shared) {
        if self.probe.is_none() {
            let (sequence, sent) = self.request(shared, Body::EnquireLink);
            self.probe = Some(Probe {
                sequence,
                sent,
                silent_since: sent,
            });
        }
    }

    /// The time until a probe without an answer ends the session. An SMSC that sends or answers messages meanwhile gets as
    /// long as for a late answer.
    fn probe_left(&self, probe: Probe, limits: Limits, now: Instant) -> Duration {
        let silent = self.clock.left(probe.silent_since, now, limits.response);
        let whole = self.clock.left(probe.sent, now, limits.late);
        silent.min(whole)
    }

    /// Does what is due and returns when to check again, or why the session must end.
    fn step(&mut self, shared: &Shared, now: Instant) -> Result<Instant, EndReason> {
        let limits = shared.limits;
        if let Some(probe) = self.probe
            && self.probe_left(probe, limits, now).is_zero()
        {
            return Err(EndReason::NotAnswering);
        }
        let mut next = add_saturating(now, limits.response);
        if self.probe.is_none() {
            let silent = add_saturating(self.last_received, limits.enquire);
            if silent <= now {
                self.probe_link(shared);
            } else {
                next = next.min(silent);
            }
        }
        if let Some(until) = self.probe_late(shared, now) {
            next = next.min(until);
        }
        next = next.min(self.check_idle(shared, now));
        if let Some(until) = self.step_unbind(shared, now)? {
            next = next.min(until);
        }
        if let Some(probe) = self.probe {
            next = next.min(add_saturating(now, self.probe_left(probe, limits, now)));
        }
        Ok(next)
    }

    /// Starts to unbind after too long without a message. Returns when to check again.
    fn check_idle(&mut self, shared: &Shared, now: Instant) -> Instant {
        let Some(idle) = shared.limits.idle else {
            return add_saturating(now, Duration::MAX);
        };
        let until = add_saturating(self.last_message, idle);
        if until > now {
            return until;
        }
        if self.outstanding.is_empty() && self.handling == 0 {
            self.begin_unbind(shared, EndReason::Idle);
        }
        add_saturating(now, idle)
    }

    /// Takes the next step of unbinding, if any. Returns when to check again.
    fn step_unbind(&mut self, shared: &Shared, now: Instant) -> Result<Option<Instant>, EndReason> {
        let drained = self.outstanding.is_empty();
        match &mut self.phase {
            Phase::Open => Ok(None),
            Phase::Unbinding {
                unbind: None,
                until,
                ..
            } => {
                let mut check_at = *until;
                if drained || *until <= now {
                    check_at = add_saturating(now, shared.limits.response);
                    let (sent, _) = self.request(shared, Body::Unbind);
                    if let Phase::Unbinding { unbind, until, .. } = &mut self.phase {
                        (*unbind, *until) = (Some(sent), check_at);
                    }
                }
                Ok(Some(check_at))
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
                    return Err(EndReason::UnboundByPeer);
                }
                if !*answered && (self.handling == 0 || *until <= now) {
                    *answered = true;
                    let resp = Pdu::new(*sequence, Body::UnbindResp);
                    *until = add_saturating(now, MAX_LINGER.min(shared.limits.response));
                    let check_at = if drained { now } else { *until };
                    self.reply(&resp);
                    shared.write_needed.notify_one();
                    return Ok(Some(check_at));
                }
                Ok(Some(*until))
            }
            Phase::Dropped => {
                // A courtesy; the response is not awaited.
                self.request(shared, Body::Unbind);
                Err(EndReason::Dropped)
            }
            Phase::Ended => Err(EndReason::Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::session::link::Shared;
    use crate::session::{EndReason, SessionOptions};

    /// How many seconds after a probe the session ends. The SMSC does not answer it, but sends messages at these seconds.
    fn ends_after(active_at: &[u64]) -> Option<u64> {
        let options = SessionOptions {
            response_timeout: Duration::from_secs(10),
            late_answer: Duration::from_mins(1),
            ..SessionOptions::default()
        };
        let shared = Shared::new(&options);
        let mut state = shared.lock();
        state.probe_link(&shared);
        let sent = state.probe.expect("it was just sent").sent.at;
        (0..100).find(|second| {
            let now = sent + Duration::from_secs(*second);
            if active_at.contains(second) {
                state.record_activity(now);
            }
            let next = state.step(&shared, now);
            next.is_err_and(|why| why == EndReason::NotAnswering)
        })
    }

    #[test]
    fn an_smsc_that_sends_messages_may_answer_a_probe_late() {
        let always: Vec<u64> = (0..100).collect();
        for (case, active_at, ends) in [
            ("it sends nothing", &[][..], 10),
            ("it sends one message", &[9], 19),
            ("it sends too late", &[11], 10),
            ("it sends several messages", &[9, 18, 27], 37),
            ("it sends all the time and never answers", &always, 60),
        ] {
            assert_eq!(ends_after(active_at), Some(ends), "{case}");
        }
    }
}
