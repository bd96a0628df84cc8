//! The command line of `bench cost`.

use crate::options::{backend, default_binary, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use testkit::Backend;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    /// Of each turn.
    pub(super) messages: u64,
    pub(super) turns: u64,
    pub(super) only: Option<Backend>,
    /// Whether to print the statements that took the most time.
    pub(super) statements: bool,
    pub(super) switchboard: PathBuf,
    /// The build to compare with.
    pub(super) other: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            messages: 30_000,
            turns: 5,
            only: None,
            statements: false,
            switchboard: default_binary()?,
            other: None,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--quick" => (options.messages, options.turns) = (5_000, 1),
                "--statements" => options.statements = true,
                _ => match rest.next() {
                    Some(value) => options.set(flag, value)?,
                    None => bail!("{flag} is unknown or needs a value\n{}", crate::USAGE),
                },
            }
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<()> {
        match flag {
            "--messages" => self.messages = number(flag, value)?.max(100),
            "--turns" => self.turns = number(flag, value)?.max(1),
            "--only" => self.only = Some(backend(value)?),
            // The servers have other working folders, so a relative path would not work.
            "--switchboard" => self.switchboard = std::path::absolute(value)?,
            "--with" => self.other = Some(std::path::absolute(value)?),
            _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
        }
        Ok(())
    }

    pub(super) fn measures(&self, backend: Backend) -> bool {
        self.only.is_none_or(|only| only == backend)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use testkit::Backend;

    fn parse(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        let options = parse("--quick --turns 3 --with /b --only sqlite").expect("valid");
        assert_eq!((options.messages, options.turns), (5_000, 3));
        assert_eq!(options.other.as_deref(), Some("/b".as_ref()));
        assert!(options.measures(Backend::Sqlite) && !options.measures(Backend::Postgres));
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [("--fast", "--fast"), ("--turns x", "\"x\"")] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
