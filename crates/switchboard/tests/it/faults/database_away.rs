//! `PostgreSQL` drops the connections, or is not there at all.

use std::net::{TcpListener, ToSocketAddrs};
use std::process::Command;
use std::sync::Arc;

use testkit::{Backend, TempDir, TestDatabase};
use tokio::runtime::{self, Runtime};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, NoTls};

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::Ledger;
use super::proxy::Proxy;
use super::subject::{Shape, Subject, builder};
use super::waiting::wait_until;
use super::way::{Bounds, Way};
use crate::rest::service::binary;

const CALLERS: usize = 32;
const STORMS: usize = 12;
const WAY_STORMS: usize = 40;
const END_CONNECTIONS: &str = "
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

#[test]
fn lost_connections_refuse_a_few_and_lose_nothing() {
    let mut subject = Subject::start(Backend::Postgres);
    let administrator = Administrator::connect(subject.server.database_url().expect("PostgreSQL"));
    let ledger: Arc<Ledger> = Arc::default();
    let crowd = Crowd::enter(&subject.sender(Shape::Plain), CALLERS, &ledger);
    let mut dice = Dice::throw();
    let mut ended = 0;
    for _ in 0..STORMS {
        let calm = usize::try_from(1 + dice.below(300)).expect("a few hundred");
        ledger.wait_for_accepted(calm);
        ended += administrator.end_connections();
    }
    ledger.wait_for_accepted(500);
    wait_until("it is ready", || subject.readiness() == 200);
    crowd.leave();
    assert!(ended > 0, "no connection was there to be ended");
    assert_eq!(ledger.entries().unanswered, Vec::<u64>::new());
    ledger.check(&subject, &mut dice);
    subject.server.restart();
    ledger.check(&subject, &mut dice);
}

/// A server that stands still accepts connections and never speaks. It must not keep a node from the next one.
#[test]
fn a_server_that_says_nothing_is_passed_over() {
    // The system takes connections for it, as it does for a process that was stopped.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = listener.local_addr().expect("an address");
    let database = TestDatabase::create_blocking();
    let at = database.url().find('@').expect("a user") + 1;
    let (user, rest) = database.url().split_at(at);
    let url = format!("{user}{silent},{rest}?target_session_attrs=read-write");
    let mut subject = Subject::from(builder(Backend::Sqlite).env("SWITCHBOARD_DATABASE__URL", url));
    wait_until("it is ready", || subject.readiness() == 200);
    assert_eq!(subject.sender(Shape::Plain).send(1).status, 200);
    assert!(subject.server.terminate().success());
}

/// The storms hit everything that the service stores: orders, claims, answers of the network, receipts, reports. A write
/// whose outcome nobody knows is no crash: whatever the network took, it gets only once.
#[test]
fn lost_connections_leave_nothing_unfinished() {
    let way = Way::start(Backend::Postgres);
    let administrator =
        Administrator::connect(way.subject.server.database_url().expect("PostgreSQL"));
    let crowd = way.crowd(CALLERS);
    let mut dice = Dice::throw();
    for _ in 0..WAY_STORMS {
        let calm = usize::try_from(1 + dice.below(100)).expect("a hundred");
        way.wait_for_answered(calm);
        administrator.end_connections();
    }
    way.wait_for_answered(100);
    crowd.leave();
    way.check(Bounds::default());
}

/// Worse than a connection that ends is an answer that gets lost: what was asked for has happened, and the service does not
/// know. Whatever it is, a claim or a result, a receipt or a report: nothing is forgotten, and nothing is sent twice.
#[test]
fn lost_answers_leave_nothing_unfinished() {
    let database = TestDatabase::create_blocking();
    let config: tokio_postgres::Config = database.url().parse().expect("a URL");
    let [Host::Tcp(host)] = config.get_hosts() else {
        panic!("one host: {}", database.url());
    };
    let server = format!("{host}:{}", config.get_ports()[0]);
    let mut addresses = server.to_socket_addrs().expect("an address");
    let proxy = Proxy::start(addresses.next().expect("an address"));
    let url = database.url().replace(&server, &proxy.addr().to_string());
    // The backend is by the URL: this is a service on PostgreSQL.
    let way = Way::from(builder(Backend::Sqlite).env("SWITCHBOARD_DATABASE__URL", url));
    let crowd = way.crowd(CALLERS);
    let mut dice = Dice::throw();
    for _ in 0..WAY_STORMS {
        let calm = usize::try_from(1 + dice.below(100)).expect("a hundred");
        way.wait_for_answered(calm);
        proxy.lose_answers();
    }
    way.wait_for_answered(100);
    crowd.leave();
    way.check(Bounds::default());
}

#[test]
fn without_its_database_it_does_not_start_and_says_so() {
    let folder = TempDir::create("nowhere").expect("a temporary folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let output = Command::new(binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .env(
            "SWITCHBOARD_DATABASE__URL",
            format!("postgres://someone:verysecret@{address}/nothing"),
        )
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot start without its database"), "{said}");
    assert!(said.contains(&address), "which one: {said}");
    assert!(!said.contains("verysecret"), "{said}");
}

/// Someone with rights on the server, who sits on another connection.
pub(super) struct Administrator {
    runtime: Runtime,
    client: Client,
}

impl Administrator {
    pub(super) fn connect(url: &str) -> Self {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be built");
        let connected = runtime.block_on(tokio_postgres::connect(url, NoTls));
        let (client, connection) = connected.expect("the database answers");
        runtime.spawn(connection);
        Self { runtime, client }
    }

    /// Ends every other connection and says how many there were.
    fn end_connections(&self) -> i64 {
        let ended = self
            .runtime
            .block_on(self.client.query_one(END_CONNECTIONS, &[]));
        ended.expect("an administrator may").get(0)
    }

    /// Runs statements.
    pub(super) fn run(&self, sql: &str) {
        let ran = self.runtime.block_on(self.client.batch_execute(sql));
        ran.expect("an administrator may");
    }

    /// One number.
    pub(super) fn count(&self, sql: &str) -> i64 {
        let counted = self.runtime.block_on(self.client.query_one(sql, &[]));
        counted.expect("the database answers").get(0)
    }
}
