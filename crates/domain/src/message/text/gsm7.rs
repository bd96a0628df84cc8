//! The GSM 03.38 default alphabet and its extension table, in both directions.
//!
//! Septets are unpacked, one per octet, as carriers' protocols take them.

/// The septet before a character of the extension table.
pub(super) const ESCAPE: u8 = 0x1B;

/// The default alphabet: the septet is the index. The rows are the columns of the standard.
#[rustfmt::skip]
const BASIC: [char; 128] = [
    '@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å',
    'Δ', '_', 'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ', '\u{1B}', 'Æ', 'æ', 'ß', 'É',
    ' ', '!', '"', '#', '¤', '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/',
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':', ';', '<', '=', '>', '?',
    '¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O',
    'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ', 'Ü', '§',
    '¿', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä', 'ö', 'ñ', 'ü', 'à',
];

/// The extension table: the meaning of a septet after [`ESCAPE`].
const EXTENSION: [(u8, char); 10] = [
    (0x0A, '\u{0C}'),
    (0x14, '^'),
    (0x28, '{'),
    (0x29, '}'),
    (0x2F, '\\'),
    (0x3C, '['),
    (0x3D, '~'),
    (0x3E, ']'),
    (0x40, '|'),
    (0x65, '€'),
];

/// The position of a character in the two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Basic(u8),
    /// A septet that follows [`ESCAPE`].
    Extended(u8),
}

impl Code {
    /// The number of septets.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Basic(_) => 1,
            Self::Extended(_) => 2,
        }
    }
}

/// In [`LATIN1`]: not in GSM-7.
const ABSENT: u8 = 0xFF;

/// In [`LATIN1`]: the septet in the low bits follows [`ESCAPE`].
const EXTENDED: u8 = 0x80;

/// The tables in reverse for U+0000 to U+00FF, so that nearly every character costs one load.
static LATIN1: [u8; 256] = latin1();

const fn latin1() -> [u8; 256] {
    let mut table = [ABSENT; 256];
    let mut septet = 0_u8;
    while septet < 128 {
        let character = BASIC[septet as usize] as usize;
        // ESCAPE is not a character: in a text, it would change the meaning of the next one.
        if character < 256 && septet != ESCAPE {
            table[character] = septet;
        }
        septet += 1;
    }
    let mut row = 0;
    while row < EXTENSION.len() {
        let (septet, character) = EXTENSION[row];
        if (character as usize) < 256 {
            table[character as usize] = EXTENDED | septet;
        }
        row += 1;
    }
    table
}

#[inline]
pub(super) fn find(character: char) -> Option<Code> {
    match LATIN1.get(character as usize) {
        Some(&ABSENT) => None,
        Some(&code) if code & EXTENDED != 0 => Some(Code::Extended(code & !EXTENDED)),
        Some(&code) => Some(Code::Basic(code)),
        None => find_beyond_latin1(character),
    }
}

/// Whether `text` consists of ASCII characters of the default alphabet, so that each octet takes one septet. Every
/// request asks this: ranges without an early exit let the compiler test many octets at once.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |octet| matches!(octet, b' '..=b'Z' | b'_' | b'a'..=b'z' | b'\n' | b'\r');
    text.bytes().fold(true, |all, octet| all & is_plain(octet))
}

const fn find_beyond_latin1(character: char) -> Option<Code> {
    let septet = match character {
        'Δ' => 0x10,
        'Φ' => 0x12,
        'Γ' => 0x13,
        'Λ' => 0x14,
        'Ω' => 0x15,
        'Π' => 0x16,
        'Ψ' => 0x17,
        'Σ' => 0x18,
        'Θ' => 0x19,
        'Ξ' => 0x1A,
        '€' => return Some(Code::Extended(0x65)),
        _ => return None,
    };
    Some(Code::Basic(septet))
}

/// The text that a handset shows for these septets. By the standard nothing is refused: an unknown extension is shown
/// as the character of the default alphabet, and an escape without a character as a space.
pub(super) fn decode(septets: &[u8]) -> String {
    let mut text = String::with_capacity(septets.len());
    let mut septets = septets.iter().copied();
    while let Some(septet) = septets.next() {
        text.push(match septet {
            ESCAPE => septets.next().map_or(' ', extended),
            _ => basic(septet),
        });
    }
    text
}

/// Whether every septet is in the tables, so that [`decode`] loses nothing.
pub(super) fn is_exact(septets: &[u8]) -> bool {
    let mut septets = septets.iter().copied();
    let is_extension = |septet| EXTENSION.iter().any(|(code, _)| *code == septet);
    while let Some(septet) = septets.next() {
        let is_known = match septet {
            ESCAPE => septets.next().is_some_and(is_extension),
            _ => usize::from(septet) < BASIC.len(),
        };
        if !is_known {
            return false;
        }
    }
    true
}

