//! The command line of `bench accept`, and what the others share.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::PathBuf;
use std::time::Duration;
use testkit::Backend;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) connections: &'static [usize],
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    pub(crate) soak_messages: u64,
    pub(crate) switchboard: PathBuf,
}

pub(crate) fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        connections: &[1, 16, 64, 256],
        warm_up: Duration::from_secs(2),
        measured: Duration::from_secs(8),
        soak_messages: 1_000_000,
        switchboard: default_binary()?,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--quick" => {
                options.connections = &[1, 64];
                options.measured = Duration::from_secs(2);
                options.soak_messages = 0;
            }
            "--seconds" => options.measured = Duration::from_secs(number(flag, value()?)?.max(1)),
            "--soak" => options.soak_messages = number(flag, value()?)?,
            "--switchboard" => options.switchboard = PathBuf::from(value()?),
            _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
        }
    }
    // The server has another working folder, so a relative path would not work.
    options.switchboard = std::path::absolute(&options.switchboard)?;
    Ok(options)
}

/// The binary in the folder of this one.
pub(crate) fn default_binary() -> Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name("switchboard"))
}

pub(crate) fn number(flag: &str, value: &str) -> Result<u64> {
    value
        .parse()
        .with_context(|| format!("{flag} takes a whole number, not {value:?}"))
}

/// Parses the name of a database.
pub(crate) fn backend(value: &str) -> Result<Backend> {
    match value {
        "sqlite" => Ok(Backend::Sqlite),
        "postgres" => Ok(Backend::Postgres),
        _ => bail!("--only takes sqlite or postgres, not {value:?}"),
    }
}

/// The databases to measure.
pub(crate) fn backends(only: Option<Backend>) -> impl Iterator<Item = Backend> {
    let all = Backend::ALL.into_iter();
    all.filter(move |backend| only.is_none_or(|only| only == *backend))
}

/// The settings of benchmarks that measure each database for some seconds.
#[derive(Debug, PartialEq)]
pub(crate) struct Timed {
    pub(crate) measured: Duration,
    only: Option<Backend>,
    pub(crate) switchboard: PathBuf,
}

impl Timed {
    /// Further flags go to `set`, which says whether it knows them.
    pub(crate) fn parse(
        arguments: &[String],
        mut set: impl FnMut(&str, &str) -> Result<bool>,
    ) -> Result<Self> {
        let mut timed = Self {
            measured: Duration::from_secs(15),
            only: None,
            switchboard: default_binary()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            if flag == "--quick" {
                timed.measured = Duration::from_secs(2);
                continue;
            }
            let Some(value) = rest.next() else {
                bail!("{flag} is unknown or needs a value\n{}", crate::USAGE);
            };
            match flag.as_str() {
                "--seconds" => timed.measured = Duration::from_secs(number(flag, value)?.max(1)),
                "--only" => timed.only = Some(backend(value)?),
                // The server has another working folder, so a relative path would not work.
                "--switchboard" => timed.switchboard = std::path::absolute(value)?,
                _ if set(flag, value)? => {}
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        Ok(timed)
    }

    pub(crate) fn backends(&self) -> impl Iterator<Item = Backend> {
        backends(self.only)
    }
}

#[cfg(test)]
mod tests {
    use super::{Timed, parse};
    use std::time::Duration;
    use testkit::Backend;

    fn arguments(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_change_the_defaults() {
        let default = parse(&[]).expect("all have defaults");
        assert_eq!(
            (default.connections.len(), default.soak_messages),
            (4, 1_000_000)
        );
        let quick = parse(&arguments("--quick --soak 5 --seconds 3")).expect("valid");
        assert_eq!((quick.connections, quick.soak_messages), (&[1, 64][..], 5));
        assert_eq!(quick.measured, Duration::from_secs(3));
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [
            ("--fast", "--fast"),
            ("--soak", "--soak"),
            ("--seconds x", "\"x\""),
        ] {
            let error = parse(&arguments(line)).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn timed_benchmarks_share_flags() {
        let parse = |line: &str| Timed::parse(&arguments(line), |flag, _| Ok(flag == "--own"));
        let default = parse("").expect("all have defaults");
        assert_eq!(default.backends().collect::<Vec<_>>(), Backend::ALL);
        let quick = parse("--own 1 --quick --only sqlite").expect("valid");
        assert_eq!(quick.measured, Duration::from_secs(2));
        assert_eq!(quick.backends().collect::<Vec<_>>(), [Backend::Sqlite]);
        for (line, named) in [
            ("--fast", "--fast"),
            ("--fast 1", "--fast"),
            ("--seconds", "--seconds"),
            ("--seconds x", "\"x\""),
            ("--only mysql", "\"mysql\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
