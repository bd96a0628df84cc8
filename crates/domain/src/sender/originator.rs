//! The originator of a message.

use std::fmt;

use crate::number::msisdn::Msisdn;
use crate::quoted::Quoted;
use crate::sender;

/// The longest alphanumeric originator that networks accept.
pub const MAX_NAME_CHARS: usize = 11;

/// The source address of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Originator {
    Msisdn(Msisdn),
    /// 1 to 11 Latin letters, digits, spaces and dots. Short names of digits are short codes. Approved sender IDs may
    /// also contain `- _ & # !`.
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is not a sender ID; it must be a valid MSISDN or an alphanumeric string of at most 11 characters \
     made of upper/lower-case Latin letters, digits, spaces and dots",
    Quoted(.value)
)]
pub struct OriginatorError {
    value: String,
}

impl Originator {
    /// Parses a number of 7 to 15 digits, with or without plus, or a name.
    pub fn parse(value: &str) -> Result<Self, OriginatorError> {
        let digits = value.strip_prefix('+').unwrap_or(value);
        let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if numeric && let Ok(number) = Msisdn::parse(value) {
            return Ok(Self::Msisdn(number));
        }
        if is_name(value) {
            return Ok(Self::Name(value.to_owned()));
        }
        Err(OriginatorError {
            value: value.to_owned(),
        })
    }

    /// Like [`Self::parse`], but also accepts characters that only sender IDs may contain. The caller must know that
    /// the sender ID is approved, or was when the message was accepted.
    pub fn parse_approved(value: &str) -> Result<Self, OriginatorError> {
        Self::parse(value).or_else(|error| {
            let is_name = sender::is_name(value);
            is_name.then(|| Self::Name(value.to_owned())).ok_or(error)
        })
    }

    /// The form that is compared: a number as its digits.
    pub fn compared(&self) -> &str {
        match self {
            Self::Msisdn(number) => number.digits(),
            Self::Name(name) => name,
        }
    }
}

fn is_name(value: &str) -> bool {
    value.len() <= MAX_NAME_CHARS
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b' ' || b == b'.')
        && value.bytes().any(|b| b.is_ascii_alphanumeric())
}

impl fmt::Display for Originator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Msisdn(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_distinguished() {
        for (value, shown) in [
            ("+37120000001", Some("+37120000001")),
            ("37120000001", Some("+37120000001")),
            ("1234567", Some("+1234567")),
            ("12345", Some("12345")),
            ("0012345", Some("0012345")),
            ("Acme", Some("Acme")),
            ("Acme Inc.", Some("Acme Inc.")),
            ("12345678901", Some("+12345678901")),
            ("ABCDEFGHIJK", Some("ABCDEFGHIJK")),
            ("ABCDEFGHIJKL", None),
            ("+12345", None),
            ("0123456789012", None),
            ("Acme-Inc", None),
            ("Ácme", None),
            ("", None),
            ("   ", None),
            ("...", None),
            ("a\tb", None),
        ] {
            assert_eq!(
                Originator::parse(value)
                    .ok()
                    .map(|o| o.to_string())
                    .as_deref(),
                shown,
                "{value:?}"
            );
        }
    }

    #[test]
    fn an_approved_name_may_hold_more_symbols() {
        for (value, shown) in [
            ("Acme-Inc", Some("Acme-Inc")),
            ("A_b&c#d!", Some("A_b&c#d!")),
            ("A", Some("A")),
            ("37120000001", Some("+37120000001")),
            ("A-", None),
            ("---", None),
            ("Acme@Inc", None),
            ("Acme-Inc-Ltd", None),
        ] {
            let read = Originator::parse_approved(value).ok();
            assert_eq!(read.map(|o| o.to_string()).as_deref(), shown, "{value:?}");
        }
        let number = Originator::parse("+37120000001").expect("a number");
        assert_eq!(number.compared(), "37120000001");
    }

    #[test]
    fn the_error_states_the_rule_of_the_contract() {
        let error = Originator::parse("Acme-Inc")
            .expect_err("a dash")
            .to_string();
        assert!(
            error.starts_with(
                "'Acme-Inc' is not a sender ID; it must be a valid MSISDN or an alphanumeric"
            ),
            "{error}"
        );
        assert!(
            error.contains("of at most 11 characters made of"),
            "{error}"
        );
    }
}
