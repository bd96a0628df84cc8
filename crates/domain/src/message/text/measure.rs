//! The coding and the number of parts of a text. Every request needs them, so plain ASCII takes a fast path, other
//! texts are read once, and nothing is allocated.

use super::encode::PART_OCTETS;
use super::gsm7::{self, Code};
use super::{Coding, MESSAGE_OCTETS, TextError, Udh};

/// The coding and the number of parts of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    pub coding: Coding,
    /// The number of short messages, each charged separately.
    pub parts: u8,
}

/// The shape of a text that the service codes and splits: GSM-7 if it contains every character, else UCS-2.
pub fn measure(text: &str) -> Result<Shape, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    let mut counter = UnitCounter::new(Coding::Gsm7);
    // Most texts are plain, and the check is nearly free: one septet per octet, and no pairs.
    if gsm7::is_plain(text) {
        counter.units = text.len();
        return counter.shape();
    }
    let mut before = 0;
    let mut characters = text.chars();
    loop {
        let rest = characters.as_str();
        match characters.next().map(gsm7::find) {
            Some(Some(Code::Basic(_))) => counter.add_one(),
            Some(Some(Code::Extended(_))) => counter.add_pair(),
            Some(None) => return measure_ucs2(before, rest),
            None => return counter.shape(),
        }
        before += 1;
    }
}

/// The shape of a text that needs UCS-2 from `rest` on. All characters before it are in GSM-7, so each takes one UTF-16
/// unit and need not be read again.
fn measure_ucs2(before: usize, rest: &str) -> Result<Shape, TextError> {
    let mut counter = UnitCounter::new(Coding::Ucs2);
    counter.units = before;
    for character in rest.chars() {
        match character.len_utf16() {
            1 => counter.add_one(),
            _ => counter.add_pair(),
        }
    }
    counter.shape()
}

/// The shape of a text whose coding the caller chose: one part, never split. `udh` is the caller's own header; it
/// shares the octets of the message with the text.
pub fn measure_as(text: &str, coding: Coding, udh: Option<&Udh>) -> Result<Shape, TextError> {
    let units = units_of(text, coding)?;
    let udh_octets = udh.map_or(0, |udh| udh.as_bytes().len());
    let limit = coding.units_in(MESSAGE_OCTETS - udh_octets);
    if units <= limit {
        return Ok(Shape { coding, parts: 1 });
    }
    Err(match udh {
        None => TextError::TooLong {
            coding,
            units,
            limit,
        },
        Some(_) => TextError::TooLongBesideUdh {
            coding,
            units,
            limit,
            udh_octets,
        },
    })
}

fn units_of(text: &str, coding: Coding) -> Result<usize, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    let mut units = 0;
    for (index, character) in text.chars().enumerate() {
        units += coding.width(character).ok_or(TextError::NotInCoding {
            coding,
            character,
            position: index + 1,
        })?;
    }
    Ok(units)
}

/// Counts units, and the units left empty because a pair must not be split over two parts.
struct UnitCounter {
    coding: Coding,
    per_part: usize,
    units: usize,
    skipped: usize,
}

impl UnitCounter {
    const fn new(coding: Coding) -> Self {
        Self {
            coding,
            per_part: coding.units_in(PART_OCTETS),
            units: 0,
            skipped: 0,
        }
    }

    const fn add_one(&mut self) {
        self.units += 1;
    }

    const fn add_pair(&mut self) {
        let position = (self.units + self.skipped) % self.per_part;
        if position + 1 == self.per_part {
            self.skipped += 1;
        }
        self.units += 2;
    }

