//! The command line of `bench growth`.

use super::case::{Case, Size};
use crate::options::{backend, backends, default_binary, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use testkit::Backend;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    /// Of each turn.
    pub(super) messages: u64,
    pub(super) turns: u64,
    only: Option<Backend>,
    pub(super) sizes: Vec<Size>,
    /// Whether to print the statements that took the most time.
    pub(super) statements: bool,
    pub(super) switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            messages: 30_000,
            turns: 5,
            only: None,
            sizes: Vec::new(),
            statements: false,
            switchboard: default_binary()?,
        };
        let mut cases = Case::ALL.to_vec();
        let mut size: fn(Case) -> Size = Case::full;
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "--quick" => {
                    (options.messages, options.turns) = (2_000, 1);
                    size = Case::quick;
                }
                "--statements" => options.statements = true,
                _ => match (flag.as_str(), rest.next()) {
                    ("--case", Some(names)) => {
                        cases = names.split(',').map(Case::parse).collect::<Result<_>>()?;
                    }
                    (_, Some(value)) => options.set(flag, value)?,
                    (_, None) => bail!("{flag} is unknown or needs a value\n{}", crate::USAGE),
                },
            }
        }
        options.sizes = cases.into_iter().map(size).collect();
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<()> {
        match flag {
            "--messages" => self.messages = number(flag, value)?.max(100),
            "--turns" => self.turns = number(flag, value)?.max(1),
            "--only" => self.only = Some(backend(value)?),
            // The servers have other working folders, so a relative path would not work.
            "--switchboard" => self.switchboard = std::path::absolute(value)?,
            _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
        }
        Ok(())
    }

    pub(super) fn backends(&self) -> impl Iterator<Item = Backend> {
        backends(self.only)
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Options};
    use testkit::Backend;

    fn parse(line: &str) -> anyhow::Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        let default = parse("").expect("all have defaults");
        assert_eq!(default.sizes, Case::ALL.map(Case::full));
        assert_eq!(default.backends().count(), 2);
        let options = parse("--case routes,history --quick --turns 3 --only sqlite --statements");
        let options = options.expect("valid");
        assert_eq!(
            options.sizes,
            [Case::Routes, Case::History].map(Case::quick)
        );
        assert_eq!((options.messages, options.turns), (2_000, 3));
        assert!(options.statements);
        assert_eq!(options.backends().collect::<Vec<_>>(), [Backend::Sqlite]);
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [
            ("--fast", "--fast"),
            ("--turns x", "\"x\""),
            ("--case all", "\"all\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
