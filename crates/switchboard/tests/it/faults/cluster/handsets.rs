//! Texts from handsets, which the network delivers all the time: to any node, long ones in parts and out of order, and
//! again whenever it got no answer.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::receiver::Request;
use testkit::smsc::{Answer, Receipt, Smsc};

use super::log::Log;
use super::requests::number_in;

/// The number that handsets send to.
pub(super) const NUMBER: &str = "1234";
/// The path of the callbacks.
pub(super) const PATH: &str = "/inbound";
/// Between two texts.
const PAUSE: Duration = Duration::from_millis(50);
/// Before a text that was refused is delivered again.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// One in this many texts has two parts.
const LONG_ONE_IN: u64 = 3;
const FIRST_HANDSET: u64 = 37_120_100_000;
const HANDSETS: u64 = 10_000;
/// The bit of `esm_class` that announces a header before the text.
const HEADER: u8 = 0x40;

/// A text, and what the network knows about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextRecord {
    pub(super) parts: u8,
    /// The parts that were acknowledged.
    pub(super) acknowledged: BTreeSet<u8>,
    /// How often a part was delivered without being acknowledged: it was refused, or its link ended. It may be stored.
    pub(super) unacknowledged: usize,
}

impl TextRecord {
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acknowledged.len() == usize::from(self.parts)
    }
}

/// A callback that came to the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextCallback {
    pub(super) text: String,
    pub(super) webhook_id: String,
    /// Whether the receiver acknowledged it.
    pub(super) received: bool,
}

/// What was observed of texts from handsets.
#[derive(Debug, Clone, Default)]
pub(super) struct TextObservations {
    /// By number.
    pub(super) texts: BTreeMap<u64, TextRecord>,
    /// By the ID of the message.
    pub(super) callbacks: HashMap<u64, Vec<TextCallback>>,
}

impl TextObservations {
    /// How many texts have no acknowledgement or no callback yet.
    pub(super) fn unfinished(&self) -> usize {
        let received = self.callbacks.values().flatten();
        let received = received.filter(|callback| callback.received);
        let called_back: BTreeSet<u64> = received
            .filter_map(|callback| number_in(callback.text.as_bytes()))
            .collect();
        let is_unfinished = |(number, record): &(&u64, &TextRecord)| {
            !record.is_acknowledged() || !called_back.contains(number)
        };
        self.texts.iter().filter(is_unfinished).count()
    }
}

/// The content of a part.
fn part_text(number: u64, parts: u8, part: u8) -> String {
    match (parts, part) {
        (1, _) => format!("#{number}#"),
        (_, 1) => format!("#{number}# is the first part, "),
        _ => format!("#{number}# the second."),
    }
}

/// The whole text.
pub(super) fn whole_text(number: u64, parts: u8) -> String {
    (1..=parts)
        .map(|part| part_text(number, parts, part))
        .collect()
}

/// A part on its way.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    number: u64,
    parts: u8,
    part: u8,
}

impl Delivery {
    fn pdu(self) -> Receipt {
        let text = part_text(self.number, self.parts, self.part).into_bytes();
        let handset = FIRST_HANDSET + self.number % HANDSETS;
        let message = if self.parts == 1 {
            Receipt::message(text)
        } else {
            let [.., high, low] = self.number.to_be_bytes();
            let header = [6, 8, 4, high, low, self.parts, self.part];
            Receipt::message([&header[..], &text].concat()).esm_class(HEADER)
        };
        message.from(handset.to_string()).to(NUMBER)
    }
}

/// Delivers texts, and keeps each part until it is acknowledged.
pub(super) struct Handsets {
    last_number: u64,
    next_at: Instant,
    due: VecDeque<(Instant, Delivery)>,
    /// By sequence number, with the connection.
    in_flight: HashMap<u32, (usize, Delivery)>,
    turn: usize,
}

impl Handsets {
    pub(super) fn new() -> Self {
        Self {
            last_number: 0,
            next_at: Instant::now(),
            due: VecDeque::new(),
            in_flight: HashMap::new(),
            turn: 0,
        }
    }

    /// Delivers what is due on the connections that are bound. `answers` came after `bound` was read, so that all
    /// answers of a connection that is not bound any more are known.
    pub(super) fn deliver(
        &mut self,
        smsc: &Smsc,
        log: &Log,
        bound: &[usize],
        answers: &[Answer],
        adds_texts: bool,
    ) {
        let now = Instant::now();
        for answer in answers {
            if let Some((_, delivery)) = self.in_flight.remove(&answer.sequence) {
                self.settle(log, delivery, answer.status == 0, now + RETRY_AFTER);
            }
        }
        let ended = self
            .in_flight
            .extract_if(|_, (connection, _)| !bound.contains(connection));
        for (_, (_, delivery)) in ended.collect::<Vec<_>>() {
            self.settle(log, delivery, false, now);
        }
        if adds_texts && now >= self.next_at {
            self.add_text(log, now);
        }
        let (due, later): (VecDeque<_>, _) = self.due.drain(..).partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, delivery) in due {
            self.turn += 1;
            let link = bound.get(self.turn % bound.len().max(1));
            match link.and_then(|link| Some((*link, smsc.send_on(*link, &delivery.pdu())?))) {
                Some((link, sequence)) => {
                    self.in_flight.insert(sequence, (link, delivery));
                }
                None => self.due.push_back((now, delivery)),
            }
        }
    }

    /// The last part of a long text comes first.
    fn add_text(&mut self, log: &Log, now: Instant) {
        self.last_number += 1;
        self.next_at = now + PAUSE;
        let number = self.last_number;
        let parts = if number.is_multiple_of(LONG_ONE_IN) {
            2
        } else {
            1
        };
        let record = TextRecord {
            parts,
            ..TextRecord::default()
        };
        log.observed().texts.texts.insert(number, record);
        self.due.extend((1..=parts).rev().map(|part| {
            let delivery = Delivery {
                number,
                parts,
                part,
            };
            (now, delivery)
        }));
    }

    fn settle(&mut self, log: &Log, delivery: Delivery, is_acknowledged: bool, again: Instant) {
        let mut observed = log.observed();
        let record = observed.texts.texts.entry(delivery.number).or_default();
        if is_acknowledged {
            record.acknowledged.insert(delivery.part);
        } else {
            record.unacknowledged += 1;
            self.due.push_back((again, delivery));
        }
    }
}

/// The ID and the content of a callback about a text.
pub(super) fn read_callback(request: &Request<'_>) -> Option<(u64, TextCallback)> {
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let callback = TextCallback {
        text: body["message"].as_str()?.to_owned(),
        webhook_id: request.header("webhook-id")?.to_owned(),
        received: false,
    };
    Some((body["id"].as_str()?.parse().ok()?, callback))
}
