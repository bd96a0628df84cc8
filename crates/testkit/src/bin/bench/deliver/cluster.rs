//! `bench cluster`: several nodes on one `PostgreSQL`, and what the death of one costs.

use super::ledger::{Ledger, Tally};
use crate::accept::check_site;
use crate::measure;
use crate::options::{neighbour, number};
use crate::report::machine;
use anyhow::{Context, Result, bail};
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use testkit::load::{self, Gate, Load, Report, Requests, Until};
use testkit::receiver::Receiver;
use testkit::{Backend, Server};

const MOST_NODES: usize = 3;
/// Over all nodes.
const CONNECTIONS: usize = 60;
const OUTSTANDING: usize = 5_000;
const DATABASE_VARIABLE: &str = "SWITCHBOARD_DATABASE__URL";
const DELAY_VARIABLE: &str = "SWITCHBOARD_SIMULATOR__DELAY_MS";
const DELAY_MS: &str = "50";
/// A callback that nobody answers, for rows that only accept.
const NOWHERE: &str = "http://127.0.0.1:9/dlr";
/// For so long messages come in before a node is killed.
const BEFORE_KILL: Duration = Duration::from_secs(3);
/// What has not come by then does not come.
const QUIET: Duration = Duration::from_secs(40);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What a run measures, and for how long.
#[derive(Debug)]
pub(crate) struct Options {
    measured: Duration,
    kills: u64,
    switchboard: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            measured: Duration::from_secs(15),
            kills: 5,
            switchboard: neighbour()?,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--quick" => {
                    options.measured = Duration::from_secs(4);
                    options.kills = 1;
                }
                "--seconds" => {
                    options.measured = Duration::from_secs(number(flag, value()?)?.max(1));
                }
                "--kills" => options.kills = number(flag, value()?)?,
                "--switchboard" => options.switchboard = PathBuf::from(value()?),
                _ => bail!("unknown argument {flag}\n{}", crate::USAGE),
            }
        }
        options.switchboard = std::path::absolute(&options.switchboard)?;
        Ok(options)
    }
}

/// Nodes on one database.
struct Cluster {
    nodes: Vec<Server>,
    token: String,
}

impl Cluster {
    fn start(options: &Options, count: usize, arguments: &[&str]) -> Result<Self> {
        let node = |backend, url: Option<&str>| {
            let mut builder = Server::builder(&options.switchboard, backend);
            builder = builder.env(DELAY_VARIABLE, DELAY_MS);
            if let Some(url) = url {
                builder = builder.env(DATABASE_VARIABLE, url);
            }
            for argument in arguments {
                builder = builder.arg(*argument);
            }
            builder.try_start()
        };
        let first = node(Backend::Postgres, None)?;
        let token = measure::open_account(&first)?;
        let url = first
            .database_url()
            .context("it has a database")?
            .to_owned();
        let mut nodes = vec![first];
        while nodes.len() < count {
            nodes.push(node(Backend::Sqlite, Some(&url))?);
        }
        Ok(Self { nodes, token })
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Server::addr).collect()
    }
}

/// A row: so many nodes.
struct Row {
    nodes: usize,
    accepted: u64,
    delivered: u64,
    tally: Tally,
}

/// A node that was killed.
struct Kill {
    /// From the kill until all that it had accepted was called back.
    takeover: Duration,
    tally: Tally,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_site(&options.switchboard)?;
    let mut rows = Vec::new();
    for nodes in 1..=MOST_NODES {
        rows.push(row(options, nodes)?);
    }
    let mut kills = Vec::new();
    for _ in 0..options.kills {
        kills.push(kill(options)?);
    }
    let mut text = String::new();
    write_all(&mut text, options, &rows, &kills)?;
    print!("{text}");
    Ok(())
}

fn row(options: &Options, nodes: usize) -> Result<Row> {
    eprintln!("{nodes} nodes, {} s …", options.measured.as_secs());
    let accepting = Cluster::start(options, nodes, &["--roles", "api"])?;
    let reports = accept(&accepting, options.measured);
    let accepted = reports.iter().map(Report::rate).sum();
    drop(accepting);
    let whole = Cluster::start(options, nodes, &[])?;
    let warm_up = Flow::open();
    warm_up.send(&whole, &whole.addresses(), Duration::from_secs(2));
    warm_up.wait_for_the_rest();
    let flow = Flow::open();
    flow.send(&whole, &whole.addresses(), options.measured);
    flow.wait_for_the_rest();
    let tally = flow.ledger.tally();
    let row = Row {
        nodes,
        accepted,
        delivered: rate(tally.called_back, tally.last_callback),
        tally,
    };
    eprintln!(
        "  accepted {}/s, end to end {}/s, {} missing",
        row.accepted,
        row.delivered,
        row.tally.missing()
    );
    Ok(row)
}

fn rate(count: u64, time: Duration) -> u64 {
    let milliseconds = time.as_millis().max(1);
    u64::try_from(u128::from(count) * 1_000 / milliseconds).unwrap_or(u64::MAX)
}

fn accept(cluster: &Cluster, measured: Duration) -> Vec<Report> {
    let connections = CONNECTIONS / cluster.nodes.len();
    let load = |addr| Load {
        connections,
        warm_up: Duration::from_secs(2),
        until: Until::Elapsed(measured),
        requests: Requests::Fixed(measure::request(addr, &cluster.token, &body(NOWHERE))),
        on_answer: None,
    };
    let loads = cluster
        .addresses()
        .into_iter()
        .map(|addr| (addr, load(addr)));
    let running: Vec<_> = loads
        .map(|(addr, load)| thread::spawn(move || load::run(addr, load)))
        .collect();
    let joined = running.into_iter().map(thread::JoinHandle::join);
    joined.map(|report| report.expect("no panic")).collect()
}

