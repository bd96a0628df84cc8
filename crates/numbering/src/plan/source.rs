//! Reads the numbering plans in `world.txt`.

use super::lengths::{LengthSet, Lengths};

/// The head of the file names its source.
const WORLD: &str = include_str!("world.txt");

/// The lines of one calling code.
pub(super) struct CodeSource {
    pub(super) code: u16,
    lines: &'static str,
}

/// The plan of one region. A pattern that is absent matches nothing.
pub(super) struct RegionSource {
    /// libphonenumber's code for the region: a country, a part of one, or `001` for none.
    pub(super) id: &'static str,
    /// The prefix of international numbers.
    pub(super) dial_out: Option<&'static str>,
    /// The prefix of national numbers.
    pub(super) prefix: Option<&'static str>,
    /// The replacement of the prefix.
    pub(super) rewrite: Option<&'static str>,
    /// The leading digits of the region's numbers.
    pub(super) leading: Option<&'static str>,
    pub(super) lengths: Lengths,
    /// The pattern of all its numbers.
    pub(super) general: &'static str,
    pub(super) kinds: Vec<KindSource>,
}

/// The numbers of one kind.
pub(super) struct KindSource {
    /// The kind's name in the file.
    pub(super) name: &'static str,
    pub(super) lengths: LengthSet,
    pub(super) pattern: &'static str,
}

/// All calling codes, ascending.
pub(super) fn codes() -> impl Iterator<Item = CodeSource> {
    WORLD.split("\ncode ").skip(1).map(|section| {
        let (code, lines) = section.split_once('\n').expect("regions follow a code");
        CodeSource {
            code: code.parse().expect("a calling code is a number"),
            lines,
        }
    })
}

impl CodeSource {
    /// The regions, the main one first.
    pub(super) fn regions(&self) -> Vec<RegionSource> {
        let mut regions = Vec::new();
        for line in self.lines.lines() {
            let (key, value) = line.split_once(' ').expect("a value follows its key");
            if key == "region" {
                regions.push(RegionSource::new(value));
            } else {
                let region = regions.last_mut().expect("a code starts with a region");
                region.add(key, value);
            }
        }
        regions
    }

    /// The codes of the regions, read without the patterns.
    pub(super) fn region_ids(&self) -> impl Iterator<Item = &'static str> {
        self.lines
            .lines()
            .filter_map(|line| line.strip_prefix("region "))
    }

    /// The lengths of the main region, read without the patterns.
    pub(super) fn main_lengths(&self) -> Lengths {
        let mut lines = self.lines.lines();
        let general = lines.find_map(|line| line.strip_prefix("general "));
        let (lengths, _) = lengths_and_pattern(general.expect("every region has numbers"));
        lengths
    }
}

impl RegionSource {
    fn new(id: &'static str) -> Self {
        Self {
            id,
            dial_out: None,
            prefix: None,
            rewrite: None,
            leading: None,
            lengths: Lengths::default(),
            general: "",
            kinds: Vec::new(),
        }
    }

    fn add(&mut self, key: &'static str, value: &'static str) {
        match key {
            "dial-out" => self.dial_out = Some(value),
            "prefix" => self.prefix = Some(value),
            "rewrite" => self.rewrite = Some(value),
            "leading" => self.leading = Some(value),
            "general" => (self.lengths, self.general) = lengths_and_pattern(value),
            name => {
                let (lengths, pattern) = split(value);
                let lengths = match lengths {
                    "-" => self.lengths.whole,
                    own => LengthSet::read(own),
                };
                self.kinds.push(KindSource {
                    name,
                    lengths,
                    pattern,
                });
            }
        }
    }
}

/// Parses the value of a `general` line.
fn lengths_and_pattern(value: &'static str) -> (Lengths, &'static str) {
    let (whole, rest) = split(value);
    let (local, pattern) = split(rest);
    let lengths = Lengths {
        whole: LengthSet::read(whole),
        local: LengthSet::read(local),
    };
    (lengths, pattern)
}

fn split(value: &'static str) -> (&'static str, &'static str) {
    value
        .split_once(' ')
        .expect("a pattern follows its lengths")
}
