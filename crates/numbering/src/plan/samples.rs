//! Numbers made up from the patterns of the plans, for tests: in use or nearly so, and dialled in every way.

use domain::Country;

use super::pattern::{Program, Step};
use super::source::{self, RegionSource};

/// What is dialled before a number somewhere, or looks like it.
const BEFORE: [&str; 16] = [
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

/// A source of choices that gives the same ones for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`, each as likely as the others (`SplitMix64`).
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let wide = u128::from(mixed ^ (mixed >> 31)) * u128::try_from(sides).expect("fits");
        usize::try_from(wide >> 64).expect("below the number of sides")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// The plans, for making up numbers.
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
    pub(crate) fn roll(&self, dice: &mut Dice) -> (String, Option<Country>) {
        let (code, regions) = dice.pick(&self.codes);
        let region = dice.pick(regions);
        let national = nearly(national(region, dice), dice);
        let country = match dice.roll(10) {
            0 => None,
            1 => Some(*dice.pick(&self.countries)),
            2 => super::country_of(dice.pick(regions).id),
            _ => super::country_of(region.id),
        };
        let written = match dice.roll(10) {
            0 | 1 => national,
            2 => format!("+{code}{national}"),
            3 => format!("00{code}{national}"),
            4 => format!("{code}{national}"),
            5 => format!("{}{code}{national}", dialled(region.dial_out, dice)),
            6 => format!("{code}{}{national}", dialled(region.prefix, dice)),
            7 => format!("{}{national}", dice.pick(&BEFORE)),
            _ => format!("{}{national}", dialled(region.prefix, dice)),
        };
        (written, country)
    }

    /// Every calling code.
    pub(crate) fn codes(&self) -> impl Iterator<Item = u16> {
        self.codes.iter().map(|&(code, _)| code)
    }

    /// A number of every calling code, with what is dialled at home left in. Some prefixes are a whole local number,
    /// so half of them stand alone.
    pub(crate) fn with_home_prefix(&self, dice: &mut Dice) -> impl Iterator<Item = String> {
        self.codes.iter().map(|(code, regions)| {
            let main = regions.first().expect("a code has a region");
            let prefix = dialled(main.prefix, dice);
            match dice.roll(2) {
                0 => format!("{code}{prefix}"),
                _ => format!("{code}{prefix}{}", nearly(national(main, dice), dice)),
            }
        })
    }
}

/// A national number that one of the region's patterns matches.
fn national(region: &RegionSource, dice: &mut Dice) -> String {
    match dice.roll(region.kinds.len() + 1) {
        0 => matching(region.general, dice),
        kind => matching(region.kinds[kind - 1].pattern, dice),
    }
}

fn dialled(prefix: Option<&str>, dice: &mut Dice) -> String {
    prefix.map_or_else(String::new, |prefix| matching(prefix, dice))
}

/// Mostly the number as it is; else a digit more, a digit less or another digit.
fn nearly(mut number: String, dice: &mut Dice) -> String {
    let at = dice.roll(number.len());
    let digit = dice.roll(10).to_string();
    match dice.roll(12) {
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

/// Digits that a pattern matches.
fn matching(pattern: &str, dice: &mut Dice) -> String {
    let mut program = Program::default();
    program.add(pattern);
    let mut digits = String::new();
    let mut at = 0;
    loop {
        at = match program.step(at) {
            Step::Digit(set) => {
                let members: Vec<u32> = (0..10).filter(|digit| set & (1 << digit) != 0).collect();
                digits.push(char::from_digit(*dice.pick(&members), 10).expect("a digit"));
                at + 1
            }
            Step::Fork(second) => *dice.pick(&[at + 1, second]),
            Step::Jump(to) => to,
            Step::End | Step::Open(_) | Step::Close(_) => at + 1,
            Step::Accept(_) => return digits,
        }
    }
}
