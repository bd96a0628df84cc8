//! The numbering plans of the world, as libphonenumber has them, in a form that is fast to ask.
//!
//! The plan of a calling code is prepared by the first number that needs it and then kept. There are some two hundred,
//! so what is kept is bounded.

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

/// Calling codes have one to three digits and none is the start of another, so three digits name at most one.
const LEADING_DIGITS: usize = 3;
const LEADING_GROUPS: usize = 1000;

static WORLD: LazyLock<World> = LazyLock::new(World::new);

struct World {
    codes: Vec<Entry>,
    /// The entry of each group of leading digits.
    by_leading_digits: Vec<Option<u8>>,
    /// The entry of each country's slot, and its region there.
    by_country: Vec<Option<(u8, u8)>>,
}

struct Entry {
    source: CodeSource,
    /// How many digits the calling code has.
    code_digits: usize,
    /// The lengths of the main region. They are read with the world, so that asking for them prepares no plan.
    lengths: Lengths,
    plan: OnceLock<CallingCode>,
}

/// A region from where a number may be dialled.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    /// The plan of its calling code.
    pub(crate) plan: &'static CallingCode,
    /// Its place among the regions of that code.
    pub(crate) region: usize,
}

/// The plan by whose calling code the digits start, and the digits after that.
pub(crate) fn of_number(digits: &[u8]) -> Option<(&'static CallingCode, &[u8])> {
    let entry = WORLD.starting(digits.iter().copied())?;
    Some((entry.plan(), &digits[entry.code_digits..]))
}

/// What the length says of a number as it stands, with nothing dropped from it; `None` where no calling code starts so.
pub(crate) fn length_of(number: &Msisdn) -> Option<Length> {
    let digits = number.digits().bytes();
    let total = digits.len();
    let entry = WORLD.starting(digits.map(|digit| digit - b'0'))?;
    Some(entry.lengths.of(total - entry.code_digits))
}

/// The region of a country; `None` where it has no plan of its own.
pub(crate) fn of_country(country: Country) -> Option<Home> {
    let (entry, region) = WORLD.by_country[country.slot()]?;
    Some(Home {
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
            // A part of a country has its own plan, but a number is never read for it.
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

    /// The calling code by which the digits start.
    fn starting(&self, mut digits: impl Iterator<Item = u8>) -> Option<&Entry> {
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

/// The country of a region; `None` for `001`, which is no country.
///
/// libphonenumber knows two islands by codes that ISO 3166-1 does not assign. There they are parts of Saint Helena.
fn country_of(region: &str) -> Option<Country> {
    let code = match region {
        "AC" | "TA" => "SH",
        code => code,
    };
    Country::parse(code).ok()
}

#[cfg(test)]
mod tests;
