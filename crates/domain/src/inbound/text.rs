//! The text of a message from a handset.

use crate::message::text::{Coding, decode, is_gsm7};

/// How the octets of a part are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// One septet in each octet.
    Gsm7,
    Latin1,
    Ucs2,
    Binary,
}

impl Alphabet {
    /// By the data coding of SMPP. Unknown ones are binary, so that nothing is misread.
    pub const fn from_data_coding(data_coding: u8) -> Self {
        match data_coding {
            // SMSC default, and IA5, which networks use for the same; then the coding groups of GSM 03.38, with and without
            // a message class.
            0x00 | 0x01 | 0x10..=0x13 | 0xF0..=0xF3 => Self::Gsm7,
            0x03 => Self::Latin1,
            0x08 | 0x18..=0x1B => Self::Ucs2,
            _ => Self::Binary,
        }
    }

    /// The number in stored parts.
    pub const fn number(self) -> i16 {
        match self {
            Self::Gsm7 => 0,
            Self::Binary => 1,
            Self::Ucs2 => 2,
            Self::Latin1 => 3,
        }
    }

    pub const fn from_number(number: i16) -> Option<Self> {
        match number {
            0 => Some(Self::Gsm7),
            1 => Some(Self::Binary),
            2 => Some(Self::Ucs2),
            3 => Some(Self::Latin1),
            _ => None,
        }
    }

    /// The text of these octets; binary ones as hexadecimal digits.
    pub fn read(self, octets: &[u8]) -> String {
        match self {
            Self::Gsm7 => decode(Coding::Gsm7, octets),
            // Latin-1 has the same code points.
            Self::Latin1 => decode(Coding::Binary, octets),
            Self::Ucs2 => decode(Coding::Ucs2, octets),
            Self::Binary => hex(octets),
        }
    }

    /// The coding that is reported for a text.
    pub fn coding(self, text: &str) -> Coding {
        match self {
            Self::Gsm7 => Coding::Gsm7,
            Self::Latin1 if text.chars().all(is_gsm7) => Coding::Gsm7,
            Self::Latin1 | Self::Ucs2 => Coding::Ucs2,
            Self::Binary => Coding::Binary,
        }
    }
}

fn hex(octets: &[u8]) -> String {
    use std::fmt::Write as _;
    octets.iter().fold(
        String::with_capacity(2 * octets.len()),
        |mut text, octet| {
            let _infallible = write!(text, "{octet:02x}");
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_read_by_their_data_coding() {
        let cases: [(u8, &[u8], &str, Coding); 9] = [
            (0, b"\x00 \x1B\x65", "@ €", Coding::Gsm7),
            (1, b"Hello", "Hello", Coding::Gsm7),
            (3, b"Ol\xE9", "Olé", Coding::Gsm7),
            (3, b"\xFE", "þ", Coding::Ucs2),
            (8, &[0x03, 0x93, 0x04, 0x16], "ΓЖ", Coding::Ucs2),
            (4, &[0x00, 0xFF], "00ff", Coding::Binary),
            (2, &[0x01], "01", Coding::Binary),
            (0xF0, b"Hi", "Hi", Coding::Gsm7),
            (0xF5, &[0xAB], "ab", Coding::Binary),
        ];
        for (data_coding, octets, text, coding) in cases {
            let alphabet = Alphabet::from_data_coding(data_coding);
            assert_eq!(alphabet.read(octets), text, "{data_coding}");
            assert_eq!(alphabet.coding(text), coding, "{data_coding}");
            assert_eq!(Alphabet::from_number(alphabet.number()), Some(alphabet));
        }
    }
}
