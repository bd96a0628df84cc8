//! `bench compare`: two builds in turns. The speed of a machine drifts by more than the difference of interest. So both
//! run at the same time, are measured in short turns, and the medians are compared.

use crate::goals::hundredths;
use crate::{measure, options};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::time::Duration;
use testkit::load::{self, Load, Requests, RunLimit};
use testkit::{Backend, Server};

const CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_millis(500);

/// The settings of a run.
pub(crate) struct Options {
    before: PathBuf,
    after: PathBuf,
    rounds: u64,
    turn: Duration,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut before = None;
        let mut found = Self {
            before: PathBuf::new(),
            after: options::default_binary()?,
            rounds: 12,
            turn: Duration::from_secs(2),
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--with" => before = Some(std::path::absolute(value()?)?),
                "--switchboard" => found.after = std::path::absolute(value()?)?,
                "--rounds" => found.rounds = options::number(flag, value()?)?.max(1),
                "--seconds" => {
                    found.turn = Duration::from_secs(options::number(flag, value()?)?.max(1));
                }
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        found.before =
            before.with_context(|| format!("--with PATH is missing\n{}", crate::USAGE))?;
        Ok(found)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "`POST /sms` at {CONNECTIONS} connections, requests/s, median of {} turns each:\n",
        options.rounds
    );
    println!("| database | before | after | after of before |\n|---|--:|--:|--:|");
    for backend in Backend::ALL {
        let (before, after) = compare(options, backend)?;
        let percent = after * 100 / before.max(1);
        let name = measure::Subject::Switchboard(backend).name();
        println!("| {name} | {before} | {after} | {} |", hundredths(percent));
    }
    Ok(())
}

/// The median rates of both builds.
fn compare(options: &Options, backend: Backend) -> Result<(u64, u64)> {
    let before = measure::switchboard(&options.before, backend)?;
    let after = measure::switchboard(&options.after, backend)?;
    let (mut rates_before, mut rates_after) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let rates = (
            measure_turn(options, &before)?,
            measure_turn(options, &after)?,
        );
        eprintln!("{backend:?}, round {round}: {} and {}", rates.0, rates.1);
        rates_before.push(rates.0);
        rates_after.push(rates.1);
    }
    Ok((median(rates_before), median(rates_after)))
}

fn measure_turn(options: &Options, (server, request): &(Server, Vec<u8>)) -> Result<u64> {
    let load = Load {
        connections: CONNECTIONS,
        warm_up: WARM_UP,
        limit: RunLimit::Elapsed(options.turn),
        requests: Requests::Fixed(request.clone()),
        on_answer: None,
    };
    let report = load::run(server.addr(), load);
    ensure!(
        report.is_clean(CONNECTIONS),
        "not all answers were 200: {report:?}"
    );
    Ok(report.rate())
}

fn median(mut rates: Vec<u64>) -> u64 {
    rates.sort_unstable();
    rates[rates.len() / 2]
}
