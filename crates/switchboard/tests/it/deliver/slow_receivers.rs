//! Slow and failing receivers do not affect a healthy receiver or the database.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::fixture::start_with;
use crate::rest::service::{Service, sms_with};

/// A service whose network reports at once.
fn start() -> Service {
    start_with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "0")
    })
}

/// Sends messages that are reported to `url`, a thousand in each request.
fn send_many(service: &Service, url: &str, count: usize) {
    let numbers: Vec<String> = (0..count).map(|n| format!("+3712{n:07}")).collect();
    for numbers in numbers.chunks(1_000) {
        let body = sms_with(&json!({ "to": numbers, "dlrUrl": url, "testMode": 1 }));
        assert_eq!(service.accept(&body).len(), numbers.len());
    }
}

/// Reads the database of a service.
struct Database(Connection);

impl Database {
    fn open(service: &Service) -> Self {
        let path = service.server.data_dir().join("switchboard.db");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Self(Connection::open_with_flags(path, flags).expect("the file opens"))
    }

    fn number(&self, sql: &str) -> i64 {
        let number = self.0.query_row(sql, [], |row| row.get(0));
        number.expect("a number")
    }

    /// The sum of all claims of waiting callbacks.
    fn claims(&self) -> i64 {
        self.number("SELECT coalesce(sum(attempt), 0) FROM callback_queue")
    }

    fn wait_for_reports(&self, count: usize) {
        wait_until("all messages have ended", || {
            let created = self.number("SELECT count(*) FROM callback");
            usize::try_from(created).is_ok_and(|created| created >= count)
        });
    }
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_true() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        thread::sleep(Duration::from_millis(20)); // tidy: polls a state, with a deadline
    }
}

/// Regression test: slow receivers filled the memory for callbacks, and all other receivers waited.
#[test]
fn slow_receivers_do_not_delay_a_healthy_one() {
    const SLOW: usize = 6;
    const REPORTS: usize = 3_700;
    const HEALTHY: usize = 100;

    let service = start();
    let answer = Duration::from_secs(9);
    let slow: Vec<Receiver> = (0..SLOW)
        .map(|_| {
            let receiver = Receiver::builder().on_request(|_, _| {});
            receiver.script(move |_| Reply::ok().after(answer)).start()
        })
        .collect();
    for receiver in &slow {
        send_many(&service, &receiver.url("/dlr"), REPORTS);
    }
    let database = Database::open(&service);
    database.wait_for_reports(SLOW * REPORTS);
    let healthy = Receiver::start();
    send_many(&service, &healthy.url("/dlr"), HEALTHY);
    let all_came = healthy.wait_for(HEALTHY, TEST_TIMEOUT);
    assert!(all_came, "{} of {HEALTHY} reports came", healthy.count());
    let waiting = database.number("SELECT count(*) FROM callback_queue");
    assert!(waiting > 0, "the slow receivers are done already");
}

/// Regression test: each pause claimed the whole backlog and released it again.
#[test]
fn the_backlog_of_a_paused_receiver_is_not_claimed() {
    const REPORTS: usize = 2_000;
    /// The first attempts, and those that check whether the receiver is back.
    const MAX_CLAIMS: i64 = 60;

    let service = start();
    let failing = Receiver::builder()
        .script(|_| Reply::answer(500, "no"))
        .start();
    send_many(&service, &failing.url("/dlr"), REPORTS);
    let database = Database::open(&service);
    database.wait_for_reports(REPORTS);
    wait_until("the receiver is paused", || {
        let held = database.number("SELECT count(*) FROM callback_queue WHERE owner > 0");
        failing.count() > 0 && held == 0
    });
    let (claims, attempts) = (database.claims(), failing.count());
    wait_until("it was called again after two pauses", || {
        failing.count() >= attempts + 2
    });
    let more = database.claims() - claims;
    assert!(
        more <= MAX_CLAIMS,
        "{more} claims for {} attempts",
        failing.count() - attempts
    );
    let waiting = database.number("SELECT count(*) FROM callback_queue");
    assert_eq!(usize::try_from(waiting), Ok(REPORTS), "none is lost");
}
