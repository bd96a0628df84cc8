//! The octets of each part, as carriers take them and handsets read them.

use super::gsm7::{self, Code};
use super::{Coding, MESSAGE_OCTETS, Shape, Udh};

/// The octets left for text after the concatenation header.
pub(super) const PART_OCTETS: usize = MESSAGE_OCTETS - 6;

/// Replaces a character that the coding does not contain.
const SUBSTITUTE: u8 = b'?';

/// One short message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The header before the text: the caller's own, or the one that joins the parts of a split text.
    pub udh: Option<Udh>,
    /// The text: one septet per octet in GSM-7, one octet per character in 8-bit, UTF-16 in network byte order in
    /// UCS-2.
    pub payload: Vec<u8>,
}

/// The parts of a text, in order. Each part of a split text carries `reference`, by which a handset joins them.
///
/// `shape` must be the result of measuring this text with this `udh`. Another text's shape does not panic, because one
/// bad row must not stop a queue: characters that the coding does not contain become `?`.
pub fn encode(text: &str, shape: Shape, udh: Option<&Udh>, reference: u8) -> Vec<Part> {
    let Shape { coding, parts } = shape;
    if parts <= 1 {
        return vec![Part {
            udh: udh.cloned(),
            payload: octets(text, coding),
        }];
    }
    let pieces = Pieces { rest: text, coding };
    let part = |(sequence, piece)| Part {
        udh: Some(Udh::concatenation(reference, parts, sequence)),
        payload: octets(piece, coding),
    };
    (1..=parts).zip(pieces).map(part).collect()
}

/// The text that a handset shows for a part's payload. Like a handset it accepts everything: octets that are not a
/// character of the coding become a replacement character.
pub fn decode(coding: Coding, payload: &[u8]) -> String {
    match coding {
        Coding::Gsm7 => gsm7::decode(payload),
        Coding::Binary => payload.iter().copied().map(char::from).collect(),
        Coding::Ucs2 => String::from_utf16_lossy(&utf16_units(payload)),
    }
}

/// The text of these octets; `None` if [`encode`] would not give the same octets again.
pub fn decode_exactly(coding: Coding, payload: &[u8]) -> Option<String> {
    match coding {
        Coding::Gsm7 if !gsm7::is_exact(payload) => None,
        Coding::Gsm7 | Coding::Binary => Some(decode(coding, payload)),
        Coding::Ucs2 if !payload.len().is_multiple_of(2) => None,
        Coding::Ucs2 => String::from_utf16(&utf16_units(payload)).ok(),
    }
}

fn utf16_units(payload: &[u8]) -> Vec<u16> {
    let (pairs, odd) = payload.as_chunks::<2>();
    let units = pairs.iter().copied().map(u16::from_be_bytes);
    // Half a unit becomes a replacement character, too, instead of being lost.
    units.chain(odd.iter().map(|_| 0xFFFD)).collect()
}

/// Splits a text into the longest pieces that fit a part, never within a character.
struct Pieces<'t> {
    rest: &'t str,
    coding: Coding,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let (piece, rest) = self.rest.split_at(self.end_of_piece());
        self.rest = rest;
        Some(piece)
    }
}

impl Pieces<'_> {
    fn end_of_piece(&self) -> usize {
        let mut capacity = self.coding.units_in(PART_OCTETS);
        for (index, character) in self.rest.char_indices() {
            // The substitute of a missing character takes one unit.
            let width = self.coding.width(character).unwrap_or(1);
            match capacity.checked_sub(width) {
                Some(left) => capacity = left,
                None => return index,
            }
        }
        self.rest.len()
    }
}

fn octets(text: &str, coding: Coding) -> Vec<u8> {
    match coding {
        Coding::Gsm7 => septets(text),
        Coding::Binary => text
            .chars()
            .map(|c| u8::try_from(c).unwrap_or(SUBSTITUTE))
            .collect(),
        Coding::Ucs2 => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    }
}

fn septets(text: &str) -> Vec<u8> {
    let mut septets = Vec::with_capacity(text.len());
    for character in text.chars() {
        match gsm7::find(character) {
            Some(Code::Basic(septet)) => septets.push(septet),
            Some(Code::Extended(septet)) => septets.extend([gsm7::ESCAPE, septet]),
            None => septets.push(SUBSTITUTE),
        }
    }
    septets
}

#[cfg(test)]
mod tests {
    use super::{Part, decode, decode_exactly, encode};
    use crate::message::text::{Coding, Shape, Udh, measure, measure_as};

    #[test]
    fn octets_that_would_change_are_not_read_exactly() {
        let (gsm7, ucs2) = (Coding::Gsm7, Coding::Ucs2);
        let cases: [(&str, Coding, &[u8], Option<&str>); 12] = [
            ("plain", gsm7, b"a\0", Some("a@")),
            ("extended", gsm7, b"\x1B\x65!", Some("€!")),
            ("an escape at the end", gsm7, b"a\x1B", None),
            ("an unknown extension", gsm7, b"\x1BA", None),
            ("an escaped escape", gsm7, b"\x1B\x1B\x65", None),
            ("no septet", gsm7, b"\x80", None),
            ("any octet", Coding::Binary, b"\0\xFF", Some("\0\u{FF}")),
            ("a pair", ucs2, b"\xD8\x3D\xDE\0", Some("😀")),
            ("half a pair at the end", ucs2, b"\0a\xD8\x3D", None),
            ("half a pair at the beginning", ucs2, b"\xDE\0\0a", None),
            ("half a character", ucs2, b"\0a\0", None),
            (
                "a replacement character",
                ucs2,
                b"\xFF\xFD",
                Some("\u{FFFD}"),
            ),
        ];
        for (name, coding, octets, text) in cases {
            let read = decode_exactly(coding, octets);
            assert_eq!(read.as_deref(), text, "{name}");
            if let Some(text) = read {
                let shape = measure_as(&text, coding, None).expect(name);
                assert_eq!(encode(&text, shape, None, 0)[0].payload, octets, "{name}");
            }
        }
    }

