//! `PostgreSQL` drops connections, loses answers, or does not exist.

use std::net::{TcpListener, ToSocketAddrs};
use std::process::Command;
use std::sync::Arc;

use testkit::{Backend, TestDatabase, temp_dir};
use tokio::runtime::{self, Runtime};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, NoTls};

use super::answer_log::AnswerLog;
use super::callers::Callers;
use super::end_to_end::{DuplicateLimits, EndToEndTest};
use super::lossy_proxy::LossyProxy;
use super::rng::Rng;
use super::test_service::{RequestKind, TestService, builder};
use super::waiting::wait_until;
use crate::rest::service::binary;

const CALLERS: usize = 32;
/// How often the connections are ended.
const ROUNDS: usize = 12;
const END_TO_END_ROUNDS: usize = 40;
const END_CONNECTIONS: &str = "
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

#[test]
fn lost_connections_refuse_a_few_and_lose_nothing() {
    let mut service = TestService::start(Backend::Postgres);
    let admin = AdminConnection::connect(service.server.database_url().expect("PostgreSQL"));
    let answer_log: Arc<AnswerLog> = Arc::default();
    let callers = Callers::start(&service.sender(RequestKind::Plain), CALLERS, &answer_log);
    let mut rng = Rng::seeded();
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let more = usize::try_from(1 + rng.below(300)).expect("a few hundred");
        answer_log.wait_for_accepted(more);
        ended += admin.end_connections();
    }
    answer_log.wait_for_accepted(500);
    wait_until("it is ready", || service.ready_status() == 200);
    callers.stop();
    assert!(ended > 0, "there was no connection to end");
    assert_eq!(answer_log.entries().unanswered, Vec::<u64>::new());
    answer_log.check(&service, &mut rng);
    service.server.restart();
    answer_log.check(&service, &mut rng);
}

/// A frozen server accepts connections and never answers. The node must try the next server.
#[test]
fn a_server_that_never_answers_is_skipped() {
    // The kernel accepts connections to a listener that nobody reads, as it does for a stopped process.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = listener.local_addr().expect("an address");
    let database = TestDatabase::create_blocking();
    let at = database.url().find('@').expect("a user") + 1;
    let (user, rest) = database.url().split_at(at);
    let url = format!("{user}{silent},{rest}?target_session_attrs=read-write");
    let mut service =
        TestService::from(builder(Backend::Sqlite).env("SWITCHBOARD_DATABASE__URL", url));
    wait_until("it is ready", || service.ready_status() == 200);
    assert_eq!(service.sender(RequestKind::Plain).send(1).status, 200);
    assert!(service.server.terminate().success());
}

/// Lost connections hit everything that the service stores: requests, claims, answers of the network, receipts,
/// reports. The service does not crash, so the network gets each message only once, even after a write of unknown
/// outcome.
#[test]
fn lost_connections_leave_nothing_unfinished() {
    let test = EndToEndTest::start(Backend::Postgres);
    let admin = AdminConnection::connect(test.service.server.database_url().expect("PostgreSQL"));
    let callers = test.callers(CALLERS);
    let mut rng = Rng::seeded();
    for _ in 0..END_TO_END_ROUNDS {
        let more = usize::try_from(1 + rng.below(100)).expect("a hundred");
        test.wait_for_answered(more);
        admin.end_connections();
    }
    test.wait_for_answered(100);
    callers.stop();
    test.check(DuplicateLimits::default());
}

/// A lost answer is worse than a lost connection: the database has done the write, and the service does not know. No
/// claim, result, receipt or report may be lost, and nothing is sent twice.
#[test]
fn lost_answers_leave_nothing_unfinished() {
    let database = TestDatabase::create_blocking();
    let config: tokio_postgres::Config = database.url().parse().expect("a URL");
    let [Host::Tcp(host)] = config.get_hosts() else {
        panic!("one host: {}", database.url());
    };
    let server = format!("{host}:{}", config.get_ports()[0]);
    let mut addresses = server.to_socket_addrs().expect("an address");
    let proxy = LossyProxy::start(addresses.next().expect("an address"));
    let url = database.url().replace(&server, &proxy.addr().to_string());
    // The URL decides: this service runs on PostgreSQL.
    let test = EndToEndTest::from(builder(Backend::Sqlite).env("SWITCHBOARD_DATABASE__URL", url));
    let callers = test.callers(CALLERS);
    let mut rng = Rng::seeded();
    for _ in 0..END_TO_END_ROUNDS {
        let more = usize::try_from(1 + rng.below(100)).expect("a hundred");
        test.wait_for_answered(more);
        proxy.lose_answers();
    }
    test.wait_for_answered(100);
    callers.stop();
    test.check(DuplicateLimits::default());
}

#[test]
fn without_its_database_it_does_not_start_and_says_so() {
    let folder = temp_dir("nowhere").expect("a temporary folder");
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
    assert!(
        said.contains(&address),
        "the error names the server: {said}"
    );
    assert!(!said.contains("verysecret"), "{said}");
}

/// A separate connection to the server, with administrator rights.
pub(super) struct AdminConnection {
    runtime: Runtime,
    client: Client,
}

impl AdminConnection {
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

    /// Ends every other connection and returns how many there were.
    fn end_connections(&self) -> i64 {
        let ended = self
            .runtime
            .block_on(self.client.query_one(END_CONNECTIONS, &[]));
        ended.expect("the statement succeeds").get(0)
    }

    pub(super) fn run(&self, sql: &str) {
        let ran = self.runtime.block_on(self.client.batch_execute(sql));
        ran.expect("the statements succeed");
    }

    /// Runs a statement that returns one number.
    pub(super) fn count(&self, sql: &str) -> i64 {
        let counted = self.runtime.block_on(self.client.query_one(sql, &[]));
        counted.expect("the database answers").get(0)
    }
}