fn body(url: &str) -> String {
    format!(
        r#"{{"to":"+37120000001","from":"Switchboard","message":"Your code is 123456. It is valid for 10 minutes.","dlrUrl":"{url}"}}"#
    )
}

/// Messages that go in at some nodes, and their callbacks.
struct Flow {
    gate: Arc<Gate>,
    ledger: Arc<Ledger>,
    receiver: Receiver,
    opened: Instant,
}

impl Flow {
    fn open() -> Self {
        let gate = Arc::new(Gate::new(OUTSTANDING));
        let opened = Instant::now();
        let ledger = Arc::new(Ledger::open(Arc::clone(&gate)));
        let noting = Arc::clone(&ledger);
        let receiver = Receiver::builder()
            .on_request(move |_, body| noting.note_callback(body))
            .start();
        Self {
            gate,
            ledger,
            receiver,
            opened,
        }
    }

    /// Sends to these nodes for a time; what breaks off is left to the checks.
    fn send(&self, cluster: &Cluster, addresses: &[SocketAddr], time: Duration) {
        thread::scope(|scope| {
            for &addr in addresses {
                let load = self.load(cluster, addr, CONNECTIONS / addresses.len(), time);
                let gate = Arc::clone(&self.gate);
                scope.spawn(move || load::run_gated(addr, load, gate));
            }
        });
    }

    fn load(
        &self,
        cluster: &Cluster,
        addr: SocketAddr,
        connections: usize,
        time: Duration,
    ) -> Load {
        let request = measure::request(addr, &cluster.token, &body(&self.receiver.url("/dlr")));
        let ledger = Arc::clone(&self.ledger);
        Load {
            connections,
            warm_up: Duration::ZERO,
            until: Until::Elapsed(time),
            requests: Requests::Fixed(request),
            on_answer: Some(Box::new(move |answer| {
                if answer.status == 200 {
                    ledger.note_answer(answer.body);
                }
            })),
        }
    }

    fn wait_for_the_rest(&self) {
        while self.ledger.tally().missing() > 0 && self.ledger.quiet_for() < QUIET {
            thread::sleep(LOOK_AGAIN_AFTER);
        }
    }
}

/// Kills one of three nodes under load; the load on the others goes on, so that they have other things to do.
fn kill(options: &Options) -> Result<Kill> {
    let mut cluster = Cluster::start(options, MOST_NODES, &[])?;
    let addresses = cluster.addresses();
    let (others, victim) = (&addresses[..MOST_NODES - 1], addresses[MOST_NODES - 1]);
    let (calm, struck) = (Flow::open(), Flow::open());
    let mut doomed = cluster.nodes.pop().context("three were started")?;
    let killed_at = thread::scope(|scope| {
        let cluster = &cluster;
        let (calm, struck) = (&calm, &struck);
        scope.spawn(move || calm.send(cluster, others, BEFORE_KILL + Duration::from_secs(15)));
        let load = struck.load(cluster, victim, CONNECTIONS / 3, BEFORE_KILL * 2);
        let gate = Arc::clone(&struck.gate);
        scope.spawn(move || load::run_gated(victim, load, gate));
        thread::sleep(BEFORE_KILL);
        let killed_at = struck.opened.elapsed();
        doomed.kill9();
        killed_at
    });
    struck.wait_for_the_rest();
    calm.wait_for_the_rest();
    let tally = struck.ledger.tally();
    let takeover = tally.last_callback.saturating_sub(killed_at);
    eprintln!(
        "  taken over after {takeover:?}; {} accepted, {} missing, {} told twice",
        tally.accepted,
        tally.missing(),
        tally.repeated
    );
    Ok(Kill { takeover, tally })
}

fn write_all(text: &mut String, options: &Options, rows: &[Row], kills: &[Kill]) -> fmt::Result {
    writeln!(
        text,
        "Machine: {}. Load generator, nodes, PostgreSQL and callback receiver share it, so more nodes have no more \
         cores. {CONNECTIONS} connections over all nodes; the simulated network reports after {DELAY_MS} ms; \
         {} s a row. “accepted/s” is measured on nodes that only accept.\n",
        machine(),
        options.measured.as_secs()
    )?;
    writeln!(
        text,
        "| nodes | accepted/s | end to end/s | missing | told twice |\n|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        let (missing, repeated) = (row.tally.missing(), row.tally.repeated);
        writeln!(
            text,
            "| {} | {} | {} | {missing} | {repeated} |",
            row.nodes, row.accepted, row.delivered
        )?;
    }
    if kills.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\nOne of three nodes killed under load: from the kill until everything that it had accepted was called back.\n\n\
         | kill | accepted by it | seconds | missing | told twice |\n|--:|--:|--:|--:|--:|"
    )?;
    for (kill, number) in kills.iter().zip(1..) {
        let (missing, repeated) = (kill.tally.missing(), kill.tally.repeated);
        writeln!(
            text,
            "| {number} | {} | {:.1} | {missing} | {repeated} |",
            kill.tally.accepted,
            kill.takeover.as_secs_f64()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Options;
    use std::time::Duration;

    #[test]
    fn flags_change_the_defaults_and_wrong_ones_are_named() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&arguments)
        };
        let options = parse("--seconds 3 --kills 2").expect("valid");
        assert_eq!(
            (options.measured, options.kills),
            (Duration::from_secs(3), 2)
        );
        for (line, named) in [
            ("--fast", "--fast"),
            ("--kills", "--kills"),
            ("--kills x", "\"x\""),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
