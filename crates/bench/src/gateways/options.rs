//! The command line of `bench smpp gateways`.

use crate::options::{default_binary, number};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a run.
pub(crate) struct Options {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    pub(crate) turns: u64,
    /// The maximum number of parts in flight in each gateway.
    pub(crate) window: u64,
    /// The maximum number of messages that are accepted and not yet called back.
    pub(crate) outstanding: usize,
    /// The delay until the SMSC sends a receipt.
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
            switchboard: default_binary()?,
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
        // The server has another working folder, so a relative path would not work.
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }
}
