//! Subscriber numbers in international form.

use std::fmt;

use crate::quoted::Quoted;

/// The shortest accepted number.
pub const MIN_DIGITS: usize = 7;
/// The longest number that E.164 allows.
pub const MAX_DIGITS: usize = 15;

/// A number in E.164 form: 7 to 15 digits, calling code first, without the plus sign.
///
/// Only its form is checked here; `numbering` knows whether the number can exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msisdn {
    digits: [u8; MAX_DIGITS],
    len: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MsisdnError {
    /// It contains a character other than digits, one leading plus and separators.
    #[error("{} holds {:?}; give digits in international format, such as +37120000001", Quoted(.value), .character)]
    Character {
        value: String,
        /// The first wrong character.
        character: char,
    },
    #[error("{} has {digits} digits; give 7 to 15 in international format, such as +37120000001", Quoted(.value))]
    Length { value: String, digits: usize },
    /// A national number, or one in the `00` form.
    #[error("{} starts with 0; give the number in international format, such as +37120000001, or its country in 'correctBy'", Quoted(.value))]
    LeadingZero { value: String },
}

impl Msisdn {
    /// Parses digits with or without a plus sign; spaces, `-`, `(`, `)` and `.` are ignored.
    pub fn parse(value: &str) -> Result<Self, MsisdnError> {
        let mut digits = [0; MAX_DIGITS];
        let mut len = 0;
        let mut plus_allowed = true;
        for character in value.chars() {
            match character {
                '0'..='9' => {
                    if len < MAX_DIGITS {
                        digits[len] = character as u8;
                    }
                    len += 1;
                }
                '+' if plus_allowed => {}
                ' ' | '-' | '(' | ')' | '.' => continue,
                _ => {
                    return Err(MsisdnError::Character {
                        value: value.to_owned(),
                        character,
                    });
                }
            }
            plus_allowed = false;
        }
        if !(MIN_DIGITS..=MAX_DIGITS).contains(&len) {
            return Err(MsisdnError::Length {
                value: value.to_owned(),
                digits: len,
            });
        }
        if digits[0] == b'0' {
            return Err(MsisdnError::LeadingZero {
                value: value.to_owned(),
            });
        }
        let len = u8::try_from(len).expect("at most fifteen");
        Ok(Self { digits, len })
    }

    /// Without the plus sign.
    pub fn digits(&self) -> &str {
        std::str::from_utf8(&self.digits[..usize::from(self.len)])
            .expect("only ASCII digits are stored")
    }

    /// The stored form.
    pub fn as_i64(&self) -> i64 {
        self.digits()
            .bytes()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
    }

    /// Reads the result of [`Self::as_i64`]. The first digit is never zero, so nothing is lost.
    pub fn from_i64(number: i64) -> Option<Self> {
        Self::parse(&number.to_string()).ok()
    }
}

/// With the plus sign, as in JSON responses.
impl fmt::Display for Msisdn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("+")?;
        f.write_str(self.digits())
    }
}

/// Debug output ends up in logs, so it never shows the whole number.
impl fmt::Debug for Msisdn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Msisdn(+{}…)", &self.digits()[..3])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_common_ways_to_write_a_number_give_the_same_digits() {
        for value in [
            "+37120000001",
            "37120000001",
            "+371 20-000-001",
            "(371) 2000.0001",
            " +37120000001 ",
        ] {
            assert_eq!(
                Msisdn::parse(value).map(|m| m.to_string()),
                Ok("+37120000001".to_owned()),
                "{value:?}"
            );
        }
    }

    #[test]
    fn errors_say_why_a_number_is_invalid() {
        for (value, reason) in [
            ("", "'' has 0 digits"),
            ("+123456", "has 6 digits"),
            ("+1234567890123456", "has 16 digits"),
            ("0037120000001", "starts with 0"),
            ("37120000001x", "holds 'x'"),
            ("++37120000001", "holds '+'"),
            ("371+20000001", "holds '+'"),
            ("٣٧١٢٠٠٠٠٠٠١", "holds '٣'"),
        ] {
            let error = Msisdn::parse(value).expect_err(value).to_string();
            assert!(error.contains(reason), "{value:?}: {error}");
        }
    }

    #[test]
    fn debug_output_hides_the_number() {
        let number = Msisdn::parse("+37120000001").expect("valid");
        assert_eq!(format!("{number:?}"), "Msisdn(+371…)");
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_storage_round_trips(value in "\\PC{0,24}|\\+?[0-9 ().-]{5,24}") {
            if let Ok(number) = Msisdn::parse(&value) {
                prop_assert_eq!(Msisdn::from_i64(number.as_i64()), Some(number));
                prop_assert_eq!(Msisdn::parse(&number.to_string()), Ok(number));
            }
        }
    }
}
