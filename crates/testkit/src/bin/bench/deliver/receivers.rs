//! `bench receivers`: what dead and slow receivers with a backlog cost a healthy one, and the database.

use super::Options;
use super::flow::{self, Flow, Plan};
use super::site::Site;
use crate::accept::check_site;
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

/// Receivers that refuse connections, that never answer, and that answer late.
const DEAD: usize = 10;
const HANGING: usize = 5;
const SLOW: usize = 5;
const SLOW_ANSWER: Duration = Duration::from_secs(4);
/// Messages under way to the healthy receiver.
const OUTSTANDING: usize = 16;
/// For how long the statements of an idle service are counted.
const IDLE: Duration = Duration::from_secs(20);
/// For how long it is waited until what is due has been sorted by receiver.
const SORTING: Duration = Duration::from_mins(20);
const P95_MS: u64 = 1_000;
/// A receiver with a long round trip: the time until it answers, the number of reports for it, how many of these are not
/// measured because the service is still raising its concurrency, and the rate to reach.
const FAR_ANSWER: Duration = Duration::from_millis(100);
const FAR_REPORTS: u64 = 20_000;
const FAR_LEARNING: usize = 5_000;
const FAR_PER_SECOND: u64 = 1_000;
/// An idle service asks a few times a second, whatever waits; those that slow receivers take are stored besides.
const MORE_PER_SECOND: u64 = 40;

const DUE: &str = "SELECT count(*) FROM (SELECT 1 FROM callback_queue
    WHERE owner = 0 AND due_us <= extract(epoch FROM clock_timestamp()) * 1000000 LIMIT 2000) AS due";
const WAITING: &str = "SELECT count(*) FROM callback_queue";
const COMMITS: &str = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";

