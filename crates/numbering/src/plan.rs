//! The world's numbering plans, taken from libphonenumber and compiled for fast matching.
//!
//! The plan of a calling code is compiled when the first number needs it and then kept. There are about two hundred.

mod automaton;
mod calling_code;
mod digits;
mod lengths;
#[cfg(test)]
pub(crate) mod library;
mod number_type;
mod pattern;
mod prefix;
#[cfg(test)]
pub(crate) mod samples;
mod source;

use std::sync::{LazyLock, OnceLock};

use domain::{Country, Msisdn};

pub(crate) use self::calling_code::{CallingCode, Owner};
pub(crate) use self::digits::Digits;
pub(crate) use self::lengths::Length;
use self::lengths::Lengths;
pub use self::number_type::NumberType;
use self::source::CodeSource;

/// Calling codes have one to three digits and none is the start of another, so three digits identify at most one.
const LEADING_DIGITS: usize = 3;
const LEADING_GROUPS: usize = 1000;

static WORLD: LazyLock<World> = LazyLock::new(World::new);

struct World {
    codes: Vec<Entry>,
    /// The index in `codes`, by the first three digits of a number.
    by_leading_digits: Vec<Option<u8>>,
    /// The index in `codes` and the region there, by [`Country::slot`].
    by_country: Vec<Option<(u8, u8)>>,
}

struct Entry {
    source: CodeSource,
    code_digits: usize,
    /// The lengths of the main region, read at start so that checking a length compiles no plan.
    lengths: Lengths,
    plan: OnceLock<CallingCode>,
}

/// The region that a number is dialled from.
#[derive(Clone, Copy)]
pub(crate) struct DiallingRegion {
    pub(crate) plan: &'static CallingCode,
    /// Its index among the regions of the calling code.
    pub(crate) region: usize,
}

/// Splits digits into the plan of their calling code and the rest.
pub(crate) fn split_calling_code(digits: &[u8]) -> Option<(&'static CallingCode, &[u8])> {
    let entry = WORLD.find_entry(digits.iter().copied())?;
    Some((entry.plan(), &digits[entry.code_digits..]))
}

/// Checks the length of a number as it is, without removing prefixes; `None` if its calling code does not exist.
pub(crate) fn check_length(number: &Msisdn) -> Option<Length> {
    let digits = number.digits().bytes();
    let total = digits.len();
    let entry = WORLD.find_entry(digits.map(|digit| digit - b'0'))?;
    Some(entry.lengths.classify(total - entry.code_digits))
}

/// How many digits of a number are its calling code; `None` if that does not exist.
pub(crate) fn calling_code_digits(number: &Msisdn) -> Option<usize> {
    let digits = number.digits().bytes();
    let entry = WORLD.find_entry(digits.map(|digit| digit - b'0'))?;
    Some(entry.code_digits)
}

/// The region of a country; `None` if it has no numbering plan.
pub(crate) fn find_region(country: Country) -> Option<DiallingRegion> {
    let (entry, region) = WORLD.by_country[country.slot()]?;
    Some(DiallingRegion {
        plan: WORLD.codes[usize::from(entry)].plan(),
        region: usize::from(region),
    })
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            codes: Vec::new(),
            by_leading_digits: vec![None; LEADING_GROUPS],
            by_country: vec![None; Country::SLOTS],
        };
        source::codes().for_each(|source| world.add(source));
        world
    }

    fn add(&mut self, source: CodeSource) {
        let entry = u8::try_from(self.codes.len()).expect("fewer than 256 calling codes");
        let code = usize::from(source.code);
        let (code_digits, span) = match code {
            0..10 => (1, 100),
            10..100 => (2, 10),
            _ => (3, 1),
        };
        self.by_leading_digits[code * span..(code + 1) * span].fill(Some(entry));
        for (region, id) in (0..).zip(source.region_ids()) {
            // Parts of a country have their own plan, but numbers are never read for them.
            if let Ok(country) = Country::parse(id) {
                self.by_country[country.slot()] = Some((entry, region));
            }
        }
        self.codes.push(Entry {
            code_digits,
            lengths: source.main_lengths(),
            source,
            plan: OnceLock::new(),
        });
    }

    /// The entry of the calling code that the digits start with.
    fn find_entry(&self, mut digits: impl Iterator<Item = u8>) -> Option<&Entry> {
        let leading = (0..LEADING_DIGITS).try_fold(0, |leading, _| {
            Some(leading * 10 + usize::from(digits.next()?))
        })?;
        let entry = self.by_leading_digits[leading]?;
        Some(&self.codes[usize::from(entry)])
    }
}

impl Entry {
    fn plan(&self) -> &CallingCode {
        self.plan.get_or_init(|| CallingCode::new(&self.source))
    }
}

/// The country of a region; `None` for `001`, which is not a country.
///
/// libphonenumber uses two codes that ISO 3166-1 does not assign, for islands that belong to Saint Helena.
fn country_of(region: &str) -> Option<Country> {
    let code = match region {
        "AC" | "TA" => "SH",
        code => code,
    };
    Country::parse(code).ok()
}

#[cfg(test)]
mod tests;
