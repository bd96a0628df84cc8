//! A service with an SMSC of its own, new or grown.

use super::Options;
use super::case::{Case, Size};
use crate::cost::database_work::Postgres;
use crate::cost::turn::{self, SMSC_DELAY_MS, Turn, TurnSettings, WINDOW};
use crate::fill;
use crate::gateways::start_smsc;
use crate::gateways::switchboard::{self, CARRIER, Nodes};
use crate::measure;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};
use testkit::{Backend, Process, Server, temp_dir};

/// The number of hosts that the waiting callbacks are for.
const DEAD_HOSTS: u64 = 100;
/// How long the callbacks may take until they wait.
const CALLBACK_TIMEOUT: Duration = Duration::from_mins(10);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const MESSAGES_IN_PROGRESS: &str = "SELECT count(*) FROM queue";
const WAITING_CALLBACKS: &str = "SELECT count(*) FROM callback_queue";

pub(super) struct Installation {
    // Fields are dropped in this order.
    nodes: Nodes,
    _smsc: Process,
}

impl Installation {
    /// One carrier, one account and an empty database.
    pub(super) fn small(options: &Options, backend: Backend) -> Result<Self> {
        let smsc = start_smsc(&options.switchboard, SMSC_DELAY_MS)?;
        let config = switchboard::config(smsc.addr(), WINDOW);
        Self::start(options, backend, smsc, &config)
    }

    /// The same, but for what grows. Cost lists have the destinations of the price list of the small one.
    pub(super) fn grown(
        options: &Options,
        backend: Backend,
        size: Size,
        small: &Self,
    ) -> Result<Self> {
        let smsc = start_smsc(&options.switchboard, SMSC_DELAY_MS)?;
        // They are read at the start.
        let cost_lists = temp_dir("costs")?;
        let config = match size.case {
            Case::Routes => switchboard::config(smsc.addr(), WINDOW) + &routes(size.count),
            Case::Prices => {
                write_cost_lists(small.nodes.first(), cost_lists.path(), size.count)?;
                priced_carriers(smsc.addr(), cost_lists.path(), size.count)
            }
            _ => switchboard::config(smsc.addr(), WINDOW),
        };
        let mut installation = Self::start(options, backend, smsc, &config)?;
        installation.fill(size)?;
        Ok(installation)
    }

    fn start(options: &Options, backend: Backend, smsc: Process, config: &str) -> Result<Self> {
        Ok(Self {
            nodes: Nodes::start(&options.switchboard, backend, 1, config, &[])?,
            _smsc: smsc,
        })
    }

    fn fill(&mut self, size: Size) -> Result<()> {
        let Size { case, count } = size;
        let token = &self.nodes.tokens[0];
        let addr = self.nodes.first().addr();
        match case {
            Case::History => fill::history::fill(&mut self.nodes.nodes[0], CARRIER, count)?,
            Case::Waiting => fill::messages::schedule(addr, token, count)?,
            Case::Callbacks => {
                fill::messages::send_with_callbacks(addr, token, count, dead_urls())?;
                self.wait_for_callbacks(count)?;
            }
            Case::Accounts => self.create_accounts(count)?,
            Case::Routes | Case::Prices => {}
        }
        if let Some(database) = self.nodes.first().database() {
            // Otherwise this work would be part of some turns.
            for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
                database.execute_blocking(sql)?;
            }
        }
        Ok(())
    }

    /// Waits until all messages are delivered and their callbacks wait.
    fn wait_for_callbacks(&self, count: u64) -> Result<()> {
        let server = self.nodes.first();
        let started = Instant::now();
        while fill::number(server, WAITING_CALLBACKS)? < count
            || fill::number(server, MESSAGES_IN_PROGRESS)? > 0
        {
            ensure!(
                started.elapsed() < CALLBACK_TIMEOUT,
                "the callbacks for dead hosts do not all wait after {} s",
                CALLBACK_TIMEOUT.as_secs()
            );
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Creates accounts until there are this many; they all send.
    fn create_accounts(&mut self, count: u64) -> Result<()> {
        for number in self.nodes.tokens.len() as u64..count {
            let name = format!("{}-{number}", measure::ACCOUNT);
            let token = measure::create_account(self.nodes.first(), &name)?;
            self.nodes.tokens.push(token);
        }
        Ok(())
    }

    pub(super) fn metered(&self) -> Result<MeteredInstallation<'_>> {
        let database = self.nodes.first().database();
        Ok(MeteredInstallation {
            nodes: &self.nodes,
            postgres: database.map(Postgres::new).transpose()?,
        })
    }
}

