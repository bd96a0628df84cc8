//! The command line of `bench inbound`.

use crate::deliver::backend;
use crate::options::{default_binary, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;
use testkit::Backend;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    pub(crate) turns: u64,
    /// The sessions that the service has with the carrier.
    pub(crate) sessions: usize,
    /// The maximum number of unanswered texts on each session.
    pub(crate) window: usize,
    /// The maximum number of texts that are delivered and not yet called back.
    pub(crate) outstanding: usize,
    /// Old messages of another account in the database.
    pub(crate) rows: u64,
    pub(crate) only: Option<Backend>,
    pub(crate) switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            warm_up: Duration::from_secs(2),
            measured: Duration::from_secs(15),
            turns: 1,
            sessions: 2,
            window: 50,
            outstanding: 5_000,
            rows: 0,
            only: None,
            switchboard: default_binary()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            if flag == "--quick" {
                options.measured = Duration::from_secs(2);
                continue;
            }
            match rest.next() {
                Some(value) => options.set(flag, value)?,
                None => bail!("{flag} is unknown or needs a value\n{}", crate::USAGE),
            }
        }
        // The server has another working folder, so a relative path would not work.
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<()> {
        let count = || Ok::<usize, anyhow::Error>(usize::try_from(number(flag, value)?)?.max(1));
        match flag {
            "--seconds" => self.measured = Duration::from_secs(number(flag, value)?.max(1)),
            "--turns" => self.turns = number(flag, value)?.max(1),
            "--sessions" => self.sessions = count()?,
            "--window" => self.window = count()?,
            "--outstanding" => self.outstanding = count()?,
            "--rows" => self.rows = number(flag, value)?,
            "--only" => self.only = Some(backend(value)?),
            "--switchboard" => self.switchboard = PathBuf::from(value),
            _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
        }
        Ok(())
    }

    pub(crate) fn backends(&self) -> impl Iterator<Item = Backend> {
        let only = self.only;
        Backend::ALL
            .into_iter()
            .filter(move |backend| only.is_none_or(|only| only == *backend))
    }
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
        assert_eq!((default.sessions, default.window), (2, 50));
        assert_eq!(default.backends().collect::<Vec<_>>(), Backend::ALL);
        let given = parse("--quick --sessions 4 --window 0 --outstanding 9 --turns 3");
        let given = given.expect("valid");
        assert_eq!((given.sessions, given.window), (4, 1), "at least one");
        assert_eq!((given.outstanding, given.turns), (9, 3));
        assert_eq!(given.measured, Duration::from_secs(2));
        let sqlite = parse("--seconds 5 --only sqlite --rows 7").expect("valid");
        assert_eq!((default.rows, sqlite.rows), (0, 7));
        assert_eq!(sqlite.backends().collect::<Vec<_>>(), [Backend::Sqlite]);
        assert_eq!(sqlite.measured, Duration::from_secs(5));
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [
            ("--fast", "--fast"),
            ("--fast 1", "--fast"),
            ("--seconds", "--seconds"),
            ("--window x", "\"x\""),
            ("--only mysql", "\"mysql\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
