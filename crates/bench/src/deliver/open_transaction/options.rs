//! The command line of `bench open-transaction`.

use super::FlowOptions;
use crate::options::number;
use anyhow::Result;
use std::time::Duration;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    /// How long each database is under load, the sum over all slices.
    minutes: u64,
    /// The length of a turn.
    pub(super) slice: Duration,
    quick: bool,
    /// The options of `bench deliver`.
    pub(super) flows: FlowOptions,
}

const QUICK_SLICES: u64 = 3;
const QUICK_SLICE: Duration = Duration::from_secs(2);

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            minutes: 3,
            slice: Duration::from_secs(10),
            quick: false,
            flows: FlowOptions::parse(&[])?,
        };
        let mut others = Vec::new();
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match (flag.as_str(), rest.as_slice().first()) {
                ("--quick", _) => {
                    options.quick = true;
                    options.slice = QUICK_SLICE;
                    continue;
                }
                ("--minutes", Some(value)) => options.minutes = number(flag, value)?.max(1),
                ("--slice-s", Some(value)) => {
                    options.slice = Duration::from_secs(number(flag, value)?.max(1));
                }
                (_, value) => {
                    others.push(flag.clone());
                    others.extend(value.cloned());
                }
            }
            rest.next();
        }
        options.flows = FlowOptions::parse(&others)?;
        Ok(options)
    }

    /// The number of turns.
    pub(super) fn slices(&self) -> u64 {
        if self.quick {
            return QUICK_SLICES;
        }
        (self.minutes * 60).div_ceil(self.slice.as_secs()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        let cases = [
            ("", 18, 10, 5_000),
            ("--quick", 3, 2, 5_000),
            ("--minutes 1 --slice-s 7", 9, 7, 5_000),
            ("--outstanding 9 --minutes 2", 12, 10, 9),
        ];
        for (line, slices, seconds, outstanding) in cases {
            let options = parse(line).expect(line);
            let found = (options.slices(), options.slice.as_secs());
            assert_eq!(found, (slices, seconds), "{line}");
            assert_eq!(options.flows.outstanding, outstanding, "{line}");
        }
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [
            ("--fast", "--fast"),
            ("--minutes", "--minutes"),
            ("--slice-s x", "\"x\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