/// An installation whose processor time is measured.
pub(super) struct MeteredInstallation<'a> {
    nodes: &'a Nodes,
    postgres: Option<Postgres<'a>>,
}

impl MeteredInstallation<'_> {
    pub(super) fn turn(&self, settings: TurnSettings) -> Result<Turn> {
        turn::run_on(self.nodes, self.postgres.as_ref(), settings).with_context(|| {
            let output = self.nodes.first().output();
            format!("the server wrote:\n{output}")
        })
    }
}

/// Addresses of loopback where nobody listens. Each is a host of its own.
fn dead_urls() -> Vec<String> {
    let url = |host| format!("http://127.0.1.{host}:9/dlr");
    (1..=DEAD_HOSTS).map(url).collect()
}

/// Routes. Only the last one matches the messages of the benchmark.
fn routes(count: u64) -> String {
    let mut text = String::new();
    for number in 1..count {
        let condition = match number % 4 {
            0 => format!("prefix = ['3712{:07}']", 9_000_000 + number),
            1 => "country = ['EE', 'LT']".to_owned(),
            2 => "network = ['24701', '24705']".to_owned(),
            _ => "channel = 'viber'".to_owned(),
        };
        // Writing to a string cannot fail.
        let _infallible = write!(text, "[[route]]\n{condition}\ncarriers = ['{CARRIER}']\n");
    }
    text + &format!("[[route]]\ncarriers = ['{CARRIER}']\n")
}

/// Writes a cost list for each carrier: the destinations of the price list, each with other costs.
fn write_cost_lists(server: &Server, folder: &Path, carriers: u64) -> Result<()> {
    let output = server.cli(&["rates", "export"]);
    ensure!(output.status.success(), "`rates export` failed: {output:?}");
    let list = String::from_utf8(output.stdout)?;
    for carrier in 0..carriers {
        fs::write(folder.join(cost_list(carrier)), costs(&list, carrier))?;
    }
    Ok(())
}

fn cost_list(carrier: u64) -> String {
    format!("{carrier}.csv")
}

/// The price list with the costs of a carrier in the last column.
fn costs(list: &str, carrier: u64) -> String {
    let mut text = String::new();
    for (number, line) in (0_u64..).zip(list.lines()) {
        let cost = 1 + (number * 7919 + carrier * 104_729) % 1_999;
        let line = match line.rsplit_once(',') {
            Some((destination, _)) if number > 0 => format!("{destination},0.{cost:04}"),
            _ => line.to_owned(),
        };
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{line}");
    }
    text
}

/// Carriers on one SMSC, and a route that prefers the cheapest. Each has its own system ID, because an SMSC may send
/// receipts on any link with the same one.
fn priced_carriers(smsc: SocketAddr, cost_lists: &Path, count: u64) -> String {
    let mut text = String::new();
    for carrier in 0..count {
        let costs = cost_lists.join(cost_list(carrier));
        // Writing to a string cannot fail.
        let _infallible = write!(
            text,
            "[[carrier]]\nname = '{CARRIER}-{carrier}'\nkind = 'smpp'\naddress = '{smsc}'\nsystem_id = '{carrier}'\n\
             password = 'bench'\nwindow = {WINDOW}\ncosts = '{}'\n",
            costs.display()
        );
    }
    let names: Vec<String> = (0..count).map(|n| format!("'{CARRIER}-{n}'")).collect();
    text + &format!(
        "[[route]]\nby = 'cost'\ncarriers = [{}]\n",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::{costs, dead_urls, routes};

    #[test]
    fn only_the_last_route_has_no_condition() {
        let text = routes(20);
        let all: Vec<&str> = text.split("[[route]]\n").skip(1).collect();
        let unconditional = all.iter().position(|route| route.starts_with("carriers"));
        assert_eq!((all.len(), unconditional), (20, Some(19)));
    }

    #[test]
    fn costs_differ_and_destinations_stay() {
        let list = "Country,Operator,Rate\nLatvia,\"A, B\",0.5\nEstonia,All,0.7\n";
        let lists = [0, 1].map(|carrier| costs(list, carrier));
        assert_ne!(lists[0], lists[1]);
        for text in lists {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], "Country,Operator,Rate");
            assert!(lines[1].starts_with("Latvia,\"A, B\",0."), "{text}");
            assert_eq!(lines.len(), 3);
        }
    }

    #[test]
    fn dead_hosts_are_on_loopback() {
        let urls = dead_urls();
        assert_eq!(urls.len(), 100);
        assert!(urls.iter().all(|url| url.starts_with("http://127.0.1.")));
    }
}
