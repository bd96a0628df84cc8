//! The User Data Header: octets before the text that tell a handset what the text is part of.

use std::fmt;
use std::str::FromStr;

use super::MESSAGE_OCTETS;

/// A User Data Header whose length octet is right and whose information elements fill it exactly.
///
/// Written as `%05%00%03%2A%02%01`: each octet as `%` and two hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Udh {
    // Boxed, because every message has this field and few messages use it.
    octets: Box<[u8]>,
}

/// The text is not a User Data Header. Each error text continues `Invalid value for field 'udh':`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UdhError {
    #[error(
        "it is empty; give a length octet and information elements, such as %05%00%03%2A%02%01"
    )]
    Empty,

    /// It does not fit into a message, even without text.
    #[error("it has {octets} octets; a message carries {MESSAGE_OCTETS}, text included")]
    TooLong { octets: usize },

    /// An octet is not written as `%` and two hexadecimal digits.
    #[error(
        "octet {position} is written {written:?}; write each as % and two hexadecimal digits, such as %2A"
    )]
    BadOctet {
        /// Counted from 1.
        position: usize,
        /// The characters found instead, at most three.
        written: String,
    },

    /// The length octet is not the number of octets that follow it.
    #[error("its length octet says {declared}, but {follow} octets follow; the two must be equal")]
    WrongLength {
        declared: u8,
        /// The number of octets after it.
        follow: usize,
    },

    /// An information element ends after its identifier.
    #[error(
        "information element {identifier:#04X} has no length octet; write identifier, length, data"
    )]
    NoElementLength { identifier: u8 },

    /// An information element is longer than the rest of the header.
    #[error(
        "information element {identifier:#04X} says {declared} octets of data, but {left} are left; make them equal"
    )]
    ElementOverrun {
        identifier: u8,
        /// What its length octet says.
        declared: u8,
        /// The number of octets after that.
        left: usize,
    },
}

impl Udh {
    /// Checks the octets of a header, the length octet first.
    pub fn from_bytes(octets: &[u8]) -> Result<Self, UdhError> {
        check(octets)?;
        Ok(Self {
            octets: octets.into(),
        })
    }

    /// The header that marks a part of a split text (information element 0, an 8-bit reference).
    pub fn concatenation(reference: u8, total: u8, sequence: u8) -> Self {
        Self {
            octets: Box::new([0x05, 0x00, 0x03, reference, total, sequence]),
        }
    }

    /// All octets, including the length octet.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets
    }
}

impl FromStr for Udh {
    type Err = UdhError;

    fn from_str(written: &str) -> Result<Self, UdhError> {
        let count = written.len().div_ceil(3);
        // Checked before parsing, so that a hostile field costs nothing.
        if count > MESSAGE_OCTETS {
            return Err(UdhError::TooLong { octets: count });
        }
        let mut octets = Vec::with_capacity(count);
        for (index, triple) in written.as_bytes().chunks(3).enumerate() {
            octets.push(octet(triple).ok_or_else(|| bad_octet(written, index))?);
        }
        check(&octets)?;
        Ok(Self {
            octets: octets.into(),
        })
    }
}

impl fmt::Display for Udh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.octets
            .iter()
            .try_for_each(|octet| write!(f, "%{octet:02X}"))
    }
}

