//! The compiled plan of one calling code.

use domain::Country;

use super::automaton::{Automaton, NO_CLASS};
use super::digits::Digits;
use super::lengths::{Length, LengthSet, Lengths};
use super::number_type::NumberType;
use super::pattern::Program;
use super::prefix::{Prefix, Rewrite};
use super::source::{CodeSource, RegionSource};

pub(crate) struct CallingCode {
    digits: Digits,
    /// The main region first.
    regions: Vec<Region>,
    automaton: Automaton,
    /// The meaning of each class of the automaton.
    classifications: Vec<Classification>,
}

struct Region {
    country: Option<Country>,
    dial_out: Option<Prefix>,
    prefix: Option<Prefix>,
    rewrite: Option<Rewrite>,
    lengths: Lengths,
}

/// What the patterns say about a national number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Classification {
    /// Bit `n` is set if the general pattern of region `n` matches, regardless of the length.
    general: u32,
    /// The region and type of the number; `None` if no region uses it.
    owner: Option<(usize, NumberType)>,
}

/// The owner of a valid number.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    /// `None` for numbers of no country.
    pub(crate) country: Option<Country>,
    pub(crate) kind: NumberType,
}

impl CallingCode {
    pub(super) fn new(source: &CodeSource) -> Self {
        let sources = source.regions();
        let mut patterns = Patterns::default();
        let matchers: Vec<_> = sources
            .iter()
            .map(|region| Matcher::new(region, &mut patterns))
            .collect();
        let mut classifications = vec![Classification::default()];
        let automaton = Automaton::new(&patterns.program, |digits, matching| {
            let classification = classification(&matchers, digits, matching);
            class_of(classification, &mut classifications)
        });
        Self {
            digits: digits_of(source.code),
            regions: sources.iter().map(Region::new).collect(),
            automaton,
            classifications,
        }
    }

    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The digits after the region's dialling-out prefix, if they start with it. No calling code starts with 0.
    pub(crate) fn after_dial_out<'a>(&self, region: usize, digits: &'a [u8]) -> Option<&'a [u8]> {
        let dial_out = self.regions[region].dial_out.as_ref()?;
        let rest = &digits[dial_out.find(digits)?.end()..];
        (rest.first() != Some(&0)).then_some(rest)
    }

    /// Removes the national prefix of a region.
    ///
    /// A number that matches the region's general pattern is only shortened if the result matches as well.
    pub(crate) fn without_prefix(&self, region: usize, national: &Digits) -> Digits {
        let known = &self.regions[region];
        known
            .prefix
            .as_ref()
            .and_then(|prefix| prefix.strip(national, known.rewrite.as_ref()))
            .filter(|stripped| {
                !self.matches_general(region, national) || self.matches_general(region, stripped)
            })
            .unwrap_or(*national)
    }

    pub(crate) fn matches_general(&self, region: usize, national: &[u8]) -> bool {
        self.classification(national).general & (1 << region) != 0
    }

    pub(crate) fn length(&self, region: usize, digits: usize) -> Length {
        self.regions[region].lengths.classify(digits)
    }

    /// The owner of a national number; `None` if the number is not valid.
    pub(crate) fn owner(&self, national: &[u8]) -> Option<Owner> {
        let (region, kind) = self.classification(national).owner?;
        Some(Owner {
            country: self.regions[region].country,
            kind,
        })
    }

    #[cfg(test)]
    pub(super) fn states(&self) -> usize {
        self.automaton.states()
    }

    fn classification(&self, national: &[u8]) -> Classification {
        self.classifications[usize::from(self.automaton.class_of(national))]
    }
}

fn digits_of(code: u16) -> Digits {
    let mut digits = Digits::default();
    code.to_string()
        .bytes()
        .for_each(|digit| digits.push(digit - b'0'));
    digits
}

impl Region {
    fn new(source: &RegionSource) -> Self {
        Self {
            country: super::country_of(source.id),
            dial_out: source.dial_out.map(Prefix::new),
            prefix: source.prefix.map(Prefix::new),
            rewrite: source.rewrite.map(Rewrite::new),
            lengths: source.lengths,
        }
    }
}

