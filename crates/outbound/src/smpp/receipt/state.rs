//! States of a part in receipts.

use domain::{Code, Outcome};

use crate::smpp::code;

/// The state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Scheduled,
    Enroute,
    Delivered,
    Expired,
    Deleted,
    Undeliverable,
    Accepted,
    Unknown,
    Rejected,
    Skipped,
}

/// The number in the TLV `message_state`, and the words in texts.
const STATES: &[(u8, State, &[&str])] = &[
    (0, State::Scheduled, &["SCHEDULED", "SCHEDLD"]),
    (
        1,
        State::Enroute,
        &["ENROUTE", "EN_ROUTE", "BUFFERED", "BUFFRED"],
    ),
    (
        2,
        State::Delivered,
        &["DELIVRD", "DELIVERED", "DELIVERD", "DELIVRED"],
    ),
    (3, State::Expired, &["EXPIRED"]),
    (4, State::Deleted, &["DELETED"]),
    (
        5,
        State::Undeliverable,
        &[
            "UNDELIV",
            "UNDELIVERABLE",
            "UNDELIVERED",
            "UNDELIVRD",
            "FAILED",
        ],
    ),
    (6, State::Accepted, &["ACCEPTD", "ACCEPTED"]),
    (7, State::Unknown, &["UNKNOWN"]),
    (8, State::Rejected, &["REJECTD", "REJECTED"]),
    (9, State::Skipped, &["SKIPPED"]),
];

impl State {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        let found = STATES.iter().find(|(known, ..)| *known == number);
        found.map(|(_, state, _)| *state)
    }

    /// Parses a word, abbreviated or in full, in any case, or a number.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        if let Ok(number) = word.parse() {
            return Self::from_number(number);
        }
        let has_it = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        let found = STATES.iter().find(|(_, _, words)| has_it(words));
        found.map(|(_, state, _)| *state)
    }

    /// The outcome, if the state is final. `cause` is the code of the receipt's error number.
    pub(super) fn outcome(self, cause: Option<Code>) -> Option<Outcome> {
        Some(match self {
            Self::Scheduled | Self::Enroute | Self::Accepted => return None,
            Self::Delivered => Outcome::Delivered,
            Self::Expired => Outcome::Expired,
            Self::Deleted => Outcome::Failed(code(13)),
            Self::Undeliverable => Outcome::Failed(cause.unwrap_or(Code::SYSTEM_FAILURE)),
            Self::Unknown => Outcome::Failed(Code::NO_FINAL_REPORT),
            // A network skips messages by its own rules.
            Self::Rejected | Self::Skipped => Outcome::Failed(code(12)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_ends_as_decided() {
        let failed = |number| Some(Outcome::Failed(code(number)));
        for (words, cause, expected) in [
            (
                &["DELIVRD", "delivrd", "Delivered", "2"][..],
                Some(6),
                Some(Outcome::Delivered),
            ),
            (&["EXPIRED", "3"], Some(6), Some(Outcome::Expired)),
            (&["DELETED", "4"], Some(43), failed(13)),
            (
                &["UNDELIV", "UNDELIVERABLE", "undelivered", "FAILED", "5"],
                Some(43),
                failed(43),
            ),
            (&["UNDELIV"], None, failed(8)),
            (&["UNKNOWN", "7"], Some(43), failed(14)),
            (&["REJECTD", "REJECTED", "8"], Some(43), failed(12)),
            (&["SKIPPED", "9"], None, failed(12)),
            (
                &["ENROUTE", "ACCEPTD", "ACCEPTED", "SCHEDULED", "0", "1", "6"],
                Some(43),
                None,
            ),
        ] {
            for word in words {
                let state = State::from_word(word).expect(word);
                assert_eq!(state.outcome(cause.map(code)), expected, "{word}");
            }
        }
    }

    #[test]
    fn other_words_and_numbers_are_no_state() {
        for word in ["", "10", "255", "256", "DELIV", "HANDSET", "-1"] {
            assert_eq!(State::from_word(word), None, "{word:?}");
        }
        for (number, state, _) in STATES {
            assert_eq!(State::from_number(*number), Some(*state));
        }
        assert_eq!(State::from_number(10), None);
    }
}
