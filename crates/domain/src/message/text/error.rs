//! Why a text cannot be sent as requested.

use super::{Coding, MAX_PARTS, MESSAGE_OCTETS};
use crate::message::code::Code;

/// A text that cannot be sent. Each error text continues `Invalid value for field 'message':`, and names the rule and
/// what broke it. It never contains the message text, because error texts are logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("it is empty; give at least one character")]
    Empty,

    /// More parts than a handset can join.
    #[error("it takes {parts} parts in {coding}; give a text of at most {MAX_PARTS} parts")]
    TooManyParts {
        /// The coding that the text needs.
        coding: Coding,
        parts: usize,
    },

    /// The requested coding does not contain a character.
    #[error(
        "character {character:?} (U+{:04X}) at position {position} is not in {coding}; {}",
        u32::from(*character),
        hint(*coding)
    )]
    NotInCoding {
        coding: Coding,
        /// The first character that the coding does not contain.
        character: char,
        /// Counted in characters from 1.
        position: usize,
    },

    /// The requested coding turns splitting off, and the text is too long for one part.
    #[error(
        "it takes {units} {} in {coding} where one part holds {limit}; \
         give `udh` and the text of one part, or leave `coding` out to have it split",
        coding.unit()
    )]
    TooLong {
        coding: Coding,
        /// The length of the text in units of the coding.
        units: usize,
        /// How many units one part holds.
        limit: usize,
    },

    /// The text and its User Data Header do not fit into one message.
    #[error(
        "it takes {units} {} in {coding} where {limit} fit beside a `udh` of {udh_octets} octets; \
         text and `udh` share {MESSAGE_OCTETS} octets",
        coding.unit()
    )]
    TooLongBesideUdh {
        coding: Coding,
        /// The length of the text in units of the coding.
        units: usize,
        /// How many units fit beside the header.
        limit: usize,
        udh_octets: usize,
    },
}

impl TextError {
    /// The service error code; an empty text has none.
    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::Empty => None,
            Self::NotInCoding { .. } => Some(Code::BAD_CODING),
            Self::TooManyParts { .. } | Self::TooLong { .. } | Self::TooLongBesideUdh { .. } => {
                Some(Code::TOO_LONG)
            }
        }
    }
}

const fn hint(coding: Coding) -> &'static str {
    match coding {
        Coding::Gsm7 => "leave `coding` out, or give 2 (UCS-2)",
        Coding::Binary => "give characters from U+0000 to U+00FF only",
        Coding::Ucs2 => "leave it out",
    }
}

#[cfg(test)]
mod tests {
    use super::TextError;
    use crate::message::text::Coding;

    #[test]
    fn messages_name_the_rule_and_what_was_sent() {
        let cases = [
            (TextError::Empty, "it is empty; give at least one character"),
            (
                TextError::TooManyParts {
                    coding: Coding::Gsm7,
                    parts: 256,
                },
                "it takes 256 parts in coding 0 (GSM-7); give a text of at most 255 parts",
            ),
            (
                TextError::NotInCoding {
                    coding: Coding::Gsm7,
                    character: 'ş',
                    position: 3,
                },
                "character 'ş' (U+015F) at position 3 is not in coding 0 (GSM-7); \
                 leave `coding` out, or give 2 (UCS-2)",
            ),
            (
                TextError::NotInCoding {
                    coding: Coding::Binary,
                    character: '\u{202E}',
                    position: 1,
                },
                "character '\\u{202e}' (U+202E) at position 1 is not in coding 1 (8-bit); \
                 give characters from U+0000 to U+00FF only",
            ),
            (
                TextError::TooLong {
                    coding: Coding::Ucs2,
                    units: 71,
                    limit: 70,
                },
                "it takes 71 UTF-16 units in coding 2 (UCS-2) where one part holds 70; \
                 give `udh` and the text of one part, or leave `coding` out to have it split",
            ),
            (
                TextError::TooLongBesideUdh {
                    coding: Coding::Gsm7,
                    units: 154,
                    limit: 153,
                    udh_octets: 6,
                },
                "it takes 154 septets in coding 0 (GSM-7) where 153 fit beside a `udh` of 6 octets; \
                 text and `udh` share 140 octets",
            ),
        ];
        for (error, message) in cases {
            assert_eq!(error.to_string(), message);
        }
    }
}
