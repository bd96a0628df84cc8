//! Putting the parts of a long text together.

use super::text::Alphabet;
use crate::message::text::Coding;

/// Stands for a part that did not arrive.
const GAP: &str = "[…]";

/// The text of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartText {
    /// From 1.
    pub sequence: u8,
    pub alphabet: Alphabet,
    pub octets: Vec<u8>,
}

/// A whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeText {
    pub text: String,
    pub coding: Coding,
    /// Whether a part is missing.
    pub is_incomplete: bool,
}

/// Puts parts together, in any order. A part that came twice counts once. `total` is the number of parts that were
/// announced.
///
/// Neighbouring parts with the same alphabet are read together: a character may be split between two parts.
pub fn assemble(total: u8, mut parts: Vec<PartText>) -> WholeText {
    parts.sort_by_key(|part| part.sequence);
    parts.dedup_by_key(|part| part.sequence);
    // As soon as one part is binary, all of it is: a gap or a text between hexadecimal digits cannot be told apart.
    let is_binary = parts.iter().any(|part| part.alphabet == Alphabet::Binary);
    let (mut text, mut next) = (String::new(), 1);
    let mut is_incomplete = false;
    let neighbours = |one: &PartText, other: &PartText| {
        one.alphabet == other.alphabet && one.sequence + 1 == other.sequence
    };
    for run in parts.chunk_by(neighbours) {
        let first = run[0].sequence;
        for _ in next..first {
            text.push_str(GAP);
            is_incomplete = true;
        }
        next = first.saturating_add(u8::try_from(run.len()).unwrap_or(u8::MAX));
        let alphabet = if is_binary {
            Alphabet::Binary
        } else {
            run[0].alphabet
        };
        let octets: Vec<u8> = run.iter().flat_map(|part| &part.octets).copied().collect();
        text.push_str(&alphabet.read(&octets));
    }
    for _ in next..=total {
        text.push_str(GAP);
        is_incomplete = true;
    }
    let coding = |part: &PartText| part.alphabet.coding(&text);
    let codings: Vec<Coding> = parts.iter().map(coding).collect();
    let coding = match codings.as_slice() {
        _ if is_binary => Coding::Binary,
        codings if codings.iter().all(|coding| *coding == Coding::Gsm7) => Coding::Gsm7,
        _ => Coding::Ucs2,
    };
    WholeText {
        text,
        coding,
        is_incomplete,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::text::{encode, measure};

    fn part(sequence: u8, alphabet: Alphabet, octets: &[u8]) -> PartText {
        PartText {
            sequence,
            alphabet,
            octets: octets.to_vec(),
        }
    }

    #[test]
    fn parts_make_a_text_in_any_order() {
        use Alphabet::{Binary, Gsm7, Latin1, Ucs2};
        for (case, total, parts, text, coding, is_incomplete) in [
            (
                "one",
                1,
                vec![part(1, Gsm7, b"Hi")],
                "Hi",
                Coding::Gsm7,
                false,
            ),
            (
                "out of order, one twice",
                3,
                vec![
                    part(3, Gsm7, b"c"),
                    part(1, Gsm7, b"a"),
                    part(3, Gsm7, b"c"),
                    part(2, Gsm7, b"b"),
                ],
                "abc",
                Coding::Gsm7,
                false,
            ),
            (
                "a surrogate pair over two parts",
                2,
                vec![part(1, Ucs2, &[0xD8, 0x3D]), part(2, Ucs2, &[0xDE, 0x00])],
                "😀",
                Coding::Ucs2,
                false,
            ),
            (
                "an escape at the end of a part",
                2,
                vec![part(1, Gsm7, b"1\x1B"), part(2, Gsm7, b"\x65")],
                "1€",
                Coding::Gsm7,
                false,
            ),
            (
                "gaps",
                5,
                vec![part(2, Gsm7, b"b"), part(4, Gsm7, b"d")],
                "[…]b[…]d[…]",
                Coding::Gsm7,
                true,
            ),
            (
                "two alphabets",
                2,
                vec![part(1, Gsm7, b"a"), part(2, Ucs2, &[0x04, 0x16])],
                "aЖ",
                Coding::Ucs2,
                false,
            ),
            (
                "Latin-1 that GSM-7 can hold",
                1,
                vec![part(1, Latin1, b"\xE9")],
                "é",
                Coding::Gsm7,
                false,
            ),
            (
                "binary",
                2,
                vec![part(1, Binary, &[1]), part(2, Binary, &[0xFF])],
                "01ff",
                Coding::Binary,
                false,
            ),
        ] {
            let whole = assemble(total, parts);
            assert_eq!(whole.text, text, "{case}");
            assert_eq!(whole.coding, coding, "{case}");
            assert_eq!(whole.is_incomplete, is_incomplete, "{case}");
        }
    }

    proptest! {
        /// What this service splits, it also puts together.
        #[test]
        fn a_text_survives_splitting(text in "[a-zäöüα-ωA-Z €{}😀]{1,400}", order in any::<u64>()) {
            let shape = measure(&text).expect("a text");
            let alphabet = match shape.coding {
                Coding::Gsm7 => Alphabet::Gsm7,
                Coding::Binary => Alphabet::Latin1,
                Coding::Ucs2 => Alphabet::Ucs2,
            };
            let parts = encode(&text, shape, None, 7);
            let part = |(sequence, piece): (u8, crate::message::text::Part)| part(sequence, alphabet, &piece.payload);
            let mut parts: Vec<PartText> = (1..).zip(parts).map(part).collect();
            let shift = usize::try_from(order % 97).expect("small") % parts.len();
            parts.rotate_left(shift);
            let whole = assemble(shape.parts, parts);
            prop_assert_eq!(whole.text, text);
            prop_assert!(!whole.is_incomplete);
        }
    }
}
