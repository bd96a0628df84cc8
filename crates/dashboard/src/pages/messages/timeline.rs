//! The timeline of a message.

use domain::delivery::CallbackAttempt;
use domain::message::MessageState;
use domain::message::code::{Code, Permanence};
use domain::message::outcome::Outcome;
use domain::ports::{CallbackRecord, CallbackState, MessageDetail, MessageSummary, PartDetail};
use domain::{Channel, Money, Timestamp};

use crate::kit::format::{Moment, money};

pub(crate) struct Event {
    pub(crate) at: Option<Moment>,
    /// A class of the style sheet: good, bad, warn, or empty.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    pub(crate) answer: Option<String>,
    pub(crate) callback: Option<u64>,
    /// The expected time of a future event.
    pub(crate) next: Option<Moment>,
}

impl Event {
    fn new(at: Timestamp, kind: &'static str, title: impl Into<String>) -> Self {
        Self {
            at: Some(at.into()),
            ..Self::to_come(kind, title)
        }
    }

    fn to_come(kind: &'static str, title: impl Into<String>) -> Self {
        Self {
            at: None,
            kind,
            title: title.into(),
            lines: Vec::new(),
            answer: None,
            callback: None,
            next: None,
        }
    }

    fn with(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

/// Past events by time, then what is still to come.
pub(super) fn events(detail: &MessageDetail, currency: &str) -> Vec<Event> {
    let mut past: Vec<(Timestamp, Event)> = Vec::new();
    let accepted = detail.summary.accepted_at;
    let price = money(detail.summary.price, currency);
    past.push((
        accepted,
        Event::new(accepted, "", "Accepted").with(format!("Price: {price}")),
    ));
    past.extend(detail.parts.iter().map(|part| part_taken(part, detail)));
    past.extend(end(&detail.summary, currency));
    if let Some(at) = detail.seen_at {
        past.push((at, Event::new(at, "good", "Seen by the recipient")));
    }
    for (callback, tries) in &detail.callbacks {
        past.extend(tries.iter().map(|one| attempt(callback, one)));
    }
    // The sort is stable: events of the same time keep the order above.
    past.sort_by_key(|(at, _)| *at);
    let mut events: Vec<Event> = past.into_iter().map(|(_, event)| event).collect();
    events.extend(waiting(detail));
    let callbacks = detail.callbacks.iter();
    events.extend(callbacks.filter_map(|(callback, _)| pending_callback(callback)));
    events
}

fn part_taken(part: &PartDetail, detail: &MessageDetail) -> (Timestamp, Event) {
    let title = match detail.shape.parts {
        1 => format!("Accepted by carrier {}", part.carrier),
        parts => format!(
            "Part {} of {parts} accepted by carrier {}",
            part.part, part.carrier
        ),
    };
    let reported = match part.outcome {
        None => "No receipt yet".to_owned(),
        Some(Outcome::Delivered) => "Receipt: delivered".to_owned(),
        Some(Outcome::Failed(code)) => format!("Receipt: failed, error {code}"),
        Some(Outcome::Expired) => "Receipt: expired".to_owned(),
    };
    let event = Event::new(part.taken_at, "", title)
        .with(format!("Reference: {}", part.reference))
        .with(reported);
    (part.taken_at, event)
}

fn end(message: &MessageSummary, currency: &str) -> Option<(Timestamp, Event)> {
    let (at, event) = match message.state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => return None,
        MessageState::Cancelled { at } => (at, Event::new(at, "", "Cancelled")),
        MessageState::Ended { outcome, at } => (at, ended(message.channel, outcome, at)),
    };
    let event = match message.refunded() {
        Money::ZERO => event,
        refunded => event.with(format!("Refunded: {}", money(refunded, currency))),
    };
    Some((at, event))
}

fn ended(channel: Channel, outcome: Outcome, at: Timestamp) -> Event {
    match outcome {
        Outcome::Delivered if channel == Channel::Hlr => Event::new(at, "good", "Answered"),
        Outcome::Delivered => Event::new(at, "good", "Delivered"),
        Outcome::Expired => Event::new(at, "warn", "Expired")
            .with("A carrier accepted it, but no final report arrived in time.")
            .with(Code::EXPIRED.entry().hint),
        Outcome::Failed(code) => {
            let entry = code.entry();
            let title = format!("Failed: {} (error {})", entry.words, entry.number);
            let event = Event::new(at, "bad", title).with(entry.hint);
            match entry.lasting {
                Permanence::Permanent => {
                    event.with("It would fail again if it were sent unchanged.")
                }
                Permanence::Temporary | Permanence::Neither => event,
            }
        }
    }
}

fn attempt(callback: &CallbackRecord, attempt: &CallbackAttempt) -> (Timestamp, Event) {
    let is_last = callback
        .last
        .as_ref()
        .is_some_and(|last| last.at == attempt.at);
    let received = is_last && callback.state == CallbackState::Done;
    let (kind, title) = if received {
        ("good", "Report received".to_owned())
    } else {
        ("bad", "Report not received".to_owned())
    };
    let status = attempt.status.map_or_else(
        || "No answer".to_owned(),
        |status| format!("Answered {status}"),
    );
    let mut event = Event::new(attempt.at, kind, title).with(format!(
        "{status} after {} ms: {}",
        attempt.elapsed_ms, attempt.reason
    ));
    if !received && !attempt.body.is_empty() {
        event.answer = Some(String::from_utf8_lossy(&attempt.body).into_owned());
    }
    event.callback = Some(callback.id.get());
    (attempt.at, event)
}

fn waiting(detail: &MessageDetail) -> Option<Event> {
    let event = match detail.summary.state {
        MessageState::Ended { .. } | MessageState::Cancelled { .. } => return None,
        MessageState::Scheduled { at } => Event {
            next: Some(at.into()),
            ..Event::to_come("", "Will be sent at")
        },
        MessageState::Sent => Event {
            next: Some(detail.expires_at.into()),
            ..Event::to_come("", "Waiting for the carrier's report, at most until")
        },
        MessageState::Queued => {
            let tries = detail.attempts.unwrap_or(0);
            let event = match tries {
                0 | 1 => Event::to_come("", "Waiting for a carrier"),
                _ => Event::to_come("warn", "Waiting for the next attempt, at").with(format!(
                    "Tried {} times; no carrier accepted it.",
                    tries - 1
                )),
            };
            let next = detail.due_at.filter(|_| tries > 1).map(Moment::from);
            Event { next, ..event }
        }
    };
    Some(event)
}

fn pending_callback(callback: &CallbackRecord) -> Option<Event> {
    let event = match callback.state {
        CallbackState::Done => return None,
        CallbackState::Waiting { due_at } if callback.tries == 0 => Event {
            next: Some(due_at.into()),
            ..Event::to_come("", "The report will be sent at")
        },
        CallbackState::Waiting { due_at } => Event {
            next: Some(due_at.into()),
            ..Event::to_come("warn", "The next attempt to send the report is at")
        },
        CallbackState::Parked => Event::to_come(
            "bad",
            "The report is parked: it is no longer sent automatically",
        ),
    };
    let event = event.with(format!("To {}", callback.url));
    Some(Event {
        callback: Some(callback.id.get()),
        ..event
    })
}

#[cfg(test)]
mod tests {
    use domain::delivery::CallbackKind;
    use domain::ids::CallbackId;
    use domain::message::Priority;
    use domain::message::text::{Coding, Shape};
    use domain::ports::CallbackSubject;
    use domain::{AccountId, MessageId, Msisdn};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn detail(state: MessageState) -> MessageDetail {
        let account = AccountId::new(1).expect("in range");
        MessageDetail {
            summary: MessageSummary {
                id: MessageId::new(7).expect("in range"),
                account,
                channel: Channel::Sms,
                from: Some("Acme".to_owned()),
                to: Msisdn::parse("+37120000001").ok(),
                text: "Hello".to_owned(),
                state,
                parts: 1,
                price: Money::from_micros(40_000),
                charged: None,
                test_mode: None,
                network: None,
                accepted_at: at(100),
            },
            shape: Shape {
                coding: Coding::Gsm7,
                parts: 1,
            },
            priority: Priority::Normal,
            interactive: None,
            result: None,
            dlr_url: None,
            scheduled_at: None,
            expires_at: at(9000),
            seen_at: None,
            attempts: None,
            due_at: None,
            parts: Vec::new(),
            callbacks: Vec::new(),
        }
    }

