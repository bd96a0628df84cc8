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
use domain::delivery::{Parcel, Submitted};
use domain::kill_point::{KillPoint, pass};
use domain::{Channel, Code};
use tokio::time::{Instant, sleep};

use super::carrier::SmppCarrier;
use super::compose::{compose, unanswered};
use super::refusal;

/// How long to try the rest of a message after its first part was accepted.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between such attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

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

enum Part {
    /// Accepted by the carrier under this reference.
    Taken(String),
    /// Not with the carrier; this would be the result.
    Open(Submitted),
    /// Possibly with the carrier, after this many attempts.
    Unknown(u32),
}

enum Next {
    Done(Submitted),
    /// The parts that are not accepted are tried again.
    Again,
}

impl SmppCarrier {
    /// Sends a message and waits for the answers to all its parts.
    pub(super) async fn hand_over(&self, parcel: &Parcel) -> Submitted {
        if parcel.channel != Channel::Sms {
            return Submitted::Declined(Code::NO_ROUTE);
        }
        let messages = compose(&self.settings, parcel, self.clock.now());
        let nothing_yet = || Part::Open(Submitted::NotNow(Code::LINK_DOWN));
        let mut parts: Vec<Part> = messages.iter().map(|_| nothing_yet()).collect();
        let is_begun = AtomicBool::new(false);
        // A closing link waits for parts that are not sent yet.
        let _begun = (messages.len() > 1).then(|| self.trunk.begun.begin());
        let mut give_up = None;
        loop {
            self.send_open(parcel, &messages, &mut parts, &is_begun)
                .await;
            let is_late = give_up.is_some_and(|give_up| Instant::now() >= give_up);
            match self.next(parcel, &mut parts, is_late) {
                Next::Done(submitted) => return submitted,
                Next::Again => {
                    give_up.get_or_insert_with(|| self.patience_ends(parcel));
                    sleep(AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Sends all parts that the carrier has not accepted, concurrently.
    async fn send_open(
        &self,
        parcel: &Parcel,
        messages: &[ShortMessage],
        parts: &mut [Part],
        is_begun: &AtomicBool,
    ) {
        let is_open = |index: &usize| !matches!(parts[*index], Part::Taken(_));
        let open: Vec<usize> = (0..parts.len()).filter(is_open).collect();
        let sends = open
            .iter()
            .map(|index| self.send_part(&messages[*index], is_begun));
        let sent = all_in_order(sends.collect()).await;
        for (index, sent) in open.into_iter().zip(sent) {
            let part = &mut parts[index];
            *part = match (sent, &*part) {
                (PartSent::Taken(id), _) => Part::Taken(self.reference(&id, parcel, index)),
                (PartSent::Unknown, Part::Unknown(tries)) => Part::Unknown(tries + 1),
                (PartSent::Unknown, _) => Part::Unknown(1),
                // The earlier attempt may still have reached the carrier.
                (PartSent::NotSent, Part::Unknown(tries)) => Part::Unknown(*tries),
                (PartSent::NotSent, _) => Part::Open(Submitted::NotNow(Code::LINK_DOWN)),
                (PartSent::Unsendable, _) => Part::Open(Submitted::Declined(Code::INTERNAL)),
                (PartSent::Refused(status), _) => Part::Open(refusal::read(status)),
            };
        }
    }

    /// Decides what to do next.
    fn next(&self, parcel: &Parcel, parts: &mut [Part], is_late: bool) -> Next {
        if let Some(refused) = refused(parts) {
            return Next::Done(refused);
        }
        let is_taken = |part: &Part| matches!(part, Part::Taken(_));
        let any_taken = parts.iter().any(is_taken);
        self.give_up_unknown(parcel, parts, is_late && any_taken);
        if parts.iter().all(is_taken) {
            return Next::Done(Submitted::Taken(references(parts)));
        }
        let any_taken = parts.iter().any(is_taken);
        if any_taken && !is_late {
            return Next::Again;
        }
        let is_unknown = |part: &Part| matches!(part, Part::Unknown(_));
        if parts.iter().any(is_unknown) {
            return Next::Done(Submitted::Unknown);
        }
        let open = parts.iter().find_map(|part| match part {
            Part::Open(answer) => Some(answer.clone()),
            Part::Taken(_) | Part::Unknown(_) => None,
        });
        Next::Done(open.unwrap_or(Submitted::NotNow(Code::LINK_DOWN)))
    }

    /// Treats parts that were sent often enough as accepted: the message then waits for a receipt until it expires.
    fn give_up_unknown(&self, parcel: &Parcel, parts: &mut [Part], is_late: bool) {
        for (part, number) in parts.iter_mut().zip(1..) {
            let Part::Unknown(tries) = part else {
                continue;
            };
            let tries = parcel.unknown_tries.saturating_add(*tries);
            if is_late || tries >= self.settings.unknown_tries {
                tracing::warn!(
                    carrier = self.settings.name,
                    message = %parcel.id,
                    part = number,
                    tries,
                    "no answer to a part; it is not sent again and waits for a receipt"
                );
                *part = Part::Taken(unanswered(parcel.id, number));
            }
        }
    }

    /// Until when the rest of a message is tried.
    fn patience_ends(&self, parcel: &Parcel) -> Instant {
        let left = parcel.expires_at.duration_since(self.clock.now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        Instant::now() + left.min(PATIENCE)
    }

    /// Sends a part on the least busy link, or on another one if that link is lost before anything was sent. A closing
    /// link only takes parts of a message that has parts with the carrier already.
    async fn send_part(&self, message: &ShortMessage, is_begun: &AtomicBool) -> PartSent {
        for _ in 0..=self.links.len() {
            // Without a link, a turn would be wasted.
            if !is_begun.load(Ordering::Relaxed) && self.trunk.tally.sending() == 0 {
                return PartSent::NotSent;
            }
            let first = self.pace.turn().await;
            let turn = first.turn;
            let Some((link, session)) = self.least_busy(is_begun.load(Ordering::Relaxed)) else {
                return PartSent::NotSent;
            };
            let _occupied = link.occupy();
            is_begun.store(true, Ordering::Relaxed);
            match begin_holding(first, session.submit(message)).await {
                Ok(answer) if answer.status.is_ok() => {
                    pass(KillPoint::PartAnswered);
                    return PartSent::Taken(latin1(&answer.message_id));
                }
                Ok(answer) => {
                    if refusal::is_throttling(answer.status) {
                        self.pace.throttled(turn);
                        self.trunk.metrics.throttled();
                    }
                    if refusal::is_unbound(answer.status) {
                        tokio::spawn(async move { session.unbind().await });
                    }
                    return PartSent::Refused(answer.status);
                }
                Err(SubmitError::NotSent) => {}
                Err(SubmitError::Unknown) => return PartSent::Unknown,
                Err(SubmitError::Encode(error)) => {
                    tracing::error!(carrier = self.settings.name, %error, "a message cannot be sent as it is");
                    return PartSent::Unsendable;
                }
            }
        }
        PartSent::NotSent
    }
}

/// The result if a part is refused for good. Once another part is accepted, no other carrier may get the rest.
fn refused(parts: &[Part]) -> Option<Submitted> {
    let references = references(parts);
    let any_taken = !references.is_empty();
    let code = parts.iter().find_map(|part| match part {
        Part::Open(Submitted::Refused(code)) => Some(*code),
        Part::Open(Submitted::Declined(code)) if any_taken => Some(*code),
        Part::Open(_) | Part::Taken(_) | Part::Unknown(_) => None,
    })?;
    Some(if any_taken {
        Submitted::PartlyTaken { references, code }
    } else {
        Submitted::Refused(code)
    })
}

fn references(parts: &[Part]) -> Vec<String> {
    let taken = parts.iter().filter_map(|part| match part {
        Part::Taken(reference) => Some(reference.clone()),
        Part::Open(_) | Part::Unknown(_) => None,
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
async fn begin_holding<F: Future>(held: impl Sized, future: F) -> F::Output {
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
