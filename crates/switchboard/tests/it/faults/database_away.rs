//! `PostgreSQL` drops the connections, or is not there at all.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use testkit::{Backend, TempDir};
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls};

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::Ledger;
use super::subject::{Shape, Subject};
use super::waiting::wait_until;

const CALLERS: usize = 32;
const STORMS: usize = 12;
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

#[test]
fn without_its_database_it_does_not_start_and_says_so() {
    let folder = TempDir::create("nowhere").expect("a temporary folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let output = Command::new(env!("CARGO_BIN_EXE_switchboard"))
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
struct Administrator {
    runtime: Runtime,
    client: Client,
}

impl Administrator {
    fn connect(url: &str) -> Self {
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
}
