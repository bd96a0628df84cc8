//! What the callers ask for, and what must become of it.

use serde_json::{Value, json};

use super::log::{CANCELLED, End, Log};

/// The sender of everything.
const SENDER: &str = "Faults";
const DELIVERED: End = (1, 0);
/// The network reports it as failed.
pub(super) const ABSENT: (u64, End) = (37_120_000_943, (2, 43));
/// The network does not take it, and it is paid back.
pub(super) const REFUSED: (u64, End) = (37_120_000_953, (2, 53));
const FINE: u64 = 37_120_000_001;
/// The nearest scheduled time, and how far behind it others lie.
const AHEAD_MS: u64 = 1500;
const SPREAD_MS: u64 = 2500;
/// How far ahead what is taken back lies: a day, so that it is never sent by itself.
const TO_CANCEL_MS: u64 = 24 * 3600 * 1000;
/// Characters of a text of three parts.
const LONG: usize = 400;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// Every order has its own; it stands in each part of its text and is the path of its reports.
    pub(super) number: u64,
    /// The recipients, with how the message to each must end.
    pub(super) to: Vec<(u64, End)>,
    pub(super) parts: u8,
    /// Whether it has an idempotency key.
    pub(super) is_keyed: bool,
    pub(super) is_reported: bool,
    /// It must not be sent before this.
    pub(super) not_before_ms: Option<u64>,
    /// Its caller takes it back at once.
    pub(super) is_cancelled: bool,
    /// It breaks a rule and must be refused.
    pub(super) is_invalid: bool,
}

impl Order {
    /// An order to one recipient that is delivered and reported at once.
    pub(super) fn plain(number: u64) -> Self {
        Self {
            number,
            to: vec![(FINE + number % 900, DELIVERED)],
            parts: 1,
            is_keyed: false,
            is_reported: true,
            not_before_ms: None,
            is_cancelled: false,
            is_invalid: false,
        }
    }

    /// Twelve kinds in turn; half of them have a key.
    pub(super) fn make(log: &Log) -> Self {
        let number = log.next();
        let mut order = Self {
            is_keyed: number.is_multiple_of(2),
            ..Self::plain(number)
        };
        match number % 12 {
            1 | 2 => order.schedule(log),
            3 | 4 => order.parts = 3,
            5 | 6 => order.to = (0..3).map(|place| (FINE + place, DELIVERED)).collect(),
            7 => order.to = vec![ABSENT],
            8 => order.to = vec![REFUSED],
            9 => order.is_invalid = true,
            10 => order.is_reported = false,
            11 => order.is_cancelled = true,
            _ => {}
        }
        if order.is_cancelled {
            order.not_before_ms = Some(log.now_ms() + TO_CANCEL_MS);
            order.to[0].1 = CANCELLED;
            order.is_reported = false;
        }
        order
    }

    /// An order for a time soon.
    pub(super) fn make_scheduled(log: &Log) -> Self {
        let number = log.next();
        let mut order = Self {
            is_keyed: number.is_multiple_of(2),
            ..Self::plain(number)
        };
        order.schedule(log);
        order
    }

    fn schedule(&mut self, log: &Log) {
        let ahead = AHEAD_MS + self.number * 37 % SPREAD_MS;
        self.not_before_ms = Some(log.now_ms() + ahead);
    }

    /// The key, where it has one.
    pub(super) fn key(&self) -> Option<String> {
        self.is_keyed.then(|| format!("order-{}", self.number))
    }

    /// The body of its request; reports go below `receiver`.
    pub(super) fn body(&self, log: &Log, receiver: &str) -> Value {
        let to = self.to.iter().map(|(number, _)| format!("+{number}"));
        let mut body = json!({
            "to": to.collect::<Vec<_>>(),
            "from": SENDER,
            "message": self.text(),
        });
        if self.is_reported {
            body["dlrUrl"] = format!("{receiver}/{}", self.number).into();
        }
        if let Some(ms) = self.not_before_ms {
            body["scheduled"] = log.time_of(ms).to_string().into();
        }
        if self.is_invalid {
            body["expireIn"] = 1.into();
        }
        body
    }

    /// Its number, again and again where the text is long: each part has it at least once.
    fn text(&self) -> String {
        let token = format!("#{}# ", self.number);
        match self.parts {
            1 => token,
            _ => token.repeat(LONG / token.len()),
        }
    }
}

/// The number in a text, or in a part of it.
pub(super) fn number_in(text: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(text);
    let mut pieces = text.split('#');
    pieces.next();
    // A part may begin in the middle of a number, which is then no whole one.
    pieces.find_map(|piece| {
        let is_number = !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| piece.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::{Order, number_in};

    #[test]
    fn each_part_of_a_long_text_has_its_number() {
        for number in [7, 1234, 999_999] {
            let order = Order {
                parts: 3,
                ..Order::plain(number)
            };
            let text = order.text();
            for part in text.as_bytes().chunks(153) {
                assert_eq!(number_in(part), Some(number));
            }
            assert!((307..=459).contains(&text.len()), "{}", text.len());
        }
    }
}
