//! `bench cluster`: several nodes on one `PostgreSQL`, and the effect of killing one.

use super::message_tracker::{MessageTracker, Totals};
use crate::accept::check_prerequisites;
use crate::gateways::RunningGateway as _;
use crate::gateways::switchboard::Nodes;
use crate::measure;
use crate::options::{default_binary, number};
use crate::report::machine;
use anyhow::{Context, Result, bail};
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use testkit::Backend;
use testkit::load::{self, InFlightLimit, Load, Report, Requests, RunLimit};
use testkit::receiver::Receiver;

const MAX_NODES: usize = 3;
/// The sum over all nodes.
const CONNECTIONS: usize = 60;
const OUTSTANDING: usize = 5_000;
const DELAY_MS: &str = "50";
/// How long messages are sent before a node is killed.
const BEFORE_KILL: Duration = Duration::from_secs(3);
/// After this time without a callback, missing callbacks count as lost.
const LOST_AFTER: Duration = Duration::from_secs(40);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The settings of a run.
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
            switchboard: default_binary()?,
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

/// Starts nodes on one database.
fn start(options: &Options, count: usize, arguments: &[&str]) -> Result<Nodes> {
    let config = format!("[simulator]\ndelay_ms = {DELAY_MS}\n");
    Nodes::start(
        &options.switchboard,
        Backend::Postgres,
        count,
        &config,
        arguments,
    )
}

/// The result for a number of nodes.
struct Row {
    nodes: usize,
    accepted: u64,
    delivered: u64,
    totals: Totals,
}

/// The result of killing a node.
struct Kill {
    /// From the kill until all messages that the node had accepted were called back.
    takeover: Duration,
    totals: Totals,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let mut rows = Vec::new();
    for nodes in 1..=MAX_NODES {
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
    let accepting = start(options, nodes, &["--roles", "api"])?;
    let reports = accept(&accepting, options.measured);
    let accepted = reports.iter().map(Report::rate).sum();
    drop(accepting);
    let whole = start(options, nodes, &[])?;
    let warm_up = Flow::start();
    warm_up.send(&whole, &whole.addresses(), Duration::from_secs(2));
    warm_up.wait_for_callbacks();
    let flow = Flow::start();
    flow.send(&whole, &whole.addresses(), options.measured);
    flow.wait_for_callbacks();
    let totals = flow.tracker.totals();
    let row = Row {
        nodes,
        accepted,
        delivered: rate(totals.called_back, totals.last_callback),
        totals,
    };
    eprintln!(
        "  accepted {}/s, end to end {}/s, {} missing",
        row.accepted,
        row.delivered,
        row.totals.missing()
    );
    Ok(row)
}

fn rate(count: u64, time: Duration) -> u64 {
    let milliseconds = time.as_millis().max(1);
    u64::try_from(u128::from(count) * 1_000 / milliseconds).unwrap_or(u64::MAX)
}

fn accept(cluster: &Nodes, measured: Duration) -> Vec<Report> {
    let connections = CONNECTIONS / cluster.nodes.len();
    let load = |addr| Load {
        connections,
        warm_up: Duration::from_secs(2),
        limit: RunLimit::Elapsed(measured),
        requests: Requests::Fixed(measure::request(
            addr,
            &cluster.tokens[0],
            &measure::message(measure::UNANSWERED_URL),
        )),
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
    joined
        .map(|report| report.expect("the load does not panic"))
        .collect()
}

/// Messages that are sent to some nodes, and their callbacks.
struct Flow {
    in_flight: Arc<InFlightLimit>,
    tracker: Arc<MessageTracker>,
    receiver: Receiver,
    started: Instant,
}

impl Flow {
    fn start() -> Self {
        let in_flight = Arc::new(InFlightLimit::new(OUTSTANDING));
        let started = Instant::now();
        let tracker = Arc::new(MessageTracker::start(Arc::clone(&in_flight)));
        let recorder = Arc::clone(&tracker);
        let receiver = Receiver::builder()
            .on_request(move |_, body| recorder.record_callback(body))
            .start();
        Self {
            in_flight,
            tracker,
            receiver,
            started,
        }
    }

    /// Sends to these nodes for a time. Lost connections are ignored; the totals show lost messages.
    fn send(&self, cluster: &Nodes, addresses: &[SocketAddr], time: Duration) {
        thread::scope(|scope| {
            for &addr in addresses {
                let load = self.load(cluster, addr, CONNECTIONS / addresses.len(), time);
                let in_flight = Arc::clone(&self.in_flight);
                scope.spawn(move || load::run_limited(addr, load, in_flight));
            }
        });
    }

    fn load(&self, cluster: &Nodes, addr: SocketAddr, connections: usize, time: Duration) -> Load {
        let request = measure::request(
            addr,
            &cluster.tokens[0],
            &measure::message(&self.receiver.url("/dlr")),
        );
        let tracker = Arc::clone(&self.tracker);
        Load {
            connections,
            warm_up: Duration::ZERO,
            limit: RunLimit::Elapsed(time),
            requests: Requests::Fixed(request),
            on_answer: Some(Box::new(move |answer| {
                if answer.status == 200 {
                    tracker.record_answer(answer.body);
                }
            })),
        }
    }

    fn wait_for_callbacks(&self) {
        while self.tracker.totals().missing() > 0 && self.tracker.since_last_callback() < LOST_AFTER
        {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Kills one of three nodes under load. The load on the others continues, so that they are busy.
fn kill(options: &Options) -> Result<Kill> {
    let mut cluster = start(options, MAX_NODES, &[])?;
    let addresses = cluster.addresses();
    let (others, victim_address) = (&addresses[..MAX_NODES - 1], addresses[MAX_NODES - 1]);
    let (other_flow, victim_flow) = (Flow::start(), Flow::start());
    let mut victim = cluster.nodes.pop().context("no node was started")?;
    let killed_at = thread::scope(|scope| {
        let cluster = &cluster;
        let (other_flow, victim_flow) = (&other_flow, &victim_flow);
        scope
            .spawn(move || other_flow.send(cluster, others, BEFORE_KILL + Duration::from_secs(15)));
        let load = victim_flow.load(cluster, victim_address, CONNECTIONS / 3, BEFORE_KILL * 2);
        let in_flight = Arc::clone(&victim_flow.in_flight);
        scope.spawn(move || load::run_limited(victim_address, load, in_flight));
        thread::sleep(BEFORE_KILL);
        let killed_at = victim_flow.started.elapsed();
        victim.kill9();
        killed_at
    });
    victim_flow.wait_for_callbacks();
    other_flow.wait_for_callbacks();
    let totals = victim_flow.tracker.totals();
    let takeover = totals.last_callback.saturating_sub(killed_at);
    eprintln!(
        "  taken over after {takeover:?}; {} accepted, {} missing, {} repeated",
        totals.accepted,
        totals.missing(),
        totals.repeated
    );
    Ok(Kill { takeover, totals })
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
        "| nodes | accepted/s | end to end/s | missing | repeated |\n|--:|--:|--:|--:|--:|"
    )?;
    for row in rows {
        let (missing, repeated) = (row.totals.missing(), row.totals.repeated);
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
         | kill | accepted by it | seconds | missing | repeated |\n|--:|--:|--:|--:|--:|"
    )?;
    for (kill, number) in kills.iter().zip(1..) {
        let (missing, repeated) = (kill.totals.missing(), kill.totals.repeated);
        writeln!(
            text,
            "| {number} | {} | {:.1} | {missing} | {repeated} |",
            kill.totals.accepted,
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
