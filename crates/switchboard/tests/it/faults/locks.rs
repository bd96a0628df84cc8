//! A process that stands still in the middle of a transaction.

use std::time::{Duration, Instant};

use testkit::{Backend, StallControl};

use super::database_away::Administrator;
use super::signal;
use super::waiting::wait_until;
use super::way::{Bounds, WINDOW, Way};

const CALLERS: usize = 32;
/// How long a node counts as alive that gives no sign of it.
const LEASE: Duration = Duration::from_secs(10);
/// So often it is stopped, until that is in the middle of a transaction.
const STOPS: usize = 200;
/// Transactions that are waited for, not at work.
const IDLE: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%'
        AND state_change < clock_timestamp() - interval '100 milliseconds'";
const UNDER_WAY: &str = "
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";

/// Whatever it had locked is free before others take it for dead, and when it wakes up, it goes on.
#[test]
fn a_stopped_process_holds_no_lock_beyond_its_lease() {
    let control = StallControl::start();
    let way = Way::start(Backend::Postgres);
    let url = way.subject.server.database_url().expect("PostgreSQL");
    let administrator = Administrator::connect(url);
    let pid = way.subject.server.pid();
    let crowd = way.crowd(CALLERS);
    way.wait_for_answered(100);

    let stopped = (0..STOPS).find_map(|_| {
        way.wait_for_answered(1);
        signal::send("STOP", pid);
        let at = Instant::now();
        wait_until("what was asked for is done", || {
            administrator.count(UNDER_WAY) == administrator.count(IDLE)
        });
        let caught = administrator.count(IDLE) > 0;
        if !caught {
            signal::send("CONT", pid);
        }
        caught.then_some(at)
    });
    let stopped = stopped.expect("it is stopped in the middle of a transaction");
    wait_until("no transaction is open", || {
        administrator.count(UNDER_WAY) == 0
    });
    let free = Instant::now();
    signal::send("CONT", pid);
    let held = control.running(stopped, free);
    println!("locks were held for {:?}", free - stopped);
    assert!(
        held < LEASE,
        "locks were held for {held:?}, without stalls of the machine"
    );

    way.wait_for_answered(100);
    crowd.leave();
    way.check(Bounds {
        after_each_crash: 0,
        otherwise: WINDOW,
    });
}
