//! Sends a message: its parts go out concurrently, in order, within the window and at the carrier's pace.
//!
//! Once the carrier has accepted a part, the others stay with this carrier: starting again elsewhere would send that
//! part twice. A part without an answer may be with the carrier, so it is sent again at most `unknown_tries` times.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use ::smpp::{ShortMessage, Status, SubmitError};
use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::kill_point::{KillPoint, pass};
use domain::{Channel, Code};
use tokio::time::{Instant, sleep};

use super::carrier::SmppCarrier;
use super::compose::{compose, reference_without_answer};
use super::refusal;

/// How long to try the rest of a message after its first part was accepted.
const REST_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between such attempts.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// The result of one attempt to send a part.
enum PartSent {
    Taken(String),
    Refused(Status),
    /// Not sent, because no link is up.
    NotSent,
    /// Sent, but without an answer.
    Unknown,
    /// It cannot be encoded.
    Unsendable,
}

enum PartState {
    /// Accepted by the carrier under this reference.
    Taken(String),
    /// Not with the carrier; this would be the result.
    Open(CarrierAnswer),
    /// Possibly with the carrier, after this many attempts.
    Unknown(u32),
}

enum NextStep {
    Done(CarrierAnswer),
    /// The parts that are not accepted are tried again.
    Again,
}

