//! `bench receivers`: how much dead and slow receivers with a backlog slow down a healthy one and load the database.

use super::Options;
use super::flow::{self, Flow, FlowSettings};
use super::target::Target;
use crate::accept::check_prerequisites;
use crate::goals::Goal;
use crate::options::number;
use crate::report::{milliseconds, write_goals};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TestDatabase};
use tokio::runtime::Runtime;

/// The number of receivers that refuse connections, that never answer, and that answer late.
const DEAD: usize = 10;
const HANGING: usize = 5;
const SLOW: usize = 5;
const SLOW_DELAY: Duration = Duration::from_secs(4);
/// The number of messages in flight to the healthy receiver.
const OUTSTANDING: usize = 16;
/// How long the transactions of an idle service are counted.
const IDLE: Duration = Duration::from_secs(20);
/// How long to wait until the due callbacks are in the queues of their receivers.
const SORTING_TIMEOUT: Duration = Duration::from_mins(20);
const MAX_P95_MS: u64 = 1_000;
/// A receiver with a long round trip: its delay, the number of its reports, how many of them are not measured because
/// the service is still raising its concurrency, and the minimum rate.
const DISTANT_DELAY: Duration = Duration::from_millis(100);
const DISTANT_REPORTS: u64 = 20_000;
const DISTANT_WARM_UP_REPORTS: usize = 5_000;
const DISTANT_MIN_RATE: u64 = 1_000;
/// An idle service sends a few queries a second. Callbacks to slow receivers cause some more.
const MAX_EXTRA_PER_SECOND: u64 = 40;

const DUE: &str = "SELECT count(*) FROM (SELECT 1 FROM callback_queue
    WHERE owner = 0 AND due_us <= extract(epoch FROM clock_timestamp()) * 1000000 LIMIT 2000) AS due";
const WAITING: &str = "SELECT count(*) FROM callback_queue";
const COMMITS: &str = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";

/// The settings of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct ReceiverOptions {
    /// The number of waiting reports for each receiver.
    reports: u64,
    flow: Options,
}

impl ReceiverOptions {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut reports = 100_000;
        let mut rest = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--reports" => {
                    let value = arguments.next().context("--reports needs a value")?;
                    reports = number(argument, value)?.max(1);
                }
                "--quick" => {
                    reports = 2_000;
                    rest.extend(["--seconds".to_owned(), "8".to_owned()]);
                }
                _ => rest.push(argument.clone()),
            }
        }
        let flow = Options::parse(&rest)?;
        Ok(Self { reports, flow })
    }
}

/// The state of the healthy receiver and of the database in one phase.
struct Phase {
    name: &'static str,
    flow: Flow,
    /// Transactions a second while no messages are sent.
    idle: Option<u64>,
    waiting: u64,
}

/// Measures the healthy receiver alone, while the backlog is sorted into queues, and with the backlog.
pub(crate) fn run(options: &ReceiverOptions) -> Result<()> {
    check_prerequisites(&options.flow.switchboard)?;
    let target = Target::start(&options.flow, Backend::Postgres)?;
    let database = target
        .server
        .database()
        .context("the server has no PostgreSQL database")?;
    let probe = DatabaseProbe::connect(database)?;
    target.warm_up(&options.flow)?;
    let half = options.flow.sustained / 2;
    let settings = |duration| FlowSettings::new(duration, OUTSTANDING);
    let alone = Phase {
        name: "alone",
        idle: Some(probe.idle()?),
        flow: flow::run(&target, &settings(half))?,
        waiting: probe.number(WAITING)?,
    };
    let distant_rate = measure_distant(database)?;
    let faulty = FaultyReceivers::start()?;
    let started = Instant::now();
    for url in faulty.urls() {
        fill(database, &url, options.reports)?;
    }
    eprintln!("  filled, {:.0} s", started.elapsed().as_secs_f64());
    let mut phases = vec![alone];
    phases.push(Phase {
        name: "while the backlog is sorted",
        flow: flow::run(&target, &settings(half))?,
        idle: None,
        waiting: probe.number(WAITING)?,
    });
    probe.wait_until_sorted(started)?;
    for name in ["with the backlog", "with the backlog, second half"] {
        phases.push(Phase {
            name,
            flow: flow::run(&target, &settings(half))?,
            idle: Some(probe.idle()?),
            waiting: probe.number(WAITING)?,
        });
    }
    print!("{}", table(options.reports, &phases, distant_rate));
    Ok(())
}

