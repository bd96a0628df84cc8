//! The requests of the callers, and the final states that their messages must have.

use serde_json::{Value, json};

use super::log::{CANCELLED, FinalState, Log};

const SENDER: &str = "Faults";
const DELIVERED: FinalState = (1, 0);
/// The network accepts it and reports it as failed.
pub(super) const ABSENT: (u64, FinalState) = (37_120_000_943, (2, 43));
/// The network refuses it, and it is refunded.
pub(super) const REFUSED: (u64, FinalState) = (37_120_000_953, (2, 53));
const DELIVERABLE: u64 = 37_120_000_001;
/// Scheduled messages are due after this delay, plus up to the spread.
const MIN_DELAY_MS: u64 = 1500;
const DELAY_SPREAD_MS: u64 = 2500;
/// Messages that will be cancelled are scheduled for the next day, so that they are never due.
const CANCELLED_DELAY_MS: u64 = 24 * 3600 * 1000;
/// Length of a text of three parts.
const LONG_TEXT: usize = 400;

/// A request, and what must happen to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedRequest {
    /// Unique; each part of its text contains it, and it is the path of its reports.
    pub(super) number: u64,
    /// The recipients, with the final state of the message to each.
    pub(super) to: Vec<(u64, FinalState)>,
    pub(super) parts: u8,
    /// It has an idempotency key.
    pub(super) is_keyed: bool,
    pub(super) is_reported: bool,
    /// It must not be sent earlier.
    pub(super) not_before_ms: Option<u64>,
    /// Its caller cancels it at once.
    pub(super) is_cancelled: bool,
    /// It breaks a rule and must be refused.
    pub(super) is_invalid: bool,
}

impl PlannedRequest {
    /// A request to one recipient that is delivered and reported at once.
    pub(super) fn plain(number: u64) -> Self {
        Self {
            number,
            to: vec![(DELIVERABLE + number % 900, DELIVERED)],
            parts: 1,
            is_keyed: false,
            is_reported: true,
            not_before_ms: None,
            is_cancelled: false,
            is_invalid: false,
        }
    }

    /// There are twelve kinds of requests, in turn; half of the requests have a key.
    pub(super) fn make(log: &Log) -> Self {
        let number = log.next_number();
        let mut request = Self {
            is_keyed: number.is_multiple_of(2),
            ..Self::plain(number)
        };
        match number % 12 {
            1 | 2 => request.schedule(log),
            3 | 4 => request.parts = 3,
            5 | 6 => {
                request.to = (0..3)
                    .map(|index| (DELIVERABLE + index, DELIVERED))
                    .collect();
            }
            7 => request.to = vec![ABSENT],
            8 => request.to = vec![REFUSED],
            9 => request.is_invalid = true,
            10 => request.is_reported = false,
            11 => request.is_cancelled = true,
            _ => {}
        }
        if request.is_cancelled {
            request.not_before_ms = Some(log.now_ms() + CANCELLED_DELAY_MS);
            request.to[0].1 = CANCELLED;
            request.is_reported = false;
        }
        request
    }

    /// A request that is sent by SMPP. There are six kinds, in turn.
    pub(super) fn make_for_smpp(log: &Log) -> Self {
        let mut request = Self::plain(log.next_number());
        match request.number % 6 {
            1 => request.to = vec![ABSENT],
            2 => request.to = vec![REFUSED],
            3 => request.is_reported = false,
            _ => {}
        }
        request
    }

    /// A request that is scheduled for the next seconds.
    pub(super) fn make_scheduled(log: &Log) -> Self {
        let number = log.next_number();
        let mut request = Self {
            is_keyed: number.is_multiple_of(2),
            ..Self::plain(number)
        };
        request.schedule(log);
        request
    }

    fn schedule(&mut self, log: &Log) {
        let delay = MIN_DELAY_MS + self.number * 37 % DELAY_SPREAD_MS;
        self.not_before_ms = Some(log.now_ms() + delay);
    }

    pub(super) fn key(&self) -> Option<String> {
        self.is_keyed.then(|| format!("request-{}", self.number))
    }

    /// The body of the HTTP request. Reports go to paths below `receiver`.
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
            body["scheduled"] = log.to_timestamp(ms).to_string().into();
        }
        if self.is_invalid {
            body["expireIn"] = 1.into();
        }
        body
    }

    /// Repeats the number in long texts, so that each part contains it.
    pub(super) fn text(&self) -> String {
        let token = format!("#{}# ", self.number);
        match self.parts {
            1 => token,
            _ => token.repeat(LONG_TEXT / token.len()),
        }
    }
}

/// The number in a text, or in a part of it.
pub(super) fn number_in(text: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(text);
    let mut pieces = text.split('#');
    pieces.next();
    // A part may begin in the middle of a number, so the first piece is skipped.
    pieces.find_map(|piece| {
        let is_number = !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| piece.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::{PlannedRequest, number_in};

    #[test]
    fn each_part_of_a_long_text_has_its_number() {
        for number in [7, 1234, 999_999] {
            let request = PlannedRequest {
                parts: 3,
                ..PlannedRequest::plain(number)
            };
            let text = request.text();
            for part in text.as_bytes().chunks(153) {
                assert_eq!(number_in(part), Some(number));
            }
            assert!((307..=459).contains(&text.len()), "{}", text.len());
        }
    }
}