    fn split(text: &str, reference: u8) -> Vec<Part> {
        encode(text, measure(text).expect("a text"), None, reference)
    }

    #[test]
    fn one_part_carries_its_octets_and_no_header() {
        let cases: [(&str, &str, Coding, &[u8]); 5] = [
            ("GSM-7", "@A à", Coding::Gsm7, &[0x00, 0x41, 0x20, 0x7F]),
            (
                "GSM-7, extended",
                "[€",
                Coding::Gsm7,
                &[0x1B, 0x3C, 0x1B, 0x65],
            ),
            ("8-bit", "\0A\u{FF}", Coding::Binary, &[0x00, 0x41, 0xFF]),
            ("UCS-2", "Aж", Coding::Ucs2, &[0x00, 0x41, 0x04, 0x36]),
            (
                "UCS-2, a pair",
                "😀",
                Coding::Ucs2,
                &[0xD8, 0x3D, 0xDE, 0x00],
            ),
        ];
        for (name, text, coding, payload) in cases {
            let shape = measure_as(text, coding, None).expect(name);
            let expected = Part {
                udh: None,
                payload: payload.to_vec(),
            };
            assert_eq!(encode(text, shape, None, 7), [expected], "{name}");
            assert_eq!(decode(coding, payload), text, "{name}");
        }
    }

    #[test]
    fn the_callers_own_header_is_kept() {
        let udh: Udh = "%06%05%04%0B%84%23%F0".parse().expect("ports");
        let shape = measure_as("a", Coding::Binary, Some(&udh)).expect("one octet");
        let expected = Part {
            udh: Some(udh.clone()),
            payload: vec![0x61],
        };
        assert_eq!(encode("a", shape, Some(&udh), 7), [expected]);
    }

    #[test]
    fn split_parts_are_numbered_under_one_reference() {
        let headers: Vec<_> = split(&"a".repeat(400), 0xA7)
            .into_iter()
            .map(|part| part.udh)
            .collect();
        let expected: [&[u8]; 3] = [
            &[5, 0, 3, 0xA7, 3, 1],
            &[5, 0, 3, 0xA7, 3, 2],
            &[5, 0, 3, 0xA7, 3, 3],
        ];
        assert_eq!(headers.len(), expected.len());
        for (header, octets) in headers.iter().zip(expected) {
            assert_eq!(header.as_ref().map(Udh::as_bytes), Some(octets));
        }
    }

    #[test]
    fn pairs_move_to_the_next_part_whole() {
        let cases: [(&str, String, &[usize]); 6] = [
            ("plain GSM-7", "a".repeat(161), &[153, 8]),
            (
                "extension at 153",
                "a".repeat(152) + "€" + &"a".repeat(20),
                &[152, 22],
            ),
            (
                "extension at 152",
                "a".repeat(151) + "€" + &"a".repeat(20),
                &[153, 20],
            ),
            ("plain UCS-2", "ж".repeat(71), &[134, 8]),
            (
                "emoji at 67",
                "a".repeat(66) + "😀" + &"a".repeat(20),
                &[132, 44],
            ),
            (
                "emoji at 66",
                "a".repeat(65) + "😀" + &"a".repeat(20),
                &[134, 40],
            ),
        ];
        for (name, text, lengths) in cases {
            let found: Vec<_> = split(&text, 0)
                .iter()
                .map(|part| part.payload.len())
                .collect();
            assert_eq!(found, lengths, "{name}");
        }
    }

    #[test]
    fn the_longest_text_takes_255_parts() {
        let parts = split(&"a".repeat(255 * 153), 0);
        let last = parts.last().and_then(|part| part.udh.as_ref());
        assert_eq!(parts.len(), 255);
        assert_eq!(last.map(Udh::as_bytes), Some(&[5, 0, 3, 0, 255, 255][..]));
    }

    #[test]
    fn a_foreign_shape_substitutes_rather_than_panics() {
        let cases: [(&str, Coding, u8, &[&[u8]]); 4] = [
            ("GSM-7", Coding::Gsm7, 1, &[b"a??"]),
            ("8-bit", Coding::Binary, 1, &[b"a??"]),
            ("fewer parts than said", Coding::Gsm7, 9, &[b"a??"]),
            ("no parts at all", Coding::Gsm7, 0, &[b"a??"]),
        ];
        for (name, coding, parts, payloads) in cases {
            let found = encode("aж😀", Shape { coding, parts }, None, 0);
            let found: Vec<_> = found.iter().map(|part| part.payload.as_slice()).collect();
            assert_eq!(found, payloads, "{name}");
        }
    }

    #[test]
    fn broken_utf16_becomes_a_replacement_character() {
        let cases: [(&str, &[u8], &str); 3] = [
            ("half a pair", &[0xD8, 0x3D, 0x00, 0x41], "\u{FFFD}A"),
            ("half a unit", &[0x00, 0x41, 0x00], "A\u{FFFD}"),
            ("nothing", &[], ""),
        ];
        for (name, payload, text) in cases {
            assert_eq!(decode(Coding::Ucs2, payload), text, "{name}");
        }
    }
}
