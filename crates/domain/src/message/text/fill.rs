//! How full a text is, for people who are typing it.

use super::encode::{PART_OCTETS, encode};
use super::{Coding, MESSAGE_OCTETS, Shape, TextError, gsm7, measure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Coding and number of parts.
    pub shape: Shape,
    /// The length in units of its coding; a character may take two.
    pub units: usize,
    /// How many units one part holds.
    pub per_part: usize,
    /// How many units still fit into the last part.
    pub room: usize,
}

/// How full a text is if the service codes and splits it. This encodes the text, so it is meant for people who type,
/// not for every request.
pub fn fill(text: &str) -> Result<Fill, TextError> {
    let shape = measure(text)?;
    let octets = match shape.parts {
        1 => MESSAGE_OCTETS,
        _ => PART_OCTETS,
    };
    let per_part = shape.coding.units_in(octets);
    let parts = encode(text, shape, None, 0);
    let units = |payload: &[u8]| match shape.coding {
        Coding::Gsm7 | Coding::Binary => payload.len(),
        Coding::Ucs2 => payload.len() / 2,
    };
    let last = parts.last().map_or(0, |part| units(&part.payload));
    Ok(Fill {
        shape,
        units: parts.iter().map(|part| units(&part.payload)).sum(),
        per_part,
        room: per_part.saturating_sub(last),
    })
}

/// Whether GSM-7 contains a character. A single other character makes the whole text UCS-2.
pub fn is_gsm7(character: char) -> bool {
    gsm7::find(character).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fills_its_parts() {
        let repeated = |text: &str, times| text.repeat(times);
        for (name, text, parts, units, per_part, room) in [
            ("one letter", "a".to_owned(), 1, 1, 160, 159),
            ("a full part", repeated("a", 160), 1, 160, 160, 0),
            ("one more", repeated("a", 161), 2, 161, 153, 145),
            ("a pair counts twice", "€".to_owned(), 1, 2, 160, 158),
            (
                "no pair is cut",
                repeated("a", 152) + "€" + &repeated("a", 10),
                2,
                164,
                153,
                141,
            ),
            ("UCS-2", "ж".to_owned(), 1, 1, 70, 69),
            ("beyond the basic plane", "🙂".to_owned(), 1, 2, 70, 68),
            ("two parts of UCS-2", repeated("ж", 71), 2, 71, 67, 63),
        ] {
            let filled = fill(&text).expect(name);
            assert_eq!(
                (
                    filled.shape.parts,
                    filled.units,
                    filled.per_part,
                    filled.room
                ),
                (parts, units, per_part, room),
                "{name}"
            );
        }
        assert_eq!(fill(""), Err(TextError::Empty));
    }

    #[test]
    fn characters_outside_the_tables_are_known() {
        for (character, expected) in [
            ('a', true),
            ('€', true),
            ('ß', true),
            ('ç', false),
            ('’', false),
            ('\t', false),
            ('\n', true),
        ] {
            assert_eq!(is_gsm7(character), expected, "{character:?}");
        }
    }
}
