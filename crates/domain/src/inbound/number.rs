//! Numbers that handsets send to.

use std::fmt;

use crate::number::msisdn::Msisdn;
use crate::quoted::Quoted;

/// The lengths of short codes.
const SHORT_CODE_DIGITS: std::ops::RangeInclusive<usize> = 3..=8;

/// A number that handsets send to: a phone number with its country code, or a short code of 3 to 8 digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InboundNumber {
    Msisdn(Msisdn),
    ShortCode(String),
    /// It was erased from a stored message.
    Erased,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is not a number that messages can be sent to; it must be a phone number with country code, such as \
     +37120000001, or a short code of 3 to 8 digits",
    Quoted(.value)
)]
pub struct InboundNumberError {
    value: String,
}

impl InboundNumber {
    /// Parses a number. Up to 8 digits without plus are a short code.
    pub fn parse(value: &str) -> Result<Self, InboundNumberError> {
        let is_short = SHORT_CODE_DIGITS.contains(&value.len())
            && value.bytes().all(|byte| byte.is_ascii_digit());
        if is_short {
            return Ok(Self::ShortCode(value.to_owned()));
        }
        Msisdn::parse(value)
            .map(Self::Msisdn)
            .map_err(|_| InboundNumberError {
                value: value.to_owned(),
            })
    }

    /// The number in an address that a carrier gives. `is_international` tells whether the carrier says that it has a
    /// country code: then even a few digits are a phone number.
    pub fn from_address(digits: &str, is_international: bool) -> Result<Self, InboundNumberError> {
        let digits = digits.trim();
        if is_international && let Ok(number) = Msisdn::parse(digits) {
            return Ok(Self::Msisdn(number));
        }
        Self::parse(digits)
    }

    /// The digits, by which numbers are compared: carriers do not always say what kind of number they mean.
    pub fn digits(&self) -> &str {
        match self {
            Self::Msisdn(number) => number.digits(),
            Self::ShortCode(digits) => digits,
            Self::Erased => "",
        }
    }
}

impl fmt::Display for InboundNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Msisdn(number) => number.fmt(f),
            Self::ShortCode(digits) => f.write_str(digits),
            Self::Erased => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_country_code_or_is_short() {
        for (written, shown) in [
            ("+37120000001", Some("+37120000001")),
            ("37120000001", Some("+37120000001")),
            ("1234567", Some("1234567")),
            ("+12345678", Some("+12345678")),
            ("123", Some("123")),
            ("12345678", Some("12345678")),
            ("12", None),
            ("12a", None),
            ("", None),
            ("Acme", None),
            ("+123", None),
        ] {
            let number = InboundNumber::parse(written).ok();
            assert_eq!(
                number.map(|number| number.to_string()).as_deref(),
                shown,
                "{written}"
            );
        }
    }

    #[test]
    fn the_carrier_may_say_that_a_short_number_is_international() {
        for (digits, is_international, shown) in [
            ("12345678", true, "+12345678"),
            ("12345678", false, "12345678"),
            ("1234", true, "1234"),
            (" 37120000001 ", false, "+37120000001"),
        ] {
            let number = InboundNumber::from_address(digits, is_international).expect(digits);
            assert_eq!(number.to_string(), shown);
            assert_eq!(number.digits(), shown.trim_start_matches('+'));
        }
    }
}
