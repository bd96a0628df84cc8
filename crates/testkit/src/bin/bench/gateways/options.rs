//! The command line of `bench gateways`.

use crate::options::{neighbour, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// What a run measures, and for how long.
pub(crate) struct Options {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    pub(crate) turns: u64,
    /// Parts without an answer, in each gateway.
    pub(crate) window: u64,
    /// Accepted and not yet called back, at most.
    pub(crate) outstanding: usize,
    /// After which the SMSC reports.
    pub(crate) delay_ms: u64,
    pub(crate) switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            warm_up: Duration::from_secs(2),
            measured: Duration::from_secs(15),
            turns: 2,
            window: 500,
            outstanding: 5_000,
            delay_ms: 50,
            switchboard: neighbour()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match (flag.as_str(), rest.next()) {
                ("--seconds", Some(value)) => {
                    options.measured = Duration::from_secs(number(flag, value)?.max(1));
                }
                ("--turns", Some(value)) => options.turns = number(flag, value)?.max(1),
                ("--window", Some(value)) => options.window = number(flag, value)?.max(1),
                ("--switchboard", Some(value)) => options.switchboard = PathBuf::from(value),
                _ => bail!("{flag} is unknown or needs a value\n{}", crate::USAGE),
            }
        }
        // The server runs in a folder of its own, where a relative path would lead nowhere.
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }
}
