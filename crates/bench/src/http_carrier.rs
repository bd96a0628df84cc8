//! `bench http-carrier`: how many messages a second go from `POST /sms` to a provider by one HTTP carrier.

use crate::accept::check_prerequisites;
use crate::goals::Goal;
use crate::measure::{self, Subject};
use crate::options::{Timed, number};
use crate::report::{machine, median, write_goals};
use anyhow::{Result, ensure};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{self, InFlightLimit, Load, Report, Requests, RunLimit};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, Server};

const CONNECTIONS: usize = 64;
/// The maximum number of messages that are accepted and not yet with the provider.
const OUTSTANDING: usize = 5_000;
const WARM_UP: Duration = Duration::from_secs(2);
/// How long to wait for the messages that are still on their way at the end.
const REST: Duration = Duration::from_mins(1);
const MIN_RATE: u64 = 3_000;
const BODY: &str = r#"{"to":"+37120000001","from":"Switchboard","message":"Your code is 123456. It is valid for 10 minutes."}"#;

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    timed: Timed,
    turns: u64,
    window: u64,
    /// How long the provider takes for each request.
    delay: Duration,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let (mut turns, mut window, mut delay) = (1, 200, Duration::from_millis(20));
        let timed = Timed::parse(arguments, |flag, value| {
            match flag {
                "--turns" => turns = number(flag, value)?.max(1),
                "--window" => window = number(flag, value)?.max(1),
                "--delay-ms" => delay = Duration::from_millis(number(flag, value)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            timed,
            turns,
            window,
            delay,
        })
    }
}

/// The result of one turn.
struct Row {
    backend: Backend,
    accepted: u64,
    requests: u64,
    /// Requests a second, from the first to the last.
    rate: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.timed.switchboard)?;
    let mut rows = Vec::new();
    for turn in 1..=options.turns {
        for backend in options.timed.backends() {
            let row = measure(options, backend)?;
            let name = Subject::Switchboard(backend).name();
            eprintln!(
                "turn {turn}: {name}: {}/s, {} accepted, {} requests",
                row.rate, row.accepted, row.requests
            );
            rows.push(row);
        }
    }
    print!("{}", markdown(options, &rows));
    Ok(())
}

fn measure(options: &Options, backend: Backend) -> Result<Row> {
    let in_flight = Arc::new(InFlightLimit::new(OUTSTANDING));
    let delay = options.delay;
    let provider = {
        let in_flight = Arc::clone(&in_flight);
        Receiver::builder()
            .script(move |_| {
                in_flight.release();
                Reply::answer(200, "{}").after(delay)
            })
            .try_start()?
    };
    let server = Server::builder(&options.timed.switchboard, backend)
        .config(config(&provider.url("/send"), options.window))
        .try_start()?;
    let token = measure::create_account(&server, measure::ACCOUNT)?;
    let request = measure::request(server.addr(), &token, BODY);
    let send = |time| {
        let load = Load {
            connections: CONNECTIONS,
            warm_up: Duration::ZERO,
            limit: RunLimit::Elapsed(time),
            requests: Requests::Fixed(request.clone()),
            on_answer: None,
        };
        let report = load::run_limited(server.addr(), load, Arc::clone(&in_flight));
        ensure!(report.is_clean(CONNECTIONS), "a request was not answered");
        Ok::<Report, anyhow::Error>(report)
    };
    let before = usize::try_from(send(WARM_UP)?.answers())?;
    ensure!(provider.wait_for(before, REST), "messages are missing");
    let accepted = send(options.timed.measured)?.answers();
    let all = before + usize::try_from(accepted)?;
    if !provider.wait_for(all, REST) {
        eprintln!(
            "  {} of {all} messages are with the provider",
            provider.count()
        );
    }
    let requests = provider.received();
    let mut at: Vec<Instant> = requests.iter().map(|request| request.at).collect();
    at.sort_unstable();
    Ok(Row {
        backend,
        accepted,
        requests: u64::try_from(at.len() - before)?,
        rate: rate(&at[before..]),
    })
}

