//! The plans as they are written in `world.txt`.

use super::lengths::{LengthSet, Lengths};

/// The plans of the world; the file's head says where they come from.
const WORLD: &str = include_str!("world.txt");

/// The lines of one calling code.
pub(super) struct CodeSource {
    /// The calling code.
    pub(super) code: u16,
    lines: &'static str,
}

/// What one region's numbers look like. A pattern that is absent matches nothing.
pub(super) struct RegionSource {
    /// The region in libphonenumber's terms: a country, a part of one, or `001` for none.
    pub(super) id: &'static str,
    /// What is dialled before an international number.
    pub(super) dial_out: Option<&'static str>,
    /// What is dialled before a national number.
    pub(super) prefix: Option<&'static str>,
    /// What the prefix is rewritten to.
    pub(super) rewrite: Option<&'static str>,
    /// What numbers of this region start with.
    pub(super) leading: Option<&'static str>,
    /// The lengths of its numbers.
    pub(super) lengths: Lengths,
    /// The pattern of all its numbers.
    pub(super) general: &'static str,
    /// The patterns by kind.
    pub(super) kinds: Vec<KindSource>,
}

/// What numbers of one kind look like.
pub(super) struct KindSource {
    /// The kind's name in the file.
    pub(super) name: &'static str,
    /// Its lengths.
    pub(super) lengths: LengthSet,
    /// Its pattern.
    pub(super) pattern: &'static str,
}

/// Every calling code, in ascending order.
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

    /// The names of the regions alone, which needs no pattern to be read.
    pub(super) fn region_ids(&self) -> impl Iterator<Item = &'static str> {
        self.lines
            .lines()
            .filter_map(|line| line.strip_prefix("region "))
    }

    /// The lengths of the main region alone, which needs no pattern to be read.
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

/// The value of a `general` line.
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
        .expect("lengths stand before a pattern")
}