    fn shape(self) -> Result<Shape, TextError> {
        let coding = self.coding;
        if self.units <= coding.units_in(MESSAGE_OCTETS) {
            return Ok(Shape { coding, parts: 1 });
        }
        let parts = (self.units + self.skipped).div_ceil(self.per_part);
        match u8::try_from(parts) {
            Ok(parts) => Ok(Shape { coding, parts }),
            Err(_) => Err(TextError::TooManyParts { coding, parts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, measure, measure_as};
    use crate::message::text::{Coding, TextError, Udh};

    fn gsm7(parts: u8) -> Shape {
        Shape {
            coding: Coding::Gsm7,
            parts,
        }
    }

    fn ucs2(parts: u8) -> Shape {
        Shape {
            coding: Coding::Ucs2,
            parts,
        }
    }

    /// `count` letters, followed by `end`.
    fn letters(count: usize, end: &str) -> String {
        "a".repeat(count) + end
    }

    #[test]
    fn gsm7_is_split_at_153_and_never_within_a_pair() {
        let cases = [
            ("one letter", letters(1, ""), gsm7(1)),
            ("a full message", letters(160, ""), gsm7(1)),
            ("one letter more", letters(161, ""), gsm7(2)),
            ("two full parts", letters(306, ""), gsm7(2)),
            ("two full parts and a letter", letters(307, ""), gsm7(3)),
            ("255 full parts", letters(255 * 153, ""), gsm7(255)),
            ("80 euro signs", "€".repeat(80), gsm7(1)),
            ("81 euro signs", "€".repeat(81), gsm7(2)),
            (
                "152 euro signs fill two parts of 76",
                "€".repeat(152),
                gsm7(2),
            ),
            (
                "153 euro signs, though 306 septets",
                "€".repeat(153),
                gsm7(3),
            ),
            (
                "pair at 153 within one message",
                letters(152, "€aaaaaa"),
                gsm7(1),
            ),
            (
                "pair at 153 moves on",
                letters(152, "€") + &letters(152, ""),
                gsm7(3),
            ),
            (
                "pair at 152 stays",
                letters(151, "€") + &letters(153, ""),
                gsm7(2),
            ),
            ("Greek capitals", "ΔΦΓΛΩΠΨΣΘΞ".repeat(16), gsm7(1)),
        ];
        for (name, text, shape) in cases {
            assert_eq!(measure(&text), Ok(shape), "{name}");
        }
    }

    #[test]
    fn other_texts_are_ucs2_split_at_67_and_never_within_a_pair() {
        let cases = [
            ("one Cyrillic letter", "ж".into(), ucs2(1)),
            ("a full UCS-2 message", letters(69, "ж"), ucs2(1)),
            ("one unit more", letters(70, "ж"), ucs2(2)),
            ("two full UCS-2 parts", letters(133, "ж"), ucs2(2)),
            (
                "two full UCS-2 parts and a unit",
                letters(134, "ж"),
                ucs2(3),
            ),
            (
                "an extension character takes one unit of UCS-2",
                "€".repeat(69) + "ж",
                ucs2(1),
            ),
            ("35 emoji", "😀".repeat(35), ucs2(1)),
            ("36 emoji", "😀".repeat(36), ucs2(2)),
            ("66 emoji fill two parts of 33", "😀".repeat(66), ucs2(2)),
            ("67 emoji, though 134 units", "😀".repeat(67), ucs2(3)),
            (
                "emoji at 67 within one message",
                letters(66, "😀aa"),
                ucs2(1),
            ),
            (
                "emoji at 67 moves on",
                letters(66, "😀") + &letters(66, ""),
                ucs2(3),
            ),
            (
                "emoji at 66 stays",
                letters(65, "😀") + &letters(67, ""),
                ucs2(2),
            ),
            ("escape is no GSM-7 character", "\u{1B}e".into(), ucs2(1)),
        ];
        for (name, text, shape) in cases {
            assert_eq!(measure(&text), Ok(shape), "{name}");
        }
    }

    #[test]
    fn texts_of_too_many_parts_are_refused() {
        let too_many = |coding, parts| TextError::TooManyParts { coding, parts };
        let cases = [
            ("nothing", String::new(), TextError::Empty),
            (
                "GSM-7",
                letters(255 * 153 + 1, ""),
                too_many(Coding::Gsm7, 256),
            ),
            (
                "UCS-2",
                "ж".repeat(255 * 67 + 1),
                too_many(Coding::Ucs2, 256),
            ),
            (
                "pairs",
                "😀".repeat(255 * 33 + 1),
                too_many(Coding::Ucs2, 256),
            ),
            (
                "a great many",
                letters(1_000_000, ""),
                too_many(Coding::Gsm7, 6536),
            ),
        ];
        for (name, text, error) in cases {
            assert_eq!(measure(&text), Err(error), "{name}");
        }
    }

    #[test]
    fn a_chosen_coding_holds_one_part() {
        let joined = Udh::concatenation(42, 2, 1);
        let wide: Udh = "%06%08%04%01%02%02%01".parse().expect("a 16-bit reference");
        let cases = [
            ("GSM-7", Coding::Gsm7, None, "a", 160),
            ("GSM-7, pairs", Coding::Gsm7, None, "[", 80),
            ("GSM-7 with udh", Coding::Gsm7, Some(&joined), "a", 153),
            (
                "GSM-7 with a longer udh",
                Coding::Gsm7,
                Some(&wide),
                "a",
                152,
            ),
            ("8-bit", Coding::Binary, None, "\u{FF}", 140),
            ("8-bit with udh", Coding::Binary, Some(&joined), "\0", 134),
            ("UCS-2", Coding::Ucs2, None, "a", 70),
            ("UCS-2, pairs", Coding::Ucs2, None, "😀", 35),
            ("UCS-2 with udh", Coding::Ucs2, Some(&joined), "ж", 67),
            (
                "UCS-2 with a longer udh",
                Coding::Ucs2,
                Some(&wide),
                "ж",
                66,
            ),
        ];
        for (name, coding, udh, character, most) in cases {
            let full = Shape { coding, parts: 1 };
            assert_eq!(
                measure_as(&character.repeat(most), coding, udh),
                Ok(full),
                "{name}"
            );
            let error = measure_as(&character.repeat(most + 1), coding, udh).expect_err(name);
            let expected = if udh.is_some() {
                "fit beside a `udh`"
            } else {
                "give `udh`"
            };
            assert!(error.to_string().contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn a_chosen_coding_must_hold_every_character() {
        let lacks = |coding, character, position| TextError::NotInCoding {
            coding,
            character,
            position,
        };
        let cases = [
            (
                "GSM-7",
                Coding::Gsm7,
                "Grüße, ж",
                lacks(Coding::Gsm7, 'ж', 8),
            ),
            (
                "GSM-7, Latin-1",
                Coding::Gsm7,
                "façade",
                lacks(Coding::Gsm7, 'ç', 3),
            ),
            (
                "8-bit",
                Coding::Binary,
                "\u{FF}\u{100}",
                lacks(Coding::Binary, 'Ā', 2),
            ),
            (
                "8-bit, euro",
                Coding::Binary,
                "€",
                lacks(Coding::Binary, '€', 1),
            ),
            ("nothing, GSM-7", Coding::Gsm7, "", TextError::Empty),
            ("nothing, 8-bit", Coding::Binary, "", TextError::Empty),
            ("nothing, UCS-2", Coding::Ucs2, "", TextError::Empty),
        ];
        for (name, coding, text, error) in cases {
            assert_eq!(measure_as(text, coding, None), Err(error), "{name}");
        }
    }

    #[test]
    fn a_header_that_fills_the_message_leaves_no_room() {
        let mut octets = vec![139, 0x24, 137];
        octets.resize(140, 0);
        let udh = Udh::from_bytes(&octets).expect("140 octets");
        let error = measure_as("a", Coding::Gsm7, Some(&udh));
        let expected = TextError::TooLongBesideUdh {
            coding: Coding::Gsm7,
            units: 1,
            limit: 0,
            udh_octets: 140,
        };
        assert_eq!(error, Err(expected));
    }
}
