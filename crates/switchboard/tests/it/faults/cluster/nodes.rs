//! Nodes that run the real binary on one database, with a network, a receiver and callers outside.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use domain::Clock as _;
use engine::clock::SystemClock;
use serde_json::Value;
use testkit::receiver::Receiver;
use testkit::relay::Relay;
use testkit::{Backend, Server, ServerBuilder, TEST_TIMEOUT, temp_dir};

use super::callers::{Caller, Callers, Endpoints};
use super::checker::{self, Tolerance, Verdict};
use super::contents::{self, AdminConnection, DatabaseContents};
use super::handsets;
use super::log::{Answer, Log};
use super::network::Network;
use super::receiver;
use super::requests::PlannedRequest;
use super::smpp_clients::{self, SmppAccess};
use crate::faults::test_service::builder;
use crate::faults::waiting::{POLL, wait_until};
use crate::smpp_server::{self, smpp_address};

/// How many parts a node may have at the network at once.
pub(super) const WINDOW: usize = 24;
const BINDS: usize = 3;
const CALLERS: usize = 4;
/// Scheduled messages that are sent once all faults are over, to check that they are on time.
const SCHEDULED: usize = 24;
/// If no message has ended for this long, the rest are stuck.
const STUCK_AFTER: Duration = Duration::from_mins(3);
/// A message is overdue this long after its time.
const OVERDUE_US: i64 = 1_000_000;
/// Nobody waits for messages that are scheduled for later than this from now.
const FAR_AHEAD_US: i64 = 60_000_000;
const RATES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n\
    Latvia,LV,All,All,247,,0.05\n";

/// The database of the nodes.
#[derive(Debug, Clone)]
pub(super) enum Database {
    /// A file; there is only one node.
    Sqlite,
    /// The URLs of a server for the nodes and for the checker.
    Postgres { nodes: String, checker: String },
}

pub(super) struct Setup<'a> {
    pub(super) nodes: usize,
    pub(super) database: Database,
    /// Changes the settings of each node.
    pub(super) configure: &'a dyn Fn(usize, ServerBuilder) -> ServerBuilder,
}

/// A node behind relays, whose addresses stay the same after a restart of the node.
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) relay: Relay,
    /// For SMPP clients.
    pub(super) smpp_relay: Relay,
}

impl Node {
    fn new(server: Server) -> Self {
        let node = Self {
            server,
            relay: Relay::start(None).expect("a relay"),
            smpp_relay: Relay::start(None).expect("a relay"),
        };
        node.open();
        node
    }

    /// Connects new clients to the process, which has started.
    pub(super) fn open(&self) {
        self.relay.set_target(Some(self.server.addr()));
        self.smpp_relay.set_target(Some(smpp_address(&self.server)));
    }

    /// Connects no more clients.
    pub(super) fn close(&self) {
        self.relay.set_target(None);
        self.smpp_relay.set_target(None);
    }
}

