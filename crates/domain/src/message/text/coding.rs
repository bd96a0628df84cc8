//! The three codings of a short message, and how much text fits in each.

use std::fmt;

use super::gsm7;

/// How characters become octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// The GSM 03.38 alphabet: one septet per character, two for characters of its extension table.
    Gsm7,
    /// One octet per character from U+0000 to U+00FF; the caller defines their meaning.
    Binary,
    /// UTF-16 in network byte order: two octets per unit, two units for a character beyond U+FFFF.
    Ucs2,
}

impl Coding {
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Gsm7),
            1 => Some(Self::Binary),
            2 => Some(Self::Ucs2),
            _ => None,
        }
    }

    /// The number in the `coding` field of requests and in the database.
    pub const fn number(self) -> u8 {
        match self {
            Self::Gsm7 => 0,
            Self::Binary => 1,
            Self::Ucs2 => 2,
        }
    }

    /// How many units of this coding (septets, octets, UTF-16 units) fit into `octets`.
    pub(super) const fn units_in(self, octets: usize) -> usize {
        match self {
            Self::Gsm7 => octets * 8 / 7,
            Self::Binary => octets,
            Self::Ucs2 => octets / 2,
        }
    }

    /// The number of units of a character; `None` if this coding does not contain it.
    pub(super) fn width(self, character: char) -> Option<usize> {
        match self {
            Self::Gsm7 => gsm7::find(character).map(gsm7::Code::width),
            Self::Binary => u8::try_from(character).ok().map(|_| 1),
            Self::Ucs2 => Some(character.len_utf16()),
        }
    }

    /// The name of the unit in error texts.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Gsm7 => "septets",
            Self::Binary => "octets",
            Self::Ucs2 => "UTF-16 units",
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gsm7 => "coding 0 (GSM-7)",
            Self::Binary => "coding 1 (8-bit)",
            Self::Ucs2 => "coding 2 (UCS-2)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Coding;

    #[test]
    fn numbers_round_trip_and_others_are_refused() {
        for number in 0..=u8::MAX {
            let found = Coding::from_number(number).map(Coding::number);
            assert_eq!(found, (number <= 2).then_some(number), "{number}");
        }
    }

    #[test]
    fn capacities_are_those_of_the_standard() {
        let cases = [
            ("whole message, GSM-7", Coding::Gsm7, 140, 160),
            ("whole message, 8-bit", Coding::Binary, 140, 140),
            ("whole message, UCS-2", Coding::Ucs2, 140, 70),
            (
                "beside a concatenation header, GSM-7",
                Coding::Gsm7,
                134,
                153,
            ),
            (
                "beside a concatenation header, 8-bit",
                Coding::Binary,
                134,
                134,
            ),
            (
                "beside a concatenation header, UCS-2",
                Coding::Ucs2,
                134,
                67,
            ),
            ("beside a 16-bit reference, GSM-7", Coding::Gsm7, 133, 152),
            ("an odd octet is lost to UCS-2", Coding::Ucs2, 133, 66),
            ("nothing left", Coding::Gsm7, 0, 0),
        ];
        for (name, coding, octets, units) in cases {
            assert_eq!(coding.units_in(octets), units, "{name}");
        }
    }
}
