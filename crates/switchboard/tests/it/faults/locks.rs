//! A process that is stopped in the middle of a transaction.

use std::time::{Duration, Instant};

use testkit::{Backend, StallMonitor};

use super::database_away::AdminConnection;
use super::end_to_end::{DuplicateLimits, EndToEndTest, WINDOW};
use super::signal;
use super::waiting::wait_until;

const CALLERS: usize = 32;
/// How long a node counts as alive without a heartbeat.
const LEASE: Duration = Duration::from_secs(10);
/// How often the test stops the process to hit a transaction.
const MAX_STOPS: usize = 200;
/// Transactions that are open and wait for the client.
const IDLE_TRANSACTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%'
        AND state_change < clock_timestamp() - interval '100 milliseconds'";
const OPEN_TRANSACTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";

/// Its locks are released before other nodes declare it dead, and it works again when it is continued.
#[test]
fn a_stopped_process_holds_no_lock_beyond_its_lease() {
    let monitor = StallMonitor::start();
    let test = EndToEndTest::start(Backend::Postgres);
    let url = test.service.server.database_url().expect("PostgreSQL");
    let admin = AdminConnection::connect(url);
    let pid = test.service.server.pid();
    let callers = test.callers(CALLERS);
    test.wait_for_answered(100);

    let stopped = (0..MAX_STOPS).find_map(|_| {
        test.wait_for_answered(1);
        signal::send("STOP", pid);
        let at = Instant::now();
        wait_until("no statement is running", || {
            admin.count(OPEN_TRANSACTIONS) == admin.count(IDLE_TRANSACTIONS)
        });
        let is_in_transaction = admin.count(IDLE_TRANSACTIONS) > 0;
        if !is_in_transaction {
            signal::send("CONT", pid);
        }
        is_in_transaction.then_some(at)
    });
    let stopped = stopped.expect("no stop hit a transaction");
    wait_until("no transaction is open", || {
        admin.count(OPEN_TRANSACTIONS) == 0
    });
    let free = Instant::now();
    signal::send("CONT", pid);
    let held = monitor.running(stopped, free);
    println!("locks were held for {:?}", free - stopped);
    assert!(
        held < LEASE,
        "locks were held for {held:?}, without stalls of the machine"
    );

    test.wait_for_answered(100);
    callers.stop();
    test.check(DuplicateLimits {
        after_each_crash: 0,
        otherwise: WINDOW,
    });
}
