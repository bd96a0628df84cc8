//! `bench smpp wire`: how many messages a second one SMPP session sends, compared with a plain loop of writes and
//! reads.

mod plain;
mod report;
mod session;
mod smsc;

pub(crate) use session::{IgnoreIncoming, Progress, send};

use crate::options;
use ::smpp::{Address, ShortMessage};
use anyhow::{Context, Result, bail};
use std::time::Duration;

pub(crate) use smsc::Smsc;

/// The number of messages in flight, and of tasks that send them.
const WINDOW: usize = 100;
const WARM_UP: Duration = Duration::from_secs(1);

/// The settings of a run.
pub(crate) struct Options {
    seconds: u64,
    rounds: u64,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut found = Self {
            seconds: 5,
            rounds: 3,
        };
        let mut rest = arguments.iter();
        if rest.next().map(String::as_str) != Some("wire") {
            bail!("{}", crate::USAGE);
        }
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => (found.seconds, found.rounds) = (1, 1),
                "--seconds" => found.seconds = options::number(flag, value()?)?.max(1),
                "--rounds" => found.rounds = options::number(flag, value()?)?.max(1),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        Ok(found)
    }

    fn measured(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Messages a second in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    plain: u64,
    one_worker: u64,
    all_workers: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let rounds = (1..=options.rounds)
        .map(|number| {
            let round = Round {
                plain: plain::measure(options)?,
                one_worker: session::measure(options, 1)?,
                all_workers: session::measure(options, cores())?,
            };
            eprintln!("round {number}: {round:?}");
            Ok(round)
        })
        .collect::<Result<Vec<_>>>()?;
    print!("{}", report::markdown(options, &rounds));
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A typical message.
fn message() -> ShortMessage {
    ShortMessage {
        source: Address::new(5, 0, "Example"),
        destination: Address::new(1, 1, "31612345678"),
        registered_delivery: 1,
        short_message: "Your code is 123456. It is valid for ten minutes; tell it to nobody."
            .into(),
        ..ShortMessage::default()
    }
}

/// Messages a second.
pub(crate) fn rate(messages: u64, time: Duration) -> u64 {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    messages.saturating_mul(1_000_000) / micros
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn flags_change_the_defaults_and_wrong_ones_are_named() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&arguments)
        };
        for (line, expected) in [
            ("wire", (5, 3)),
            ("wire --quick", (1, 1)),
            ("wire --seconds 9 --rounds 2", (9, 2)),
        ] {
            let found = parse(line).expect(line);
            assert_eq!((found.seconds, found.rounds), expected, "{line}");
        }
        for (line, named) in [
            ("", "usage"),
            ("air", "usage"),
            ("wire --fast", "--fast"),
            ("wire --seconds x", "\"x\""),
        ] {
            let error = parse(line).err().expect(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
