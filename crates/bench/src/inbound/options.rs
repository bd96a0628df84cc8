//! The command line of `bench inbound`.

use crate::options::{Timed, number};
use anyhow::Result;
use std::time::Duration;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) timed: Timed,
    pub(crate) warm_up: Duration,
    pub(crate) turns: u64,
    /// The sessions that the service has with the carrier.
    pub(crate) sessions: usize,
    /// The maximum number of unanswered texts on each session.
    pub(crate) window: usize,
    /// The maximum number of texts that are delivered and not yet called back.
    pub(crate) outstanding: usize,
    /// Old messages of another account in the database.
    pub(crate) rows: u64,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let (mut turns, mut rows) = (1, 0);
        let (mut sessions, mut window, mut outstanding) = (2, 50, 5_000);
        let timed = Timed::parse(arguments, |flag, value| {
            let count = || anyhow::Ok(usize::try_from(number(flag, value)?)?.max(1));
            match flag {
                "--turns" => turns = number(flag, value)?.max(1),
                "--sessions" => sessions = count()?,
                "--window" => window = count()?,
                "--outstanding" => outstanding = count()?,
                "--rows" => rows = number(flag, value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            timed,
            warm_up: Duration::from_secs(2),
            turns,
            sessions,
            window,
            outstanding,
            rows,
        })
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
        let default = parse("").expect("all have defaults");
        assert_eq!((default.sessions, default.window), (2, 50));
        let given = parse("--quick --sessions 4 --window 0 --outstanding 9 --turns 3 --rows 7");
        let given = given.expect("valid");
        assert_eq!((given.sessions, given.window), (4, 1), "at least one");
        assert_eq!((given.outstanding, given.turns), (9, 3));
        assert_eq!((default.rows, given.rows), (0, 7));
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, named) in [("--fast 1", "--fast"), ("--window x", "\"x\"")] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
