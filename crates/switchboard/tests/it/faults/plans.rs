//! Query plans that were made while the tables were empty.
//!
//! A connection makes each plan once and keeps it. A plan that reads a whole table is cheap while the table is empty,
//! but takes minutes once a backlog has grown, until the server updates its statistics.

use std::time::Instant;

use domain::Clock;
use engine::clock::SystemClock;
use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::receiver::Receiver;
use testkit::{Backend, TEST_TIMEOUT};

use super::database_away::AdminConnection;
use super::test_service::{TestService, builder};
use super::waiting::wait_until;

/// Messages of a batch that are sent at once, and that are scheduled.
const SENT: usize = 20;
const SCHEDULED: usize = 3;
/// How many rows of a table a batch may read by indexes: far more than it needs, and far fewer than the table has.
const MAX_READ: i64 = 5_000;
/// How many rows of a table monitoring may read in addition, and in which time: it stops counting at 10,000.
const MAX_MONITORED: i64 = 15_000;
const MONITORED_SECONDS: u64 = 10;
/// Adds rows to each table that nobody works on: messages that wait for receipts, and reports that are due far in the
/// future. The queues get more, since monitoring reads them repeatedly.
const FILL: &str = "
    INSERT INTO queue (owner, lane, due_us, id, attempt, account_id, expires_us)
    SELECT -1, 0, 4000000000000000 + n, 9000000000000000 + n, 0, 0, 4000000000000000
    FROM generate_series(1, 250000) AS n;
    INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
    SELECT 0, 4000000000000000 + n, 9000000000000000 + n, 0, 1 FROM generate_series(1, 250000) AS n;
    INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    SELECT 900000 + n, '\\x00', '\\x00', 1, 1, 1, 4000000000000000 FROM generate_series(1, 50000) AS n;
    INSERT INTO message SELECT (jsonb_populate_record(m, jsonb_build_object('id', m.id + 1000000 + n))).*
    FROM message AS m CROSS JOIN generate_series(1, 50000) AS n
    WHERE m.id = (SELECT id FROM message WHERE final_us IS NOT NULL LIMIT 1);
    INSERT INTO transit SELECT (jsonb_populate_record(t, jsonb_build_object(
        'reference', concat('\\x', lpad(to_hex(n), 16, '0')), 'id', t.id + 1000000 + n))).*
    FROM transit AS t CROSS JOIN generate_series(1, 50000) AS n WHERE t.id = (SELECT min(id) FROM transit)";
const OTHER_CONNECTIONS: &str = "
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
const TABLES: [&str; 5] = [
    "queue",
    "callback_queue",
    "idempotency",
    "message",
    "transit",
];

#[test]
fn plans_made_for_empty_tables_are_good_for_full_ones() {
    let service = TestService::from(builder(Backend::Postgres));
    let url = service.server.database_url().expect("PostgreSQL");
    let admin = AdminConnection::connect(url);
    let mut traffic = Traffic {
        service,
        receiver: Receiver::start(),
        number: 0,
    };
    // New statistics would lead to new plans.
    for table in ["queue", "callback_queue", "idempotency"] {
        admin.run(&format!(
            "ALTER TABLE {table} SET (autovacuum_enabled = false)"
        ));
    }
    traffic.send_batch();
    admin.run("DELETE FROM idempotency; DELETE FROM transit");
    admin.run("VACUUM ANALYZE queue, callback_queue, idempotency, message, callback, transit");
    // All plans are made again, for empty tables.
    traffic.send_batch();
    admin.run(FILL);
    let before = TABLES.map(|table| rows_read(&admin, table));
    let started = Instant::now();
    traffic.send_batch();
    wait_until("monitoring has read the full tables", || {
        traffic
            .metrics()
            .contains("switchboard_callbacks_waiting 10000\n")
    });
    // The server counts what a connection has read when the connection ends, at the latest.
    traffic.service.server.terminate();
    wait_until("the connections of the service have ended", || {
        admin.count(OTHER_CONNECTIONS) == 0
    });
    let readings = started.elapsed().as_secs() / MONITORED_SECONDS + 1;
    let most = MAX_READ + MAX_MONITORED * i64::try_from(readings).expect("a number");
    for (table, before) in TABLES.into_iter().zip(before) {
        let read = rows_read(&admin, table) - before;
        println!(
            "{read} rows of {table} were read by {} messages",
            SENT + SCHEDULED
        );
        assert!(read < most, "{read} rows of {table} were read");
    }
}

/// How many rows were read by the indexes of a table and of its partitions.
fn rows_read(admin: &AdminConnection, table: &str) -> i64 {
    admin.count(&format!(
        "SELECT sum(coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables WHERE relname ~ '^{table}(_[a-z0-9]+)?$'"
    ))
}

/// Sends messages and waits until they are delivered and reported.
struct Traffic {
    service: TestService,
    receiver: Receiver,
    number: usize,
}

impl Traffic {
    fn send_batch(&mut self) {
        self.number += 1;
        let to: Vec<String> = (0..SENT).map(|n| format!("+371200000{n:02}")).collect();
        let key = format!("batch-{}", self.number);
        for _ in 0..2 {
            self.post(&json!({ "to": to }), &key);
        }
        let soon = SystemClock.now() + jiff::SignedDuration::from_secs(2);
        let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        for number in 0..SCHEDULED {
            let body = json!({ "to": "+37120000001", "scheduled": soon });
            self.post(&body, &format!("{key}-{number}"));
        }
        let all = SENT + SCHEDULED;
        assert!(
            self.receiver.wait_for(self.number * all, TEST_TIMEOUT),
            "{} reports after batch {}",
            self.receiver.count(),
            self.number
        );
    }

    fn metrics(&self) -> String {
        let answer = http::request(self.service.server.addr(), "GET", "/metrics", &[], b"");
        answer.expect("an answer").text()
    }

    fn post(&self, fields: &Value, key: &str) -> Response {
        let mut body = json!({
            "from": "Faults", "message": "Hello", "dlrUrl": self.receiver.url("/dlr"),
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let headers = [
            ("X-Service-Token", self.service.token.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", key),
        ];
        let (addr, body) = (self.service.server.addr(), body.to_string());
        let answer = http::request(addr, "POST", "/sms", &headers, body.as_bytes());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
    }
}
