//! Nodes of the real binary on one database, with the network, the receiver and the callers outside.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::receiver::{Receiver, Reply, Request};
use testkit::relay::Relay;
use testkit::{Backend, PATIENCE, Server, ServerBuilder, TempDir};

use super::books::{self, Administrator, Books};
use super::callers::{Caller, Callers, Way};
use super::checker::{self, Leave, Verdict};
use super::log::{Log, Report, Told};
use super::network::Network;
use super::orders::Order;
use crate::faults::subject::builder;
use crate::faults::waiting::{POLL, wait_until};

/// The most parts that a node has with the network at once.
pub(super) const WINDOW: usize = 24;
const BINDS: usize = 3;
const CALLERS: usize = 4;
/// So many scheduled messages are sent once nothing is broken, to see that they are in time.
const IN_TIME: usize = 24;
/// Of the reports, one in so many is refused at the first try, and one in so many is answered late.
const REFUSED: u64 = 13;
const SLOW: u64 = 29;
const SLOWLY: Duration = Duration::from_secs(2);
/// Where nothing has ended for so long, nothing will.
const QUIET: Duration = Duration::from_mins(3);
const RATES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n\
    Latvia,LV,All,All,247,,0.05\n";

/// On which database the nodes work.
#[derive(Debug, Clone)]
pub(super) enum Database {
    /// A file of the only node.
    Sqlite,
    /// A server: where the nodes find it, and where the checker does.
    Postgres { nodes: String, checker: String },
}

/// What is decided before the nodes start.
pub(super) struct Setup<'a> {
    pub(super) nodes: usize,
    pub(super) database: Database,
    /// Sets more for each node.
    pub(super) equip: &'a dyn Fn(usize, ServerBuilder) -> ServerBuilder,
}

/// A node, behind a door that stays where it is.
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) door: Relay,
}

/// Everything of a scenario.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) log: Arc<Log>,
    pub(super) to_network: Relay,
    pub(super) to_receiver: Relay,
    pub(super) token: String,
    database: Database,
    network: Network,
    _receiver: Receiver,
}

impl Cluster {
    pub(super) fn start(setup: &Setup<'_>) -> Self {
        let log = Arc::new(Log::open());
        let network = Network::start(&log);
        let receiver = Receiver::builder().on_request(|_, _| {}).script({
            let log = log.clone();
            move |request| receive(&log, request)
        });
        let receiver = receiver.start();
        let to_network = Relay::start(Some(network.addr())).expect("a relay");
        let to_receiver = Relay::start(Some(receiver.addr())).expect("a relay");
        let mut nodes = Vec::new();
        let mut token = String::new();
        for index in 0..setup.nodes {
            let node = builder(Backend::Sqlite).config(carriers(&to_network));
            let node = match &setup.database {
                Database::Sqlite => node,
                Database::Postgres { nodes, .. } => node.env("SWITCHBOARD_DATABASE__URL", nodes),
            };
            let server = (setup.equip)(index, node).start();
            if index == 0 {
                token = furnish(&server);
            }
            let door = Relay::start(Some(server.addr())).expect("a relay");
            nodes.push(Node { server, door });
        }
        let cluster = Self {
            nodes,
            log,
            to_network,
            to_receiver,
            token,
            database: setup.database.clone(),
            network,
            _receiver: receiver,
        };
        cluster.wait_until_ready();
        cluster
    }

    /// How callers reach it.
    pub(super) fn way(&self) -> Way {
        Way {
            doors: self.nodes.iter().map(|node| node.door.addr()).collect(),
            token: self.token.clone(),
            receiver: format!("http://{}", self.to_receiver.addr()),
            log: self.log.clone(),
        }
    }

    pub(super) fn callers(&self) -> Callers {
        Callers::start(&self.way(), CALLERS)
    }

    /// How many messages were answered.
    pub(super) fn answered(&self) -> usize {
        let pages = self.log.pages();
        let answered = pages.cases.values().filter_map(|case| case.ids());
        answered.map(<[u64]>::len).sum()
    }

