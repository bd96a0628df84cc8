//! Tables that were empty when their statements were planned, and are not any more.
//!
//! Plans are made once for a connection and kept. One that reads a whole table is cheap while the table is empty, and
//! takes minutes when a backlog has gathered in it, until the server's statistics notice.

use domain::Clock;
use domain::clock::SystemClock;
use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::receiver::Receiver;
use testkit::{Backend, PATIENCE};

use super::database_away::Administrator;
use super::subject::{Subject, builder};
use super::waiting::wait_until;

/// Messages of a wave that are sent at once; and that are scheduled.
const SENT: usize = 20;
const SCHEDULED: usize = 3;
/// What a wave may read by the indexes of a table: far more than it needs, and less than half of what is in the table.
const READ: i64 = 20_000;
/// 50,000 rows in each table, out of everybody's way: they belong to nobody who is there, and their time is next year.
const FILL: &str = "
    INSERT INTO queue (owner, lane, due_us, id, attempt, account_id, expires_us)
    SELECT -1, 0, 4000000000000000 + n, 9000000000000000 + n, 0, 0, 4000000000000000
    FROM generate_series(1, 50000) AS n;
    INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
    SELECT -900000, 4000000000000000 + n, 9000000000000000 + n, 0, 1 FROM generate_series(1, 50000) AS n;
    INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    SELECT 900000 + n, '\\x00', '\\x00', 1, 1, 1, 4000000000000000 FROM generate_series(1, 50000) AS n;
    INSERT INTO message SELECT (jsonb_populate_record(m, jsonb_build_object('id', m.id + 1000000 + n))).*
    FROM message AS m CROSS JOIN generate_series(1, 50000) AS n
    WHERE m.id = (SELECT id FROM message WHERE final_us IS NOT NULL LIMIT 1);
    INSERT INTO transit SELECT (jsonb_populate_record(t, jsonb_build_object(
        'reference', concat('\\x', lpad(to_hex(n), 16, '0')), 'id', t.id + 1000000 + n))).*
    FROM transit AS t CROSS JOIN generate_series(1, 50000) AS n WHERE t.id = (SELECT min(id) FROM transit)";
const OTHERS: &str = "
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
const TABLES: [&str; 5] = [
    "queue",
    "callback_queue",
    "idempotency",
    "message",
    "transit",
];

#[test]
fn plans_of_empty_tables_are_good_for_full_ones() {
    let subject = Subject::from(builder(Backend::Postgres));
    let url = subject.server.database_url().expect("PostgreSQL");
    let administrator = Administrator::connect(url);
    let mut waves = Waves {
        subject,
        receiver: Receiver::start(),
        number: 0,
    };
    // The statistics are not to come to the rescue.
    for table in ["queue", "callback_queue", "idempotency"] {
        administrator.run(&format!(
            "ALTER TABLE {table} SET (autovacuum_enabled = false)"
        ));
    }
    waves.pass();
    administrator.run("DELETE FROM idempotency; DELETE FROM transit");
    administrator
        .run("VACUUM ANALYZE queue, callback_queue, idempotency, message, callback, transit");
    // All plans are made anew, for tables that are empty.
    waves.pass();
    administrator.run(FILL);
    let before = TABLES.map(|table| read_from(&administrator, table));
    waves.pass();
    // What a connection has read is counted at the latest when it ends.
    waves.subject.server.terminate();
    wait_until("its connections have ended", || {
        administrator.count(OTHERS) == 0
    });
    for (table, before) in TABLES.into_iter().zip(before) {
        let read = read_from(&administrator, table) - before;
        println!(
            "{read} rows of {table} were read by {} messages",
            SENT + SCHEDULED
        );
        assert!(read < READ, "{read} rows of {table} were read");
    }
}

/// How many rows of a table were read by its indexes; of one that is partitioned, in all its partitions.
fn read_from(administrator: &Administrator, table: &str) -> i64 {
    administrator.count(&format!(
        "SELECT sum(coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables WHERE relname ~ '^{table}(_[a-z0-9]+)?$'"
    ))
}

/// Messages that go all the way: stored, claimed, sent, ended, reported.
struct Waves {
    subject: Subject,
    receiver: Receiver,
    number: usize,
}

impl Waves {
    fn pass(&mut self) {
        self.number += 1;
        let to: Vec<String> = (0..SENT).map(|n| format!("+371200000{n:02}")).collect();
        let key = format!("wave-{}", self.number);
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
            self.receiver.wait_for(self.number * all, PATIENCE),
            "{} reports in wave {}",
            self.receiver.count(),
            self.number
        );
    }

    fn post(&self, fields: &Value, key: &str) -> Response {
        let mut body = json!({
            "from": "Faults", "message": "Hello", "dlrUrl": self.receiver.url("/dlr"),
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let headers = [
            ("X-Service-Token", self.subject.token.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", key),
        ];
        let (addr, body) = (self.subject.server.addr(), body.to_string());
        let answer = http::request(addr, "POST", "/sms", &headers, body.as_bytes());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
    }
}