/// How much waits, and how the flow is measured.
#[derive(Debug, PartialEq)]
pub(crate) struct ReceiverOptions {
    /// For each receiver.
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

/// The healthy receiver, and the database, at one time.
struct Phase {
    name: &'static str,
    flow: Flow,
    /// Transactions a second while nothing is sent to the healthy receiver.
    idle: Option<u64>,
    waiting: u64,
}

/// Measures the healthy receiver alone, while the backlog is sorted, and beside it.
pub(crate) fn run(options: &ReceiverOptions) -> Result<()> {
    check_site(&options.flow.switchboard)?;
    let site = Site::start(&options.flow, Backend::Postgres)?;
    let database = site.server.database().context("PostgreSQL has one")?;
    let look = Look::into(database)?;
    site.warm_up(&options.flow)?;
    let half = options.flow.sustained / 2;
    let plan = |duration| Plan::new(duration, OUTSTANDING);
    let alone = Phase {
        name: "alone",
        idle: Some(look.idle()?),
        flow: flow::run(&site, &plan(half))?,
        waiting: look.number(WAITING)?,
    };
    let far = measure_far(database)?;
    let others = Others::start()?;
    let begun = Instant::now();
    for url in others.urls() {
        fill(database, &url, options.reports)?;
    }
    eprintln!("  filled, {:.0} s", begun.elapsed().as_secs_f64());
    let mut phases = vec![alone];
    phases.push(Phase {
        name: "while the backlog is sorted",
        flow: flow::run(&site, &plan(half))?,
        idle: None,
        waiting: look.number(WAITING)?,
    });
    look.wait_until_sorted(begun)?;
    for name in ["beside the backlog", "beside the backlog, second half"] {
        phases.push(Phase {
            name,
            flow: flow::run(&site, &plan(half))?,
            idle: Some(look.idle()?),
            waiting: look.number(WAITING)?,
        });
    }
    print!("{}", table(options.reports, &phases, far));
    Ok(())
}

/// How many reports a second a receiver gets that takes a while for each.
fn measure_far(database: &TestDatabase) -> Result<u64> {
    let receiver = Receiver::builder().script(|_| Reply::ok().after(FAR_ANSWER));
    let receiver = receiver.try_start()?;
    fill(database, &receiver.url("/dlr"), FAR_REPORTS)?;
    let all = usize::try_from(FAR_REPORTS)?;
    if !receiver.wait_for(all, SORTING) {
        bail!(
            "a receiver that takes 100 ms got {} of {all} reports",
            receiver.count()
        );
    }
    let mut at: Vec<Instant> = receiver.received().iter().map(|report| report.at).collect();
    at.sort_unstable();
    let took = at[all - 1].saturating_duration_since(at[FAR_LEARNING]);
    let reports = u128::try_from(all - FAR_LEARNING)?;
    let rate = u64::try_from(reports * 1000 / took.as_millis().max(1))?;
    eprintln!("  {rate} reports a second to a receiver that takes 100 ms");
    Ok(rate)
}

/// The receivers that are dead or slow.
struct Others {
    dead: Vec<u16>,
    served: Vec<Receiver>,
}

impl Others {
    fn start() -> Result<Self> {
        let free = |_| Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let dead: Result<Vec<u16>> = (0..DEAD).map(free).collect();
        let mut served = Vec::new();
        for _ in 0..HANGING {
            let receiver = Receiver::builder().on_request(|_, _| {});
            served.push(receiver.script(|_| Reply::hang()).try_start()?);
        }
        for _ in 0..SLOW {
            let receiver = Receiver::builder().on_request(|_, _| {});
            let script = receiver.script(|_| Reply::ok().after(SLOW_ANSWER));
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

/// Reports that are due, all at once, as an older version of the program leaves them.
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

/// Reads numbers from the service's database.
struct Look {
    runtime: Runtime,
    client: tokio_postgres::Client,
}

impl Look {
    fn into(database: &TestDatabase) -> Result<Self> {
        let runtime = Runtime::new()?;
        let connecting = tokio_postgres::connect(database.url(), tokio_postgres::NoTls);
        let (client, connection) = runtime.block_on(connecting)?;
        runtime.spawn(async {
            if let Err(error) = connection.await {
                eprintln!("the connection for looking ended: {error}");
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

    /// Waits until what was due is in the queues of its receivers.
    fn wait_until_sorted(&self, begun: Instant) -> Result<()> {
        while self.number(DUE)? >= 1_000 {
            if begun.elapsed() > SORTING {
                bail!("the backlog was not sorted in time");
            }
            thread::sleep(Duration::from_millis(200));
        }
        eprintln!("  sorted, {:.0} s", begun.elapsed().as_secs_f64());
        Ok(())
    }
}

fn table(reports: u64, phases: &[Phase], far: u64) -> String {
    let mut text = format!(
        "\nOne healthy receiver beside {DEAD} that refuse connections, {HANGING} that never answer and {SLOW} that answer \
         after {} s, each with {reports} reports; {OUTSTANDING} messages under way to the healthy one:\n\n\
         | phase | reports/s | p50 ms | p95 ms | worst ms | idle transactions/s | reports that wait |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
        SLOW_ANSWER.as_secs()
    );
    for phase in phases {
        let delay = &phase.flow.tally.delay;
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
    let _infallible = write_goals(&mut text, &goals(phases, far));
    text
}

fn goals(phases: &[Phase], far: u64) -> [Goal; 4] {
    let delays = phases.iter().map(|phase| &phase.flow.tally.delay);
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
                worst < Duration::from_millis(P95_MS),
            )),
        ),
        Goal::new(
            "statements flat: at most 40 idle transactions a second more than without a backlog",
            Some((
                format!("{first}/s, then at most {most}/s"),
                most <= first + MORE_PER_SECOND,
            )),
        ),
        Goal::new(
            "a receiver that takes 100 ms gets at least 1,000 reports a second",
            Some((format!("{far}/s"), far >= FAR_PER_SECOND)),
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