/// Requests a second at sorted times.
fn rate(at: &[Instant]) -> u64 {
    let (Some(first), Some(last)) = (at.first(), at.last()) else {
        return 0;
    };
    let millis = last.duration_since(*first).as_millis().max(1);
    u64::try_from(at.len() as u128 * 1_000 / millis).unwrap_or(u64::MAX)
}

fn config(url: &str, window: u64) -> String {
    format!(
        "[[carrier]]\nname = 'provider'\nkind = 'http'\nwindow = {window}\n[carrier.request]\nurl = '{url}'\n\
         json = {{ to = '{{{{ to }}}}', from = '{{{{ from }}}}', text = '{{{{ text }}}}', ref = '{{{{ id }}}}' }}\n"
    )
}

fn markdown(options: &Options, rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_all(&mut text, options, rows);
    text
}

fn write_all(text: &mut String, options: &Options, rows: &[Row]) -> std::fmt::Result {
    writeln!(
        text,
        "Machine: {}. Clients, server, database and provider share it. One HTTP carrier, window {}, {} ms for each \
         request; {CONNECTIONS} connections to `POST /sms`, at most {OUTSTANDING} messages accepted and not yet sent; {} s \
         after a warm-up of {} s, until every message is with the provider.\n",
        machine(),
        options.window,
        options.delay.as_millis(),
        options.timed.measured.as_secs(),
        WARM_UP.as_secs(),
    )?;
    writeln!(
        text,
        "| server | messages | requests | messages/s |\n|---|--:|--:|--:|"
    )?;
    for row in rows {
        let name = Subject::Switchboard(row.backend).name();
        let (accepted, requests, rate) = (row.accepted, row.requests, row.rate);
        writeln!(text, "| {name} | {accepted} | {requests} | {rate} |")?;
    }
    write_goals(text, &goals(rows))
}

fn goals(rows: &[Row]) -> Vec<Goal> {
    let is_exact = rows.iter().all(|row| row.requests == row.accepted);
    let shown = if is_exact { "all" } else { "see the table" };
    let of = |backend: Backend| {
        let mut rates = rows.iter().filter(move |row| row.backend == backend);
        let rates: Vec<u64> = rates.by_ref().map(|row| row.rate).collect();
        let rate = (!rates.is_empty()).then(|| median(rates.into_iter()));
        let name = Subject::Switchboard(backend).name();
        Goal::new(
            format!("{name}: at least {MIN_RATE} messages a second"),
            rate.map(|rate| (format!("{rate}/s"), rate >= MIN_RATE)),
        )
    };
    let exact = Goal::new(
        "every message is sent once",
        Some((shown.to_owned(), is_exact)),
    );
    let rates = Backend::ALL.map(of);
    rates.into_iter().chain([exact]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Options, Row, goals};
    use std::time::Duration;
    use testkit::Backend;

    #[test]
    fn flags_change_the_defaults_and_wrong_ones_are_named() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&arguments)
        };
        let default = parse("").expect("all have defaults");
        assert_eq!(
            (default.window, default.delay),
            (200, Duration::from_millis(20))
        );
        let given = parse("--quick --window 0 --delay-ms 5").expect("valid");
        assert_eq!((given.window, given.delay), (1, Duration::from_millis(5)));
        for (line, named) in [("--fast 1", "--fast"), ("--window x", "\"x\"")] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn a_missing_or_repeated_message_misses_the_goal() {
        let row = |requests| Row {
            backend: Backend::Sqlite,
            accepted: 10,
            requests,
            rate: 3_000,
        };
        for (requests, expected) in [(10, true), (9, false), (11, false)] {
            let reached: Vec<_> = goals(&[row(requests)])
                .into_iter()
                .map(|goal| goal.reached)
                .collect();
            assert_eq!(reached, [Some(true), None, Some(expected)]);
        }
    }
}
