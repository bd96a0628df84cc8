//! The user data header of a message from a handset: what joins the parts of a long text, and the rest.

use crate::message::text::Udh;

/// Information element: concatenation with a reference of 8 bits.
const CONCATENATION_8: u8 = 0x00;
/// Information element: concatenation with a reference of 16 bits.
const CONCATENATION_16: u8 = 0x08;

/// The position of a part in a long text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concatenation {
    /// Equal for all parts of a text.
    pub reference: u16,
    /// How many parts the text has; at least 2.
    pub total: u8,
    /// From 1 to `total`.
    pub sequence: u8,
}

impl Concatenation {
    /// `None` for a text of one part, and for numbers that contradict each other: such a part is a text of its own.
    pub fn new(reference: u16, total: u8, sequence: u8) -> Option<Self> {
        let is_part = total > 1 && (1..=total).contains(&sequence);
        is_part.then_some(Self {
            reference,
            total,
            sequence,
        })
    }
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    pub concatenation: Option<Concatenation>,
    /// The other information elements, as a header of their own.
    pub rest: Option<Udh>,
    /// The length of the header in octets; the text follows.
    pub octets: usize,
}

impl Header {
    /// Reads the header at the beginning of a message. `None` if it is not one: everything is text then.
    pub fn read(message: &[u8]) -> Option<Self> {
        let octets = usize::from(*message.first()?) + 1;
        let udh = Udh::from_bytes(message.get(..octets)?).ok()?;
        let mut header = Self {
            octets,
            ..Self::default()
        };
        let mut rest = vec![0];
        let mut elements = &udh.as_bytes()[1..];
        while let [identifier, length, data @ ..] = elements {
            let (data, next) = data.split_at_checked(usize::from(*length))?;
            match (*identifier, data) {
                (CONCATENATION_8, &[reference, total, sequence]) => {
                    header.concatenation = Concatenation::new(reference.into(), total, sequence);
                }
                (CONCATENATION_16, &[high, low, total, sequence]) => {
                    let reference = u16::from_be_bytes([high, low]);
                    header.concatenation = Concatenation::new(reference, total, sequence);
                }
                _ => {
                    rest.extend([*identifier, *length]);
                    rest.extend(data);
                }
            }
            elements = next;
        }
        if rest.len() > 1 {
            rest[0] = u8::try_from(rest.len() - 1).ok()?;
            header.rest = Udh::from_bytes(&rest).ok();
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(reference: u16, total: u8, sequence: u8) -> Option<Concatenation> {
        Concatenation::new(reference, total, sequence)
    }

    #[test]
    fn a_header_joins_parts_and_may_hold_more() {
        type Case = (
            &'static str,
            &'static [u8],
            Option<Concatenation>,
            Option<&'static str>,
            usize,
        );
        let cases: [Case; 7] = [
            (
                "8 bits",
                &[5, 0, 3, 0x2A, 3, 2, b'x'],
                part(0x2A, 3, 2),
                None,
                6,
            ),
            (
                "16 bits",
                &[6, 8, 4, 1, 2, 3, 1, b'x'],
                part(0x102, 3, 1),
                None,
                7,
            ),
            ("one part", &[5, 0, 3, 1, 1, 1], None, None, 6),
            ("part 3 of 2", &[5, 0, 3, 1, 2, 3], None, None, 6),
            (
                "ports",
                &[6, 5, 4, 0x0B, 0x84, 0, 0],
                None,
                Some("%06%05%04%0B%84%00%00"),
                7,
            ),
            (
                "both",
                &[9, 0, 3, 7, 2, 1, 0x24, 2, 1, 2, b'x'],
                part(7, 2, 1),
                Some("%04%24%02%01%02"),
                10,
            ),
            ("nothing", &[0, b'x'], None, None, 1),
        ];
        for (case, message, concatenation, rest, octets) in cases {
            let header = Header::read(message).expect(case);
            assert_eq!(header.concatenation, concatenation, "{case}");
            assert_eq!(
                header.rest.map(|rest| rest.to_string()).as_deref(),
                rest,
                "{case}"
            );
            assert_eq!(header.octets, octets, "{case}");
        }
    }

    #[test]
    fn octets_that_are_no_header_are_text() {
        let cases: [(&str, &[u8]); 4] = [
            ("empty", &[]),
            ("longer than the message", &[9, 0, 3]),
            ("an element without a length", &[1, 0]),
            ("an element that is too long", &[3, 0, 9, 1]),
        ];
        for (case, message) in cases {
            assert_eq!(Header::read(message), None, "{case}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_stays_within(message in prop::collection::vec(any::<u8>(), 0..160)) {
            if let Some(header) = Header::read(&message) {
                prop_assert!(header.octets <= message.len());
            }
        }
    }
}