/// Reports a second to a receiver that answers with a delay.
fn measure_distant(database: &TestDatabase) -> Result<u64> {
    let receiver = Receiver::builder().script(|_| Reply::ok().after(DISTANT_DELAY));
    let receiver = receiver.try_start()?;
    fill(database, &receiver.url("/dlr"), DISTANT_REPORTS)?;
    let all = usize::try_from(DISTANT_REPORTS)?;
    if !receiver.wait_for(all, SORTING_TIMEOUT) {
        bail!(
            "a receiver that takes 100 ms got {} of {all} reports",
            receiver.count()
        );
    }
    let mut at: Vec<Instant> = receiver.received().iter().map(|report| report.at).collect();
    at.sort_unstable();
    let took = at[all - 1].saturating_duration_since(at[DISTANT_WARM_UP_REPORTS]);
    let reports = u128::try_from(all - DISTANT_WARM_UP_REPORTS)?;
    let rate = u64::try_from(reports * 1000 / took.as_millis().max(1))?;
    eprintln!("  {rate} reports a second to a receiver that takes 100 ms");
    Ok(rate)
}

/// Receivers that are dead, never answer or are slow.
struct FaultyReceivers {
    dead: Vec<u16>,
    served: Vec<Receiver>,
}

impl FaultyReceivers {
    fn start() -> Result<Self> {
        let free_port = |_| Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let dead: Result<Vec<u16>> = (0..DEAD).map(free_port).collect();
        let mut served = Vec::new();
        for _ in 0..HANGING {
            let receiver = Receiver::builder().on_request(|_, _| {});
            served.push(receiver.script(|_| Reply::hang()).try_start()?);
        }
        for _ in 0..SLOW {
            let receiver = Receiver::builder().on_request(|_, _| {});
            let script = receiver.script(|_| Reply::ok().after(SLOW_DELAY));
            served.push(script.try_start()?);
        }
        Ok(Self {
            dead: dead?,
            served,
        })
    }

    fn urls(&self) -> Vec<String> {
        let dead = self.dead.iter();
        let dead = dead.map(|port| format!("http://127.0.0.1:{port}/dlr"));
        let served = self.served.iter().map(|receiver| receiver.url("/dlr"));
        dead.chain(served).collect()
    }
}

/// Creates reports that are due at once, in the form of an older version of the service.
fn fill(database: &TestDatabase, url: &str, reports: u64) -> Result<()> {
    let statement = format!(
        "SET synchronous_commit = off;
        WITH created AS (
            INSERT INTO callback (account_id, message_id, kind, url, payload, created_us, due_us, state, tries)
            SELECT (SELECT max(id) FROM account), n, 0, '{url}', '{{\"id\":\"1\",\"status\":1,\"error\":0}}',
                now_us, now_us, 0, 0
            FROM generate_series(1, {reports}) AS n,
                (SELECT CAST(extract(epoch FROM now()) * 1000000 AS BIGINT)) AS clock (now_us)
            RETURNING id, message_id, due_us
        )
        INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
        SELECT 0, due_us, id, 0, message_id FROM created"
    );
    database.execute_blocking(&statement)?;
    Ok(())
}

/// Reads numbers from the database of the service.
struct DatabaseProbe {
    runtime: Runtime,
    client: tokio_postgres::Client,
}

impl DatabaseProbe {
    fn connect(database: &TestDatabase) -> Result<Self> {
        let runtime = Runtime::new()?;
        let connecting = tokio_postgres::connect(database.url(), tokio_postgres::NoTls);
        let (client, connection) = runtime.block_on(connecting)?;
        runtime.spawn(async {
            if let Err(error) = connection.await {
                eprintln!("the connection of the probe ended: {error}");
            }
        });
        Ok(Self { runtime, client })
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let row = self.runtime.block_on(self.client.query_one(sql, &[]))?;
        Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
    }