/// The distinct patterns of a calling code. Its regions share many.
#[derive(Default)]
struct Patterns {
    program: Program,
    known: Vec<String>,
}

impl Patterns {
    /// The index of a pattern within the program.
    fn number(&mut self, pattern: String) -> u16 {
        if let Some(number) = self.known.iter().position(|known| *known == pattern) {
            return u16::try_from(number).expect("few patterns");
        }
        let number = self.program.add(&pattern);
        self.known.push(pattern);
        number
    }
}

/// The patterns of a region, by their index.
struct Matcher {
    lengths: LengthSet,
    general: u16,
    leading: Option<u16>,
    kinds: Vec<KindMatcher>,
}

struct KindMatcher {
    kind: Kind,
    lengths: LengthSet,
    pattern: u16,
}

/// The kinds of numbers that matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    FixedLine,
    Mobile,
    /// Toll-free, premium, internet telephony and similar. Checked first, and neither fixed nor mobile.
    Service,
}

impl Kind {
    fn parse(name: &str) -> Self {
        match name {
            "fixed-line" => Self::FixedLine,
            "mobile" => Self::Mobile,
            _ => Self::Service,
        }
    }
}

impl Matcher {
    fn new(source: &RegionSource, patterns: &mut Patterns) -> Self {
        let longest = source.lengths.whole.longest();
        let kinds = source.kinds.iter().map(|kind| KindMatcher {
            kind: Kind::parse(kind.name),
            lengths: kind.lengths,
            pattern: patterns.number(kind.pattern.to_owned()),
        });
        Self {
            kinds: kinds.collect(),
            lengths: source.lengths.whole,
            general: patterns.number(source.general.to_owned()),
            // The automaton needs bounded patterns; longer numbers are valid nowhere.
            leading: source
                .leading
                .map(|leading| patterns.number(format!(r"(?:{leading})\d{{0,{longest}}}"))),
        }
    }

    /// Whether libphonenumber stops its search at this region.
    fn stops_search(&self, digits: usize, matching: &[u16]) -> bool {
        match self.leading {
            Some(leading) => matching.contains(&leading),
            None => self.kind(digits, matching).is_some(),
        }
    }

    /// The type of a number in this region; `None` if it is not valid here.
    fn kind(&self, digits: usize, matching: &[u16]) -> Option<NumberType> {
        if !matching.contains(&self.general) || !self.lengths.has(digits) {
            return None;
        }
        let is = |kind| {
            self.kinds.iter().any(|known| {
                known.kind == kind && known.lengths.has(digits) && matching.contains(&known.pattern)
            })
        };
        match (is(Kind::Service), is(Kind::FixedLine), is(Kind::Mobile)) {
            (true, _, _) | (_, true, true) => Some(NumberType::Unknown),
            (_, true, _) => Some(NumberType::Landline),
            (_, _, true) => Some(NumberType::Mobile),
            _ => None,
        }
    }
}

/// Combines the regions' answers, given the patterns that match.
fn classification(regions: &[Matcher], digits: usize, matching: &[u16]) -> Classification {
    let general = (0..)
        .zip(regions)
        .filter(|(_, region)| matching.contains(&region.general))
        .fold(0, |set, (bit, _)| set | 1_u32 << bit);
    // A single region needs no search.
    let owner = match regions {
        [only] => Some((0, only)),
        several => several
            .iter()
            .enumerate()
            .find(|(_, region)| region.stops_search(digits, matching)),
    };
    Classification {
        general,
        owner: owner.and_then(|(index, region)| Some((index, region.kind(digits, matching)?))),
    }
}

fn class_of(classification: Classification, classifications: &mut Vec<Classification>) -> u16 {
    debug_assert!(classifications[usize::from(NO_CLASS)] == Classification::default());
    let class = classifications
        .iter()
        .position(|known| *known == classification);
    let class = class.unwrap_or_else(|| {
        classifications.push(classification);
        classifications.len() - 1
    });
    u16::try_from(class).expect("few classifications")
}