    /// Waits until so many more messages were answered.
    pub(super) fn wait_for_answered(&self, more: usize) {
        let goal = self.answered() + more;
        wait_until("more messages are answered", || self.answered() >= goal);
    }

    /// SIGKILL to a node: what it had with the network may be sent again.
    pub(super) fn kill(&mut self, index: usize) {
        let from = self.log.now_ms();
        let node = &mut self.nodes[index];
        node.server.kill9();
        self.close_door(index, from);
    }

    /// A node has ended, by whatever: what it had with the network may be sent again.
    pub(super) fn close_door(&mut self, index: usize, from_ms: u64) {
        let node = &mut self.nodes[index];
        node.door.lead_to(None);
        node.door.close_all();
        self.log.fault(from_ms, WINDOW);
    }

    /// Starts a node again after it has ended.
    pub(super) fn restart(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.server.restart();
        node.door.lead_to(Some(node.server.addr()));
    }

    /// Whoever checks has a connection of their own.
    pub(super) fn administrator(&self) -> Administrator {
        let Database::Postgres { checker, .. } = &self.database else {
            panic!("on SQLite there is none");
        };
        let until = Instant::now() + PATIENCE;
        loop {
            match Administrator::connect(checker) {
                Ok(administrator) => return administrator,
                Err(error) => assert!(Instant::now() < until, "no connection: {error}"),
            }
            thread::sleep(POLL * 10); // tidy: between two looks at a state that nothing announces
        }
    }

    fn wait_until_ready(&self) {
        wait_until("all nodes are ready", || {
            let ready = |node: &Node| Caller::is_ready(node.server.addr());
            self.nodes.iter().all(ready)
        });
        wait_until("all nodes are bound", || {
            self.network.bound() >= self.nodes.len()
        });
    }

    /// Nothing is broken any more: what was left open is resolved, everything comes to its end, and the promises are
    /// held against what was seen.
    pub(super) fn finish(mut self, callers: Callers, leave: Leave) -> Verdict {
        self.wait_until_ready();
        self.log.calm();
        callers.leave();
        let mut caller = Caller::new(&self.way(), 0);
        for _ in 0..IN_TIME {
            caller.send(&Order::make_scheduled(&self.log), || false);
        }
        self.resolve(&mut caller);
        self.wait_for_ends();
        if matches!(self.database, Database::Postgres { .. }) {
            print!("{}", self.administrator().describe_unfinished());
        }
        self.wait_for_reports();
        self.look_at_all(&mut caller);
        for node in &mut self.nodes {
            let status = node.server.terminate();
            if !status.success() {
                self.log.wrong(format!("a node ended with {status}"));
            }
        }
        let books = self.read_books();
        self.log.note_stalls();
        let verdict = checker::check(&self.log.pages(), &books, leave);
        if !verdict.breaches.is_empty() {
            self.tell();
        }
        verdict
    }

    /// Each order with a key gets its answer.
    fn resolve(&self, caller: &mut Caller) {
        let open: Vec<Order> = {
            let pages = self.log.pages();
            let open = pages.cases.values().filter(|case| {
                let order = &case.order;
                order.is_keyed && case.ids().is_none() && !case.told.contains(&Told::Refused(400))
            });
            open.map(|case| case.order.clone()).collect()
        };
        for order in open {
            wait_until("an order with a key is answered", || {
                matches!(caller.try_once(&order), Told::Ids(_) | Told::Refused(400))
            });
        }
    }

    /// A backlog may take its time, as long as something ends.
    fn wait_for_ends(&self) {
        let unfinished = || match &self.database {
            Database::Sqlite => books::unfinished_sqlite(&self.file()).unwrap_or(i64::MAX),
            Database::Postgres { .. } => self.administrator().unfinished().unwrap_or(i64::MAX),
        };
        wait_while_fewer(unfinished);
    }