fn basic(septet: u8) -> char {
    let found = BASIC.get(usize::from(septet));
    found.copied().unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn extended(septet: u8) -> char {
    let found = EXTENSION.iter().find(|(code, _)| *code == septet);
    match (found, septet) {
        (Some(&(_, character)), _) => character,
        (None, ESCAPE) => ' ',
        (None, _) => basic(septet),
    }
}

/// Every character of GSM-7 and its number of septets, for tests.
#[cfg(test)]
pub(super) fn alphabet() -> Vec<(char, usize)> {
    let basic = BASIC.iter().filter(|&&c| c != '\u{1B}').map(|&c| (c, 1));
    basic.chain(EXTENSION.map(|(_, c)| (c, 2))).collect()
}

#[cfg(test)]
mod tests {
    use super::{BASIC, Code, ESCAPE, EXTENSION, alphabet, decode, find, is_plain};

    #[test]
    fn every_basic_character_round_trips() {
        for (septet, &character) in (0_u8..).zip(&BASIC) {
            if septet == ESCAPE {
                continue;
            }
            assert_eq!(find(character), Some(Code::Basic(septet)), "{character:?}");
            assert_eq!(decode(&[septet]), String::from(character));
        }
    }

    #[test]
    fn every_extension_character_round_trips() {
        for (septet, character) in EXTENSION {
            assert_eq!(
                find(character),
                Some(Code::Extended(septet)),
                "{character:?}"
            );
            assert_eq!(decode(&[ESCAPE, septet]), String::from(character));
        }
    }

    #[test]
    fn nothing_else_is_in_the_tables() {
        let known = alphabet();
        assert_eq!(known.len(), 137);
        let found = (char::MIN..=char::MAX).filter(|&c| find(c).is_some());
        assert_eq!(found.count(), 137);
    }

    #[test]
    fn plain_is_the_ascii_of_the_default_alphabet() {
        for character in char::MIN..=char::MAX {
            let in_both = character.is_ascii() && matches!(find(character), Some(Code::Basic(_)));
            let text = character.encode_utf8(&mut [0; 4]).to_owned();
            assert_eq!(is_plain(&text), in_both, "{character:?}");
        }
    }

    #[test]
    fn characters_stand_where_the_standard_puts_them() {
        let cases = [
            ('@', Code::Basic(0x00)),
            ('_', Code::Basic(0x11)),
            ('Ç', Code::Basic(0x09)),
            ('Δ', Code::Basic(0x10)),
            ('Ξ', Code::Basic(0x1A)),
            ('É', Code::Basic(0x1F)),
            ('$', Code::Basic(0x02)),
            ('¤', Code::Basic(0x24)),
            ('0', Code::Basic(0x30)),
            ('¡', Code::Basic(0x40)),
            ('A', Code::Basic(0x41)),
            ('§', Code::Basic(0x5F)),
            ('¿', Code::Basic(0x60)),
            ('z', Code::Basic(0x7A)),
            ('à', Code::Basic(0x7F)),
            ('|', Code::Extended(0x40)),
            ('€', Code::Extended(0x65)),
        ];
        for (character, code) in cases {
            assert_eq!(find(character), Some(code), "{character:?}");
        }
    }

    #[test]
    fn near_misses_are_not_gsm7() {
        let cases = [
            ("small c with cedilla", 'ç'),
            ("backtick", '`'),
            ("tab", '\t'),
            ("nul", '\0'),
            ("escape itself", '\u{1B}'),
            ("delete", '\u{7F}'),
            ("a with acute", 'á'),
            ("small delta", 'δ'),
            ("capital Alpha, which looks like A", 'Α'),
            ("curly apostrophe", '’'),
        ];
        for (name, character) in cases {
            assert_eq!(find(character), None, "{name}");
        }
    }

    #[test]
    fn odd_septets_show_as_the_standard_says() {
        let cases: [(&str, &[u8], &str); 5] = [
            ("an escape at the end", &[0x41, ESCAPE], "A "),
            ("an escaped escape", &[ESCAPE, ESCAPE, 0x41], " A"),
            ("an extension nobody defined", &[ESCAPE, 0x41], "A"),
            ("an octet that is no septet", &[0x80], "\u{FFFD}"),
            ("nothing", &[], ""),
        ];
        for (name, septets, text) in cases {
            assert_eq!(decode(septets), text, "{name}");
        }
    }
}
