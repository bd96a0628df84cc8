//! What happened to a message, in order and in words.

use domain::code::{Code, Lasting};
use domain::delivery::{CallbackAttempt, Outcome};
use domain::message::MessageState;
use domain::ports::{CallbackRecord, CallbackState, MessageStory, MessageSummary, PartStory};
use domain::{Channel, Timestamp};

use crate::dashboard::shown::{Moment, money};

/// Something that happened, or is about to.
pub(in crate::dashboard) struct Event {
    pub(in crate::dashboard) at: Option<Moment>,
    /// A word of the style sheet: good, bad, warn, or nothing.
    pub(in crate::dashboard) kind: &'static str,
    pub(in crate::dashboard) title: String,
    pub(in crate::dashboard) lines: Vec<String>,
    /// What a receiver answered, word for word.
    pub(in crate::dashboard) answer: Option<String>,
    /// The callback that it is about.
    pub(in crate::dashboard) callback: Option<u64>,
    /// When it comes, where that is known.
    pub(in crate::dashboard) next: Option<Moment>,
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

/// The story of a message: what happened by time, then what is waited for.
pub(super) fn of(story: &MessageStory, currency: &str) -> Vec<Event> {
    let mut past: Vec<(Timestamp, Event)> = Vec::new();
    let accepted = story.summary.accepted_at;
    let price = money(story.summary.price, currency);
    past.push((
        accepted,
        Event::new(accepted, "", "Accepted").with(format!("Price: {price}")),
    ));
    past.extend(story.parts.iter().map(|part| taken(part, story)));
    past.extend(end(&story.summary));
    if let Some(at) = story.seen_at {
        past.push((at, Event::new(at, "good", "Seen by the recipient")));
    }
    for (callback, tries) in &story.callbacks {
        past.extend(tries.iter().map(|one| attempt(callback, one)));
    }
    // Stable: what has the same time stays in the order above.
    past.sort_by_key(|(at, _)| *at);
    let mut events: Vec<Event> = past.into_iter().map(|(_, event)| event).collect();
    events.extend(waiting(story));
    let callbacks = story.callbacks.iter();
    events.extend(callbacks.filter_map(|(callback, _)| untold(callback)));
    events
}

fn taken(part: &PartStory, story: &MessageStory) -> (Timestamp, Event) {
    let title = match story.shape.parts {
        1 => format!("Taken by carrier {}", part.carrier),
        parts => format!(
            "Part {} of {parts} taken by carrier {}",
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
        .with(format!("Its reference: {}", part.reference))
        .with(reported);
    (part.taken_at, event)
}

fn end(message: &MessageSummary) -> Option<(Timestamp, Event)> {
    let (at, event) = match message.state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => return None,
        MessageState::Cancelled { at } => {
            let event = Event::new(at, "", "Cancelled").with("Its price was given back.");
            (at, event)
        }
        MessageState::Ended { outcome, at } => (at, ended(message.channel, outcome, at)),
    };
    Some((at, event))
}

fn ended(channel: Channel, outcome: Outcome, at: Timestamp) -> Event {
    match outcome {
        Outcome::Delivered if channel == Channel::Hlr => Event::new(at, "good", "Answered"),
        Outcome::Delivered => Event::new(at, "good", "Delivered"),
        Outcome::Expired => Event::new(at, "warn", "Expired")
            .with("A carrier took it, but no final report came in time.")
            .with(Code::EXPIRED.entry().hint),
        Outcome::Failed(code) => {
            let entry = code.entry();
            let title = format!("Failed: {} (error {})", entry.words, entry.number);
            let event = Event::new(at, "bad", title).with(entry.hint);
            match entry.lasting {
                Lasting::Permanent => event.with("Sent again as it is, it would fail again."),
                Lasting::Temporary | Lasting::Neither => event,
            }
        }
    }
}

/// One try to tell the caller.
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

/// What the message itself waits for.
fn waiting(story: &MessageStory) -> Option<Event> {
    let event = match story.summary.state {
        MessageState::Ended { .. } | MessageState::Cancelled { .. } => return None,
        MessageState::Scheduled { at } => Event {
            next: Some(at.into()),
            ..Event::to_come("", "Goes out at")
        },
        MessageState::Sent => Event {
            next: Some(story.expires_at.into()),
            ..Event::to_come("", "Waits for the carrier's report, at the longest until")
        },
        MessageState::Queued => {
            let tries = story.attempts.unwrap_or(0);
            let event = match tries {
                0 | 1 => Event::to_come("", "Waits to be handed to a carrier"),
                _ => Event::to_come("warn", "Waits to be handed to a carrier again, at")
                    .with(format!("Tried {} times; no carrier took it.", tries - 1)),
            };
            let next = story.due_at.filter(|_| tries > 1).map(Moment::from);
            Event { next, ..event }
        }
    };
    Some(event)
}

/// A report that its receiver does not have yet.
fn untold(callback: &CallbackRecord) -> Option<Event> {
    let event = match callback.state {
        CallbackState::Done => return None,
        CallbackState::Waiting { due_at } if callback.tries == 0 => Event {
            next: Some(due_at.into()),
            ..Event::to_come("", "The report goes out at")
        },
        CallbackState::Waiting { due_at } => Event {
            next: Some(due_at.into()),
            ..Event::to_come("warn", "The report is tried again at")
        },
        CallbackState::Parked => {
            Event::to_come("bad", "The report is parked: it is tried no more by itself")
        }
    };
    let event = event.with(format!("To {}", callback.url));
    Some(Event {
        callback: Some(callback.id.get()),
        ..event
    })
}