    fn wait_for_reports(&self) {
        wait_while_fewer(|| {
            let pages = self.log.pages();
            let due = pages.cases.values().filter(|case| case.order.is_reported);
            let due = due.flat_map(|case| case.ids().unwrap_or_default());
            let missing = due.filter(|id| {
                let reports = pages.reports.get(id).map_or(&[][..], Vec::as_slice);
                !reports.iter().any(|report| report.received)
            });
            i64::try_from(missing.count()).unwrap_or(i64::MAX)
        });
    }

    fn look_at_all(&self, caller: &mut Caller) {
        let answered: Vec<u64> = {
            let pages = self.log.pages();
            let ids = pages.cases.values().filter_map(|case| case.ids());
            ids.flatten().copied().collect()
        };
        for id in answered {
            wait_until("a look is answered", || caller.look(id));
        }
    }

    fn read_books(&self) -> Books {
        match &self.database {
            Database::Sqlite => books::read_sqlite(&self.file()).expect("the file can be read"),
            Database::Postgres { .. } => {
                let books = self.administrator().read_books();
                books.expect("the database can be read")
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.nodes[0].server.data_dir().join("switchboard.db")
    }

    /// What the nodes wrote, for whoever looks for the cause.
    fn tell(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            println!("--- node {index} ---\n{}", node.server.output());
        }
    }
}

/// Returns once nothing is left, or once nothing has become less for a long time: that is among the breaches then.
fn wait_while_fewer(left: impl Fn() -> i64) {
    let (mut fewest, mut since) = (i64::MAX, Instant::now());
    loop {
        let now = left();
        if now == 0 || since.elapsed() > QUIET {
            return;
        }
        if now < fewest {
            (fewest, since) = (now, Instant::now());
        }
        thread::sleep(POLL * 20); // tidy: between two looks at a state that nothing announces
    }
}

/// An account that may send, prices, and a token.
fn furnish(server: &Server) -> String {
    let account = [
        "account",
        "create",
        "--name",
        "crowd",
        "--balance",
        "1000000.00",
        "--json",
    ];
    server.cli_json(&account);
    let folder = TempDir::create("rates").expect("a temporary folder");
    let file = folder.path().join("rates.csv");
    fs::write(&file, RATES).expect("the list is written");
    let import = server.cli(&["rates", "import", file.to_str().expect("a plain path")]);
    assert!(import.status.success(), "{import:?}");
    let token: Value = server.cli_json(&["token", "create", "--account", "crowd", "--json"]);
    token["token"].as_str().expect("a token").to_owned()
}

fn carriers(to_network: &Relay) -> String {
    let window = WINDOW / BINDS;
    format!(
        "[[carrier]]\nname = \"net\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n\
         binds = {BINDS}\nwindow = {window}\nresponse_timeout_s = 5\nunknown_tries = 100\n",
        to_network.addr()
    )
}

/// Writes a report down, and decides what it is answered.
fn receive(log: &Log, request: &Request<'_>) -> Reply {
    let Some((id, mut report)) = read_report(request) else {
        let came = String::from_utf8_lossy(request.body).into_owned();
        log.wrong(format!("not a report: {came}"));
        return Reply::ok();
    };
    let mut pages = log.pages();
    let before = pages.reports.entry(id).or_default();
    report.received = !id.is_multiple_of(REFUSED) || !before.is_empty();
    let (received, is_first) = (report.received, before.is_empty());
    before.push(report);
    drop(pages);
    match received {
        false => Reply::answer(500, "not now"),
        true if is_first && id.is_multiple_of(SLOW) => Reply::ok().after(SLOWLY),
        true => Reply::ok(),
    }
}

fn read_report(request: &Request<'_>) -> Option<(u64, Report)> {
    let body: Value = serde_json::from_slice(request.body).ok()?;
    let report = Report {
        number: request.path.strip_prefix('/')?.parse().ok()?,
        webhook_id: request.header("webhook-id")?.to_owned(),
        end: body["status"].as_u64().zip(body["error"].as_u64())?,
        received: false,
    };
    Some((body["id"].as_str()?.parse().ok()?, report))
}
