//! Countries by their two-letter codes.

use std::fmt;
use std::sync::LazyLock;

use crate::quoted::Quoted;

/// Kosovo is used by phone networks and by libphonenumber, but it is not in ISO 3166-1.
const KOSOVO: [u8; 2] = *b"XK";

/// A country of ISO 3166-1, or Kosovo, by its alpha-2 code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an ISO 3166-1 alpha-2 country code", Quoted(.value))]
pub struct UnknownCountry {
    pub value: String,
}

/// Where the name in ISO 3166-1 is longer than the usual one.
const SHORT_NAMES: [(&str, &str); 29] = [
    ("BN", "Brunei"),
    ("BO", "Bolivia"),
    ("CD", "DR Congo"),
    ("CI", "Ivory Coast"),
    ("FK", "Falkland Islands"),
    ("FM", "Micronesia"),
    ("GB", "United Kingdom"),
    ("GS", "South Georgia"),
    ("IO", "British Indian Ocean"),
    ("IR", "Iran"),
    ("KP", "North Korea"),
    ("KR", "South Korea"),
    ("LA", "Laos"),
    ("MD", "Moldova"),
    ("MF", "Saint Martin"),
    ("NL", "Netherlands"),
    ("PS", "Palestine"),
    ("RU", "Russia"),
    ("SH", "Saint Helena"),
    ("SX", "Sint Maarten"),
    ("SY", "Syria"),
    ("TW", "Taiwan"),
    ("TZ", "Tanzania"),
    ("UM", "US Outlying Islands"),
    ("US", "United States"),
    ("VA", "Vatican City"),
    ("VE", "Venezuela"),
    ("VG", "British Virgin Islands"),
    ("VN", "Vietnam"),
];
const LETTERS: usize = 26;

impl Country {
    /// The size of a table indexed by [`Self::slot`].
    pub const SLOTS: usize = LETTERS * LETTERS;

    /// Parses a code in upper or lower case.
    pub fn parse(value: &str) -> Result<Self, UnknownCountry> {
        <[u8; 2]>::try_from(value.as_bytes())
            .ok()
            .map(|code| code.map(|byte| byte.to_ascii_uppercase()))
            .filter(|&code| is_assigned(code))
            .map(Self)
            .ok_or_else(|| UnknownCountry {
                value: value.to_owned(),
            })
    }

    /// Every country, sorted by code.
    pub fn all() -> impl Iterator<Item = Self> {
        (b'A'..=b'Z')
            .flat_map(|first| (b'A'..=b'Z').map(move |second| [first, second]))
            .filter(|&code| is_assigned(code))
            .map(Self)
    }

    /// The English name.
    pub fn name(self) -> &'static str {
        match rust_iso3166::from_alpha2(self.as_str()) {
            Some(country) => country.name,
            None => "Kosovo",
        }
    }

    /// The English name in daily use, for people who read lists: `United Kingdom`.
    pub fn short_name(self) -> &'static str {
        let known = SHORT_NAMES.iter().find(|(code, _)| *code == self.as_str());
        known.map_or_else(|| self.name(), |(_, name)| name)
    }

    /// The index in tables by country, below [`Self::SLOTS`].
    pub fn slot(self) -> usize {
        slot(self.0)
    }

    /// Reads the result of [`Self::slot`].
    pub fn from_slot(slot: usize) -> Option<Self> {
        let letter = |index: usize| u8::try_from(index).ok().map(|index| b'A' + index);
        let code = [letter(slot / LETTERS)?, letter(slot % LETTERS)?];
        (slot < Self::SLOTS && is_assigned(code)).then_some(Self(code))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only assigned codes are stored, and those are ASCII")
    }
}

/// The assigned codes, by slot. Imported files name a country in each of many thousand rows.
static ASSIGNED: LazyLock<[bool; Country::SLOTS]> = LazyLock::new(|| {
    let mut assigned = [false; Country::SLOTS];
    let codes = rust_iso3166::ALL_ALPHA2.iter().map(|code| code.as_bytes());
    for code in codes.chain([KOSOVO.as_slice()]) {
        assigned[slot([code[0], code[1]])] = true;
    }
    assigned
});

/// Whether an upper-case code is assigned to a country.
fn is_assigned(code: [u8; 2]) -> bool {
    code.iter().all(u8::is_ascii_uppercase) && ASSIGNED[slot(code)]
}

fn slot(code: [u8; 2]) -> usize {
    let [first, second] = code.map(|letter| usize::from(letter - b'A'));
    first * LETTERS + second
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Country({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_names_belong_to_countries() {
        for country in Country::all() {
            assert_eq!(Country::from_slot(country.slot()), Some(country));
        }
        for (code, name) in SHORT_NAMES {
            let country = Country::parse(code).expect(code);
            assert_eq!(country.short_name(), name);
        }
        assert_eq!(Country::from_slot(0), None, "AA is assigned to nobody");
    }

    #[test]
    fn every_assigned_code_is_parsed_in_any_case() {
        let mut codes = rust_iso3166::ALL_ALPHA2.to_vec();
        assert_eq!(codes.len(), 249, "ISO 3166-1 without Kosovo");
        codes.push("XK");
        for code in codes {
            let mixed = format!("{}{}", &code[..1], code[1..].to_ascii_lowercase());
            for written in [code.to_owned(), code.to_ascii_lowercase(), mixed] {
                let country = Country::parse(&written).expect(&written);
                assert_eq!(country.as_str(), code);
                assert_eq!(country.to_string(), code);
            }
        }
    }

    #[test]
    fn every_country_has_a_name_and_its_own_slot() {
        let all: Vec<Country> = Country::all().collect();
        assert_eq!(all.len(), 250, "ISO 3166-1 and Kosovo");
        assert!(all.windows(2).all(|pair| pair[0].slot() < pair[1].slot()));
        assert!(
            all.iter()
                .all(|c| c.slot() < Country::SLOTS && !c.name().is_empty())
        );
        assert_eq!(Country::parse("xk").expect("a country").name(), "Kosovo");
        assert_eq!(Country::parse("LV").expect("a country").name(), "Latvia");
    }

    #[test]
    fn an_unknown_country_is_quoted() {
        for (value, shown) in [
            ("XX", "'XX'"),
            ("uk", "'uk'"),
            ("ZZ", "'ZZ'"),
            ("", "''"),
            ("L", "'L'"),
            ("LVA", "'LVA'"),
            (" LV", "' LV'"),
            ("L\n", "'L\\u{a}'"),
            ("ß", "'ß'"),
            ("371", "'371'"),
        ] {
            let error = Country::parse(value).expect_err(value).to_string();
            assert_eq!(
                error,
                format!("{shown} is not an ISO 3166-1 alpha-2 country code")
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_reads_back_its_own_code(value in "\\PC{0,3}|[A-Za-z]{2}") {
            if let Ok(country) = Country::parse(&value) {
                prop_assert_eq!(country.as_str(), value.to_ascii_uppercase());
                prop_assert_eq!(Country::parse(country.as_str()), Ok(country));
            }
        }
    }
}