/// The nodes of a scenario and everything around them.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) log: Arc<Log>,
    pub(super) to_network: Relay,
    pub(super) to_receiver: Relay,
    pub(super) token: String,
    smpp_password: String,
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
            move |request| receiver::receive(&log, request)
        });
        let receiver = receiver.start();
        let to_network = Relay::start(Some(network.addr())).expect("a relay");
        let to_receiver = Relay::start(Some(receiver.addr())).expect("a relay");
        let mut nodes = Vec::new();
        let (mut token, mut smpp_password) = (String::new(), String::new());
        for index in 0..setup.nodes {
            let node = builder(Backend::Sqlite).config(carriers(&to_network));
            let node = match &setup.database {
                Database::Sqlite => node,
                Database::Postgres { nodes, .. } => node.env("SWITCHBOARD_DATABASE__URL", nodes),
            };
            let server = (setup.configure)(index, node).start();
            if index == 0 {
                token = set_up_account(&server);
                smpp_password = smpp_clients::set_up_user(&server);
                set_up_number(&server, &to_receiver);
            }
            nodes.push(Node::new(server));
        }
        let cluster = Self {
            nodes,
            log,
            to_network,
            to_receiver,
            token,
            smpp_password,
            database: setup.database.clone(),
            network,
            _receiver: receiver,
        };
        cluster.wait_until_ready();
        cluster.network.add_texts(true);
        cluster
    }

    pub(super) fn endpoints(&self) -> Endpoints {
        let relays = |relay: fn(&Node) -> &Relay| {
            let addresses = self.nodes.iter().map(|node| relay(node).addr());
            addresses.collect()
        };
        Endpoints {
            addresses: relays(|node| &node.relay),
            token: self.token.clone(),
            receiver: format!("http://{}", self.to_receiver.addr()),
            smpp: SmppAccess {
                addresses: relays(|node| &node.smpp_relay),
                password: self.smpp_password.clone(),
            },
            log: self.log.clone(),
        }
    }

    pub(super) fn callers(&self) -> Callers {
        Callers::start(&self.endpoints(), CALLERS)
    }

    /// How many messages were answered.
    pub(super) fn answered(&self) -> usize {
        let observed = self.log.observed();
        let answered = observed.requests.values().filter_map(|record| record.ids());
        answered.map(<[u64]>::len).sum()
    }

    /// Waits until this many more messages are answered.
    pub(super) fn wait_for_answered(&self, more: usize) {
        let goal = self.answered() + more;
        wait_until("more messages are answered", || self.answered() >= goal);
    }

    /// Kills a node. The parts that it had at the network may be sent again.
    pub(super) fn kill(&mut self, index: usize) {
        let from = self.log.now_ms();
        let node = &mut self.nodes[index];
        node.server.kill9();
        self.disconnect(index, from);
    }

    /// Called after a node has ended: closes its relay, and records that the parts it had at the network may be sent
    /// again.
    pub(super) fn disconnect(&mut self, index: usize, from_ms: u64) {
        let node = &mut self.nodes[index];
        node.close();
        node.relay.close_all();
        node.smpp_relay.close_all();
        self.log.record_fault(from_ms, WINDOW);
    }

    /// Starts a node again after it has ended.
    pub(super) fn restart(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.server.restart();
        node.open();
    }

    /// A connection to the database for the checker.
    pub(super) fn admin(&self) -> AdminConnection {
        let Database::Postgres { checker, .. } = &self.database else {
            panic!("SQLite has no server");
        };
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            match AdminConnection::connect(checker) {
                Ok(admin) => return admin,
                Err(error) => assert!(Instant::now() < deadline, "no connection: {error}"),
            }
            thread::sleep(POLL * 10); // tidy: polls a state that nothing announces
        }
    }

    /// Until then, messages of dead nodes wait.
    pub(super) fn wait_until_dead_nodes_are_removed(&self) {
        let nodes = i64::try_from(self.nodes.len()).expect("a few");
        wait_until("dead nodes are removed", || {
            self.count("SELECT count(*) FROM node") == nodes
        });
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

    /// Called once all faults are over: lets everything finish, then checks all guarantees.
    pub(super) fn finish(mut self, callers: Callers, tolerance: Tolerance) -> Verdict {
        self.wait_until_ready();
        let smpp_clients = callers.stop();
        self.network.add_texts(false);
        self.wait_for_backlog();
        self.log.faults_are_over();
        let mut caller = Caller::new(&self.endpoints(), 0);
        for _ in 0..SCHEDULED {
            caller.send(&PlannedRequest::make_scheduled(&self.log), || false);
        }
        self.repeat_keyed_requests(&mut caller);
        self.wait_for_final_states();
        if matches!(self.database, Database::Postgres { .. }) {
            print!("{}", self.admin().describe_unfinished());
        }
        self.wait_for_reports();
        self.wait_for_texts();
        if !self.log.observed().has_smpp_receipt() {
            let unused = "no receipt came to an SMPP client".to_owned();
            self.log.record_unexpected(unused);
        }
        self.check_all_statuses(&mut caller);
        drop(smpp_clients);
        for node in &mut self.nodes {
            let status = node.server.terminate();
            if !status.success() {
                self.log
                    .record_unexpected(format!("a node ended with {status}"));
            }
        }
        let contents = self.read_contents();
        self.log.record_stalls();
        let verdict = checker::check(&self.log.observed(), &contents, tolerance);
        if !verdict.violations.is_empty() {
            self.print_outputs();
        }
        verdict
    }

    /// Repeats each request with a key until it has a definite answer.
    fn repeat_keyed_requests(&self, caller: &mut Caller) {
        let unanswered: Vec<PlannedRequest> = {
            let observed = self.log.observed();
            let unanswered = observed.requests.values().filter(|record| {
                let request = &record.request;
                request.is_keyed
                    && record.ids().is_none()
                    && !record.answers.contains(&Answer::Refused(400))
            });
            unanswered.map(|record| record.request.clone()).collect()
        };
        for request in unanswered {
            wait_until("a request with a key is answered", || {
                matches!(
                    caller.try_once(&request),
                    Answer::Ids(_) | Answer::Refused(400)
                )
            });
        }
    }

    /// Waits until no message is overdue: one behind a backlog is late without a fault. Only without callers, because a
    /// slow machine may never catch up with them.
    fn wait_for_backlog(&self) {
        wait_while_decreasing(|| {
            let before_us = now_us() - OVERDUE_US;
            self.count(&format!(
                "SELECT count(*) FROM queue WHERE due_us < {before_us}"
            ))
        });
    }

    /// A backlog may take long, as long as messages keep ending.
    fn wait_for_final_states(&self) {
        wait_while_decreasing(|| {
            let before_us = now_us() + FAR_AHEAD_US;
            self.count(&format!(
                "SELECT count(*) FROM message WHERE final_us IS NULL
                 AND (scheduled_us IS NULL OR scheduled_us < {before_us})"
            ))
        });
    }

    /// The number that the statement finds; more than any if it fails.
    pub(super) fn count(&self, sql: &str) -> i64 {
        match &self.database {
            Database::Sqlite => contents::count_sqlite(&self.file(), sql).unwrap_or(i64::MAX),
            Database::Postgres { .. } => self.admin().count(sql).unwrap_or(i64::MAX),
        }
    }

    fn wait_for_reports(&self) {
        wait_while_decreasing(|| {
            let observed = self.log.observed();
            let due = observed
                .requests
                .values()
                .filter(|record| record.request.is_reported);
            let due = due.flat_map(|record| record.ids().unwrap_or_default());
            let missing = due.filter(|id| {
                let reports = observed.reports.get(id).map_or(&[][..], Vec::as_slice);
                !reports.iter().any(|report| report.received)
            });
            i64::try_from(missing.count()).unwrap_or(i64::MAX)
        });
    }

    /// Waits until each text from a handset is acknowledged and called back.
    fn wait_for_texts(&self) {
        wait_while_decreasing(|| {
            let unfinished = self.log.observed().texts.unfinished();
            i64::try_from(unfinished).unwrap_or(i64::MAX)
        });
    }

    fn check_all_statuses(&self, caller: &mut Caller) {
        let answered: Vec<u64> = {
            let observed = self.log.observed();
            let ids = observed.requests.values().filter_map(|record| record.ids());
            ids.flatten().copied().collect()
        };
        for id in answered {
            wait_until("the status of a message is answered", || {
                caller.check_status(id)
            });
        }
    }

    fn read_contents(&self) -> DatabaseContents {
        match &self.database {
            Database::Sqlite => contents::read_sqlite(&self.file()).expect("the file can be read"),
            Database::Postgres { .. } => {
                let contents = self.admin().read_contents();
                contents.expect("the database can be read")
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.nodes[0].server.data_dir().join("switchboard.db")
    }

    /// Prints the output of the nodes, to find the cause of a violation.
    fn print_outputs(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            println!("--- node {index} ---\n{}", node.server.output());
        }
    }
}

/// Returns once nothing is left, or once the number has not decreased for a long time. Then the checker finds
/// violations.
fn wait_while_decreasing(left: impl Fn() -> i64) {
    let (mut fewest, mut since) = (i64::MAX, Instant::now());
    loop {
        let now = left();
        if now == 0 || since.elapsed() > STUCK_AFTER {
            return;
        }
        if now < fewest {
            (fewest, since) = (now, Instant::now());
        }
        thread::sleep(POLL * 20); // tidy: polls a state that nothing announces
    }
}

fn now_us() -> i64 {
    SystemClock.now().as_microsecond()
}

/// Imports prices, creates an account that may send, and returns its token.
fn set_up_account(server: &Server) -> String {
    let account = [
        "account",
        "create",
        "--name",
        "acme",
        "--balance",
        "1000000.00",
        "--json",
    ];
    server.cli_json(&account);
    let folder = temp_dir("rates").expect("a temporary folder");
    let file = folder.path().join("rates.csv");
    fs::write(&file, RATES).expect("the list is written");
    let import = server.cli(&["rates", "import", file.to_str().expect("a plain path")]);
    assert!(import.status.success(), "{import:?}");
    let token: Value = server.cli_json(&["token", "create", "--account", "acme", "--json"]);
    token["token"].as_str().expect("a token").to_owned()
}

/// Gives the account the number that handsets send to.
fn set_up_number(server: &Server, to_receiver: &Relay) {
    let url = format!("http://{}{}", to_receiver.addr(), handsets::PATH);
    let number = ["number", "add", "--number", handsets::NUMBER];
    let owner = ["--account", "acme", "--url", &url];
    let added = server.cli(&[number, owner].concat());
    assert!(added.status.success(), "{added:?}");
}

fn carriers(to_network: &Relay) -> String {
    let window = WINDOW / BINDS;
    format!(
        "{}[[carrier]]\nname = \"net\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n\
         binds = {BINDS}\nwindow = {window}\nresponse_timeout_s = 5\nunknown_tries = 100\n",
        smpp_server::CONFIG,
        to_network.addr()
    )
}