    fn attempt(second: i64, status: u16, body: &str) -> CallbackAttempt {
        CallbackAttempt {
            at: at(second),
            status: Some(status),
            elapsed_ms: 3,
            body: body.as_bytes().to_vec(),
            address: None,
            reason: format!("{status}, and more"),
        }
    }

    fn callback(state: CallbackState, tries: &[CallbackAttempt]) -> CallbackRecord {
        CallbackRecord {
            id: CallbackId::new(5).expect("in range"),
            kind: CallbackKind::Report,
            account: AccountId::new(1).expect("in range"),
            url: "https://example.com/".to_owned(),
            payload: "{}".to_owned(),
            about: CallbackSubject::Message(MessageId::new(7).expect("in range")),
            state,
            tries: u32::try_from(tries.len()).expect("a few"),
            created_at: at(103),
            last: tries.last().cloned(),
        }
    }

    fn titles(detail: &MessageDetail) -> Vec<(&'static str, String)> {
        let events = events(detail, "EUR").into_iter();
        events.map(|event| (event.kind, event.title)).collect()
    }

    #[test]
    fn past_events_are_in_order_before_future_ones() {
        let failed = MessageState::Ended {
            outcome: Outcome::Failed(Code::ABSENT),
            at: at(103),
        };
        let tries = [attempt(104, 200, "<b>no</b>"), attempt(110, 500, "")];
        let waiting = CallbackState::Waiting { due_at: at(140) };
        let mut message = detail(failed);
        message.parts.push(PartDetail {
            part: 1,
            carrier: "alpha".to_owned(),
            reference: "x1".to_owned(),
            taken_at: at(101),
            outcome: Some(Outcome::Failed(Code::ABSENT)),
        });
        message
            .callbacks
            .push((callback(waiting, &tries), tries.to_vec()));
        let expected = [
            ("", "Accepted"),
            ("", "Accepted by carrier alpha"),
            ("bad", "Failed: the subscriber is absent (error 43)"),
            ("bad", "Report not received"),
            ("bad", "Report not received"),
            ("warn", "The next attempt to send the report is at"),
        ];
        let expected = expected.map(|(kind, title)| (kind, title.to_owned()));
        assert_eq!(titles(&message), expected);
        let answer = events(&message, "EUR").remove(3).answer;
        assert_eq!(answer.as_deref(), Some("<b>no</b>"));

        message.callbacks[0].0.state = CallbackState::Done;
        let last = titles(&message).pop().expect("events");
        assert_eq!(last, ("good", "Report received".to_owned()));
    }

    #[test]
    fn the_last_event_says_what_the_message_waits_for() {
        for (state, attempts, title) in [
            (
                MessageState::Scheduled { at: at(500) },
                None,
                "Will be sent at",
            ),
            (MessageState::Queued, Some(1), "Waiting for a carrier"),
            (
                MessageState::Queued,
                Some(4),
                "Waiting for the next attempt, at",
            ),
            (
                MessageState::Sent,
                None,
                "Waiting for the carrier's report, at most until",
            ),
            (MessageState::Cancelled { at: at(120) }, None, "Cancelled"),
        ] {
            let message = MessageDetail {
                attempts,
                due_at: Some(at(200)),
                ..detail(state)
            };
            let last = titles(&message).pop().expect("events");
            assert_eq!(last.1, title, "{state:?}");
        }
    }
}