    /// Transactions a second while nothing is sent.
    fn idle(&self) -> Result<u64> {
        let before = self.number(COMMITS)?;
        thread::sleep(IDLE);
        let after = self.number(COMMITS)?;
        let per_second = (after - before) / IDLE.as_secs();
        eprintln!("  {per_second} transactions a second while nothing is sent");
        Ok(per_second)
    }

    /// Waits until the due callbacks are in the queues of their receivers.
    fn wait_until_sorted(&self, started: Instant) -> Result<()> {
        while self.number(DUE)? >= 1_000 {
            if started.elapsed() > SORTING_TIMEOUT {
                bail!("the backlog was not sorted in time");
            }
            thread::sleep(Duration::from_millis(200));
        }
        eprintln!("  sorted, {:.0} s", started.elapsed().as_secs_f64());
        Ok(())
    }
}

fn table(reports: u64, phases: &[Phase], distant_rate: u64) -> String {
    let mut text = format!(
        "\nOne healthy receiver and {DEAD} that refuse connections, {HANGING} that never answer and {SLOW} that answer \
         after {} s, each with {reports} reports; {OUTSTANDING} messages in flight to the healthy one:\n\n\
         | phase | reports/s | p50 ms | p95 ms | worst ms | idle transactions/s | reports that wait |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
        SLOW_DELAY.as_secs()
    );
    for phase in phases {
        let delay = &phase.flow.totals.delay;
        let idle = phase.idle.map_or("–".to_owned(), |idle| idle.to_string());
        // Writing to a string cannot fail.
        let _infallible = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {idle} | {} |",
            phase.name,
            phase.flow.delivered_rate(),
            milliseconds(delay.percentile(50)),
            milliseconds(delay.percentile(95)),
            milliseconds(delay.max()),
            phase.waiting,
        );
    }
    let _infallible = write_goals(&mut text, &goals(phases, distant_rate));
    text
}

fn goals(phases: &[Phase], distant_rate: u64) -> [Goal; 4] {
    let delays = phases.iter().map(|phase| &phase.flow.totals.delay);
    let worst = delays.map(|delay| delay.percentile(95)).max();
    let worst = worst.unwrap_or_default();
    let idle = phases.iter().filter_map(|phase| phase.idle);
    let first = idle.clone().next().unwrap_or_default();
    let most = idle.max().unwrap_or_default();
    let unclean = phases.iter().filter(|phase| !phase.flow.is_clean());
    let unclean = unclean.count();
    [
        Goal::new(
            "the healthy receiver's p95 below 1 s in every phase",
            Some((
                format!("{} ms", milliseconds(worst)),
                worst < Duration::from_millis(MAX_P95_MS),
            )),
        ),
        Goal::new(
            "at most 40 idle transactions a second more than without a backlog",
            Some((
                format!("{first}/s, then at most {most}/s"),
                most <= first + MAX_EXTRA_PER_SECOND,
            )),
        ),
        Goal::new(
            "a receiver that takes 100 ms gets at least 1,000 reports a second",
            Some((
                format!("{distant_rate}/s"),
                distant_rate >= DISTANT_MIN_RATE,
            )),
        ),
        Goal::new(
            "no errors or lost callbacks",
            Some((unclean.to_string(), unclean == 0)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::ReceiverOptions;

    fn parse(line: &str) -> anyhow::Result<ReceiverOptions> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        ReceiverOptions::parse(&arguments)
    }

    #[test]
    fn flags_change_the_defaults() {
        assert_eq!(parse("").expect("all have defaults").reports, 100_000);
        assert_eq!(parse("--reports 7").expect("valid").reports, 7);
        assert_eq!(parse("--quick").expect("valid").reports, 2_000);
        assert!(parse("--reports").is_err());
        assert!(parse("--fast").is_err());
    }
}
