//! The command line of `bench deliver`.

use crate::options::{backend, backends, default_binary, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;
use testkit::Backend;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) warm_up: Duration,
    /// The main run of each database.
    pub(crate) sustained: Duration,
    /// Each further row, the sum over its turns.
    pub(crate) step: Duration,
    /// The numbers of scheduled messages, one row for each.
    pub(crate) waiting: Vec<u64>,
    /// The maximum number of messages that are accepted and not yet called back.
    pub(crate) outstanding: usize,
    pub(crate) simulator_delay_ms: u64,
    pub(crate) only: Option<Backend>,
    /// Whether to measure scheduled messages on `PostgreSQL` too.
    pub(crate) all: bool,
    pub(crate) switchboard: PathBuf,
}

impl Options {
    fn defaults() -> Result<Self> {
        Ok(Self {
            warm_up: Duration::from_secs(2),
            sustained: Duration::from_mins(1),
            step: Duration::from_secs(15),
            waiting: vec![10_000, 100_000, 1_000_000],
            outstanding: 5_000,
            simulator_delay_ms: 50,
            only: None,
            all: false,
            switchboard: default_binary()?,
        })
    }

    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::defaults()?;
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--quick" => {
                    options.set_seconds(8);
                    options.waiting = vec![10_000];
                }
                "--all" => options.all = true,
                _ => match rest.next() {
                    Some(value) => options.set(flag, value)?,
                    None => bail!("{flag} is unknown or needs a value\n{}", crate::USAGE),
                },
            }
        }
        // The server has another working folder, so a relative path would not work.
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<()> {
        match flag {
            "--seconds" => self.set_seconds(number(flag, value)?.max(1)),
            "--waiting" => self.waiting = counts(flag, value)?,
            "--outstanding" => {
                self.outstanding = usize::try_from(number(flag, value)?)?.max(1);
            }
            "--delay-ms" => self.simulator_delay_ms = number(flag, value)?,
            "--only" => self.only = Some(backend(value)?),
            "--switchboard" => self.switchboard = PathBuf::from(value),
            _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
        }
        Ok(())
    }

    /// The further rows need less time.
    fn set_seconds(&mut self, seconds: u64) {
        self.sustained = Duration::from_secs(seconds);
        self.step = Duration::from_secs(seconds.div_ceil(4).max(4));
    }

    pub(crate) fn backends(&self) -> impl Iterator<Item = Backend> {
        backends(self.only)
    }

    pub(crate) fn growth_backends(&self) -> impl Iterator<Item = Backend> {
        let named = self.all || self.only.is_some();
        self.backends()
            .filter(move |backend| named || *backend == Backend::Sqlite)
    }
}

/// Parses `10000,1000000`. Each row is compared with one without scheduled messages anyway, so 0 means no row.
fn counts(flag: &str, value: &str) -> Result<Vec<u64>> {
    let counts: Result<Vec<u64>> = value.split(',').map(|count| number(flag, count)).collect();
    Ok(counts?.into_iter().filter(|count| *count > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::Options;
    use std::time::Duration;
    use testkit::Backend;

    fn parse(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        let default = parse("").expect("all have defaults");
        assert_eq!(
            (default.sustained, default.step),
            (Duration::from_mins(1), Duration::from_secs(15))
        );
        let quick = parse("--quick --outstanding 9 --delay-ms 0").expect("valid");
        assert_eq!(
            (quick.sustained, quick.step),
            (Duration::from_secs(8), Duration::from_secs(4))
        );
        assert_eq!((quick.outstanding, quick.simulator_delay_ms), (9, 0));
        assert_eq!(quick.waiting, [10_000]);
        assert!(parse("--waiting 0").expect("valid").waiting.is_empty());
        assert_eq!(
            parse("--waiting 5,7").expect("valid").waiting,
            [5, 7],
            "a list"
        );
    }

    #[test]
    fn flags_select_the_databases() {
        let (sqlite, postgres) = (Backend::Sqlite, Backend::Postgres);
        let cases = [
            ("", vec![sqlite, postgres], vec![sqlite]),
            ("--all", vec![sqlite, postgres], vec![sqlite, postgres]),
            ("--only postgres", vec![postgres], vec![postgres]),
        ];
        for (line, sustained, growth) in cases {
            let options = parse(line).expect(line);
            assert_eq!(options.backends().collect::<Vec<_>>(), sustained, "{line}");
            assert_eq!(
                options.growth_backends().collect::<Vec<_>>(),
                growth,
                "{line}"
            );
        }
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [
            ("--fast", "--fast"),
            ("--fast 1", "--fast"),
            ("--seconds", "--seconds"),
            ("--waiting 1,x", "\"x\""),
            ("--only mysql", "\"mysql\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
