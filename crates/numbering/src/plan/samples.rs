//! Random numbers for tests, generated from the patterns of the plans: valid or nearly valid, with various prefixes.

use domain::Country;

use super::pattern::{Program, Step};
use super::source::{self, RegionSource};

/// Prefixes that are dialled somewhere, and some that only look like one.
const PREFIXES: [&str; 16] = [
    "0",
    "1",
    "8",
    "9",
    "00",
    "06",
    "011",
    "15",
    "180020",
    "003768",
    "0002",
    "1831",
    "810",
    "+",
    "+00",
    "000000000",
];

/// A random number generator that repeats itself for the same seed (`SplitMix64`).
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A uniformly distributed number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let wide = u128::from(mixed ^ (mixed >> 31)) * u128::try_from(limit).expect("fits");
        usize::try_from(wide >> 64).expect("below the limit")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub(crate) struct Samples {
    codes: Vec<(u16, Vec<RegionSource>)>,
    countries: Vec<Country>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self {
            codes: source::codes()
                .map(|source| (source.code, source.regions()))
                .collect(),
            countries: Country::all().collect(),
        }
    }

    /// A number in ASCII digits, with or without a plus sign, and the country to read it for.
    pub(crate) fn any(&self, random: &mut SplitMix) -> (String, Option<Country>) {
        let (code, regions) = random.pick(&self.codes);
        let region = random.pick(regions);
        let national = mutate(national(region, random), random);
        let country = match random.below(10) {
            0 => None,
            1 => Some(*random.pick(&self.countries)),
            2 => super::country_of(random.pick(regions).id),
            _ => super::country_of(region.id),
        };
        let written = match random.below(10) {
            0 | 1 => national,
            2 => format!("+{code}{national}"),
            3 => format!("00{code}{national}"),
            4 => format!("{code}{national}"),
            5 => format!("{}{code}{national}", dialled(region.dial_out, random)),
            6 => format!("{code}{}{national}", dialled(region.prefix, random)),
            7 => format!("{}{national}", random.pick(&PREFIXES)),
            _ => format!("{}{national}", dialled(region.prefix, random)),
        };
        (written, country)
    }

    pub(crate) fn codes(&self) -> impl Iterator<Item = u16> {
        self.codes.iter().map(|&(code, _)| code)
    }

    /// A number of every calling code, with the national prefix left in. Some prefixes are a complete local number, so
    /// half of them stand alone.
    pub(crate) fn with_national_prefix(
        &self,
        random: &mut SplitMix,
    ) -> impl Iterator<Item = String> {
        self.codes.iter().map(|(code, regions)| {
            let main = regions.first().expect("a code has a region");
            let prefix = dialled(main.prefix, random);
            match random.below(2) {
                0 => format!("{code}{prefix}"),
                _ => format!("{code}{prefix}{}", mutate(national(main, random), random)),
            }
        })
    }
}

/// A national number that matches one of the region's patterns.
fn national(region: &RegionSource, random: &mut SplitMix) -> String {
    match random.below(region.kinds.len() + 1) {
        0 => matching(region.general, random),
        kind => matching(region.kinds[kind - 1].pattern, random),
    }
}

fn dialled(prefix: Option<&str>, random: &mut SplitMix) -> String {
    prefix.map_or_else(String::new, |prefix| matching(prefix, random))
}

/// Sometimes adds, removes or changes a digit.
fn mutate(mut number: String, random: &mut SplitMix) -> String {
    let at = random.below(number.len());
    let digit = random.below(10).to_string();
    match random.below(12) {
        0 => number.insert_str(at, &digit),
        1 => {
            number.remove(at);
        }
        2 => number.replace_range(at..=at, &digit),
        3 => number.truncate(at),
        _ => {}
    }
    number
}

fn matching(pattern: &str, random: &mut SplitMix) -> String {
    let mut program = Program::default();
    program.add(pattern);
    let mut digits = String::new();
    let mut at = 0;
    loop {
        at = match program.step(at) {
            Step::Digit(set) => {
                let members: Vec<u32> = (0..10).filter(|digit| set & (1 << digit) != 0).collect();
                digits.push(char::from_digit(*random.pick(&members), 10).expect("a digit"));
                at + 1
            }
            Step::Fork(second) => *random.pick(&[at + 1, second]),
            Step::Jump(to) => to,
            Step::End | Step::Open(_) | Step::Close(_) => at + 1,
            Step::Accept(_) => return digits,
        }
    }
}