/// Parses an octet written like `%2A`.
fn octet(triple: &[u8]) -> Option<u8> {
    let &[b'%', high, low] = triple else {
        return None;
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn digit(letter: u8) -> Option<u8> {
    let value = char::from(letter).to_digit(16)?;
    u8::try_from(value).ok()
}

fn bad_octet(written: &str, index: usize) -> UdhError {
    // Everything before is valid, hence ASCII, so octets and characters have the same positions.
    UdhError::BadOctet {
        position: index + 1,
        written: written.chars().skip(index * 3).take(3).collect(),
    }
}

fn check(octets: &[u8]) -> Result<(), UdhError> {
    let (&declared, elements) = octets.split_first().ok_or(UdhError::Empty)?;
    if octets.len() > MESSAGE_OCTETS {
        return Err(UdhError::TooLong {
            octets: octets.len(),
        });
    }
    if usize::from(declared) != elements.len() {
        return Err(UdhError::WrongLength {
            declared,
            follow: elements.len(),
        });
    }
    check_elements(elements)
}

fn check_elements(mut elements: &[u8]) -> Result<(), UdhError> {
    while let Some((&identifier, rest)) = elements.split_first() {
        let Some((&declared, data)) = rest.split_first() else {
            return Err(UdhError::NoElementLength { identifier });
        };
        let Some((_, next)) = data.split_at_checked(usize::from(declared)) else {
            return Err(UdhError::ElementOverrun {
                identifier,
                declared,
                left: data.len(),
            });
        };
        elements = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Udh, UdhError};

    #[test]
    fn well_formed_headers_are_read() {
        let cases: [(&str, &str, &[u8]); 6] = [
            (
                "concatenation",
                "%05%00%03%2A%02%01",
                &[5, 0, 3, 0x2A, 2, 1],
            ),
            (
                "small letters",
                "%05%00%03%2a%02%01",
                &[5, 0, 3, 0x2A, 2, 1],
            ),
            (
                "16-bit reference",
                "%06%08%04%01%02%02%01",
                &[6, 8, 4, 1, 2, 2, 1],
            ),
            (
                "ports",
                "%06%05%04%0B%84%23%F0",
                &[6, 5, 4, 0x0B, 0x84, 0x23, 0xF0],
            ),
            (
                "two elements",
                "%07%00%03%01%02%01%24%00",
                &[7, 0, 3, 1, 2, 1, 0x24, 0],
            ),
            ("no element", "%00", &[0]),
        ];
        for (name, written, octets) in cases {
            let udh: Udh = written.parse().expect(name);
            assert_eq!(udh.as_bytes(), octets, "{name}");
            assert_eq!(Udh::from_bytes(octets), Ok(udh), "{name}");
        }
    }

    #[test]
    fn malformed_headers_are_refused_with_the_rule() {
        let cases = [
            ("nothing", "", "it is empty"),
            ("no percent signs", "050003", "octet 1 is written \"050\""),
            ("not hexadecimal", "%05%0G", "octet 2 is written \"%0G\""),
            ("cut short", "%05%0", "octet 2 is written \"%0\""),
            ("a sign is no digit", "%05%+1", "octet 2 is written \"%+1\""),
            ("not ASCII", "%05%é€x", "octet 2 is written \"%é€\""),
            ("a space behind", "%00 ", "octet 2 is written \" \""),
            (
                "length too small",
                "%04%00%03%2A%02%01",
                "says 4, but 5 octets follow",
            ),
            (
                "length too large",
                "%06%00%03%2A%02%01",
                "says 6, but 5 octets follow",
            ),
            ("element cut", "%01%00", "element 0x00 has no length octet"),
            (
                "element too long",
                "%05%00%04%2A%02%01",
                "element 0x00 says 4 octets of data, but 3 are left",
            ),
            (
                "element too short",
                "%05%00%02%2A%02%01",
                "element 0x01 has no length octet",
            ),
        ];
        for (name, written, expected) in cases {
            let error = written.parse::<Udh>().expect_err(name).to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn a_header_fills_a_message_at_most() {
        let of_length = |octets: u8| {
            let mut header = vec![octets - 1, 0x24, octets - 3];
            header.resize(usize::from(octets), 0);
            header
        };
        let longest = Udh::from_bytes(&of_length(140)).expect("140 octets");
        assert_eq!(longest.to_string().parse(), Ok(longest));

        let too_long = UdhError::TooLong { octets: 141 };
        assert_eq!(Udh::from_bytes(&of_length(141)), Err(too_long.clone()));
        assert_eq!("%00".repeat(141).parse::<Udh>(), Err(too_long));
    }

    proptest! {
        #[test]
        fn reading_any_string_never_panics(written in any::<String>()) {
            if let Ok(udh) = written.parse::<Udh>() {
                prop_assert_eq!(udh.to_string(), written.to_uppercase());
            }
        }

        #[test]
        fn reading_near_headers_never_panics(written in "(%[0-9a-f]{2}|[%0-9A-Fg é]){0,8}") {
            if let Ok(udh) = written.parse::<Udh>() {
                prop_assert_eq!(udh.to_string(), written.to_uppercase());
            }
        }

        #[test]
        fn octets_and_spelling_agree_on_what_is_a_header(octets in prop::collection::vec(0_u8..8, 0..12)) {
            let spelling = octets.iter().fold(String::new(), |spelt, octet| format!("{spelt}%{octet:02x}"));
            let read = Udh::from_bytes(&octets);
            prop_assert_eq!(spelling.parse::<Udh>(), read.clone());
            if let Ok(udh) = read {
                prop_assert_eq!(udh.as_bytes(), octets);
            }
        }

        #[test]
        fn any_elements_behind_their_length_are_a_header(
            elements in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)), 0..6),
        ) {
            let mut octets = vec![0];
            for (identifier, data) in &elements {
                octets.extend([*identifier, u8::try_from(data.len()).expect("short")]);
                octets.extend(data);
            }
            octets[0] = u8::try_from(octets.len() - 1).expect("short");
            let udh = Udh::from_bytes(&octets).expect("well-formed");
            prop_assert_eq!(udh.to_string().parse::<Udh>(), Ok(udh));
        }

        #[test]
        fn a_concatenation_header_is_a_header(reference: u8, total: u8, sequence: u8) {
            let udh = Udh::concatenation(reference, total, sequence);
            prop_assert_eq!(Udh::from_bytes(udh.as_bytes()), Ok(udh));
        }
    }
}