impl SmppCarrier {
    /// Sends a message and waits for the answers to all its parts.
    pub(super) async fn send_message(&self, queued: &QueuedMessage) -> CarrierAnswer {
        if queued.channel != Channel::Sms {
            return CarrierAnswer::Declined(Code::NO_ROUTE);
        }
        let messages = compose(&self.settings, queued, self.clock.now());
        let nothing_yet = || PartState::Open(CarrierAnswer::NotNow(Code::LINK_DOWN));
        let mut parts: Vec<PartState> = messages.iter().map(|_| nothing_yet()).collect();
        let is_continued = AtomicBool::new(false);
        // A closing link waits for parts that are not sent yet.
        let _partial = (messages.len() > 1).then(|| self.connector.partial_messages.begin());
        let mut give_up = None;
        loop {
            self.send_open(queued, &messages, &mut parts, &is_continued)
                .await;
            let is_late = give_up.is_some_and(|give_up| Instant::now() >= give_up);
            match self.next(queued, &mut parts, is_late) {
                NextStep::Done(submitted) => return submitted,
                NextStep::Again => {
                    give_up.get_or_insert_with(|| self.rest_deadline(queued));
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Sends all parts that the carrier has not accepted, concurrently.
    async fn send_open(
        &self,
        queued: &QueuedMessage,
        messages: &[ShortMessage],
        parts: &mut [PartState],
        is_continued: &AtomicBool,
    ) {
        let is_open = |index: &usize| !matches!(parts[*index], PartState::Taken(_));
        let open: Vec<usize> = (0..parts.len()).filter(is_open).collect();
        let sends = open
            .iter()
            .map(|index| self.send_part(&messages[*index], is_continued));
        let sent = all_in_order(sends.collect()).await;
        for (index, sent) in open.into_iter().zip(sent) {
            let part = &mut parts[index];
            *part = match (sent, &*part) {
                (PartSent::Taken(id), _) => PartState::Taken(self.reference(&id, queued, index)),
                (PartSent::Unknown, PartState::Unknown(tries)) => PartState::Unknown(tries + 1),
                (PartSent::Unknown, _) => PartState::Unknown(1),
                (PartSent::NotSent, before) => {
                    not_accepted(CarrierAnswer::NotNow(Code::LINK_DOWN), before, queued)
                }
                (PartSent::Unsendable, before) => {
                    not_accepted(CarrierAnswer::Declined(Code::INTERNAL), before, queued)
                }
                (PartSent::Refused(status), before) => {
                    not_accepted(refusal::interpret(status), before, queued)
                }
            };
        }
    }

    /// Decides what to do next.
    fn next(&self, queued: &QueuedMessage, parts: &mut [PartState], is_late: bool) -> NextStep {
        if let Some(refused) = refused(parts) {
            return NextStep::Done(refused);
        }
        let is_taken = |part: &PartState| matches!(part, PartState::Taken(_));
        let any_taken = parts.iter().any(is_taken);
        self.give_up_unknown(queued, parts, is_late && any_taken);
        if parts.iter().all(is_taken) {
            return NextStep::Done(CarrierAnswer::Taken(references(parts)));
        }
        let any_taken = parts.iter().any(is_taken);
        if any_taken && !is_late {
            return NextStep::Again;
        }
        let is_unknown = |part: &PartState| matches!(part, PartState::Unknown(_));
        if parts.iter().any(is_unknown) {
            return NextStep::Done(CarrierAnswer::Unknown);
        }
        let open = parts.iter().find_map(|part| match part {
            PartState::Open(answer) => Some(answer.clone()),
            PartState::Taken(_) | PartState::Unknown(_) => None,
        });
        NextStep::Done(open.unwrap_or(CarrierAnswer::NotNow(Code::LINK_DOWN)))
    }

    /// Treats parts that were sent often enough as accepted: the message then waits for a receipt until it expires.
    fn give_up_unknown(&self, queued: &QueuedMessage, parts: &mut [PartState], is_late: bool) {
        for (part, number) in parts.iter_mut().zip(1..) {
            let PartState::Unknown(tries) = part else {
                continue;
            };
            let tries = queued.unknown_tries.saturating_add(*tries);
            if is_late || tries >= self.settings.unknown_tries {
                tracing::warn!(
                    carrier = self.settings.name,
                    message_id = %queued.id,
                    trace_id = queued.trace.map(|trace| tracing::field::display(trace.trace_id())),
                    part = number,
                    tries,
                    "no answer to a part; it is not sent again and waits for a receipt"
                );
                *part = PartState::Taken(reference_without_answer(queued.id, number));
            }
        }
    }

    /// Until when the rest of a message is tried.
    fn rest_deadline(&self, queued: &QueuedMessage) -> Instant {
        let left = queued.expires_at.duration_since(self.clock.now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        Instant::now() + left.min(REST_TIMEOUT)
    }

    /// Sends a part on the least busy link, or on another one if that link is lost before anything was sent. A closing
    /// link only takes parts of a message that has parts with the carrier already.
    async fn send_part(&self, message: &ShortMessage, is_continued: &AtomicBool) -> PartSent {
        for _ in 0..=self.links.len() {
            // Without a link, a turn would be wasted.
            if !is_continued.load(Ordering::Relaxed) && self.connector.link_counts.sending() == 0 {
                return PartSent::NotSent;
            }
            let guard = self.pace.turn().await;
            let turn = guard.turn;
            let Some((link, session)) = self.least_busy(is_continued.load(Ordering::Relaxed))
            else {
                return PartSent::NotSent;
            };
            let _busy = link.mark_busy();
            is_continued.store(true, Ordering::Relaxed);
            match drop_after_first_poll(guard, session.submit(message)).await {
                Ok(answer) if answer.status.is_ok() => {
                    pass(KillPoint::PartAnswered);
                    return PartSent::Taken(latin1(&answer.message_id));
                }
                Ok(answer) => {
                    if refusal::is_throttling(answer.status) {
                        self.pace.throttled(turn);
                        self.connector.metrics.throttled();
                    }
                    if refusal::is_unbound(answer.status) {
                        tokio::spawn(async move { session.unbind().await });
                    }
                    return PartSent::Refused(answer.status);
                }
                Err(SubmitError::NotSent) => {}
                Err(SubmitError::Unknown) => return PartSent::Unknown,
                Err(SubmitError::Encode(error)) => {
                    tracing::error!(carrier = self.settings.name, %error, "a message cannot be encoded");
                    return PartSent::Unsendable;
                }
            }
        }
        PartSent::NotSent
    }
}

/// The state of a part that was not accepted. An earlier attempt may have reached the carrier, and a refusal of its
/// repetition says nothing about it.
fn not_accepted(answer: CarrierAnswer, before: &PartState, queued: &QueuedMessage) -> PartState {
    let is_over = !matches!(answer, CarrierAnswer::NotNow(_));
    match before {
        PartState::Unknown(tries) => PartState::Unknown(tries + u32::from(is_over)),
        _ if is_over && queued.unknown_tries > 0 => PartState::Unknown(1),
        _ => PartState::Open(answer),
    }
}

/// The result if a part is refused for good. Once another part is accepted, no other carrier may get the rest.
fn refused(parts: &[PartState]) -> Option<CarrierAnswer> {
    let references = references(parts);
    let any_taken = !references.is_empty();
    let code = parts.iter().find_map(|part| match part {
        PartState::Open(CarrierAnswer::Refused(code)) => Some(*code),
        PartState::Open(CarrierAnswer::Declined(code)) if any_taken => Some(*code),
        PartState::Open(_) | PartState::Taken(_) | PartState::Unknown(_) => None,
    })?;
    Some(if any_taken {
        CarrierAnswer::PartlyTaken { references, code }
    } else {
        CarrierAnswer::Refused(code)
    })
}

fn references(parts: &[PartState]) -> Vec<String> {
    let taken = parts.iter().filter_map(|part| match part {
        PartState::Taken(reference) => Some(reference.clone()),
        PartState::Open(_) | PartState::Unknown(_) => None,
    });
    taken.collect()
}

/// Runs futures concurrently. Each round polls them in order, so that parts are sent in order.
async fn all_in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in running.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Runs a future, and drops `held` after its first poll.
async fn drop_after_first_poll<F: Future>(held: impl Sized, future: F) -> F::Output {
    let (mut future, mut held) = (pin!(future), Some(held));
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        held = None;
        polled
    })
    .await
}

fn latin1(octets: &[u8]) -> String {
    octets.iter().copied().map(char::from).collect()
}
