//! Fills a database with the messages of a month by SQL, because the service itself would take minutes.

use crate::fill::database_file;
use anyhow::{Context, Result};
use rusqlite::Connection;
use testkit::Server;

/// The account whose pages are measured. It has the most messages.
pub(super) const ACCOUNT: &str = "bench";
const OTHERS: [&str; 4] = ["second", "third", "fourth", "quiet"];

/// A filled database.
pub(super) struct FilledDatabase {
    message: u64,
}

impl FilledDatabase {
    /// The address of a page, with IDs of this database filled in.
    pub(super) fn path(&self, page: &str) -> String {
        page.replace("{message}", &self.message.to_string())
            .replace("{number}", "%2B37120000007")
            .replace("{callback}", &(self.message / 2).to_string())
    }
}

/// Stops the server, fills its database and starts it again.
pub(super) fn fill(server: &mut Server, messages: u64) -> Result<FilledDatabase> {
    let mut ids = Vec::new();
    for name in [ACCOUNT].iter().chain(&OTHERS) {
        let created = server.cli_json(&["account", "create", "--name", name, "--json"]);
        let id = created["id"].as_u64().context("an account without an ID")?;
        ids.push(id);
    }
    server.terminate();
    match server.database() {
        Some(database) => {
            for sql in statements(&POSTGRES, messages, &ids) {
                database.execute_blocking(&sql)?;
            }
        }
        None => fill_file(server, messages, &ids)?,
    }
    server.restart();
    // The first message of each twenty belongs to this account, see `statements`.
    Ok(FilledDatabase {
        message: messages / 2 / 20 * 20 + 1,
    })
}

fn fill_file(server: &Server, messages: u64, ids: &[u64]) -> Result<()> {
    let db = Connection::open(database_file(server)?)?;
    for sql in statements(&SQLITE, messages, ids) {
        db.execute_batch(&sql)?;
    }
    Ok(())
}

/// The differences between the SQL of the two databases.
struct Dialect {
    before: &'static str,
    /// A query for the numbers `i` from 1 to `{count}`.
    numbers: &'static str,
    /// The bytes of a text.
    bytes: fn(&str) -> String,
    now_us: &'static str,
    attempt: (&'static str, &'static str),
    after: &'static str,
}

const SQLITE: Dialect = Dialect {
    before: "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144",
    numbers: "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n)",
    bytes: |text| format!("CAST({text} AS BLOB)"),
    now_us: "(unixepoch() * 1000000)",
    attempt: ("id", "id * 1048576 + 1"),
    after: "ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)",
};
const POSTGRES: Dialect = Dialect {
    before: "SELECT 1",
    numbers: "(SELECT CAST(i AS bigint) AS i FROM generate_series(1, {count}) AS s (i))",
    bytes: |text| format!("convert_to({text}, 'UTF8')"),
    now_us: "CAST(extract(epoch FROM now()) * 1000000 AS bigint)",
    attempt: ("callback_id, number, message_id", "id, 1, message_id"),
    after: "VACUUM ANALYZE",
};

/// A month of messages. Of twenty messages, ten belong to the first account, four each to the second and third, and two
/// to the fourth; one of ten thousand belongs to the last account. Of a hundred, eleven failed. The last fifty are at a
/// carrier, and five hundred more are scheduled. Every second message has a callback that was received.
fn statements(dialect: &Dialect, count: u64, ids: &[u64]) -> Vec<String> {
    let numbers = dialect.numbers.replace("{count}", &count.to_string());
    let now = dialect.now_us;
    let step = 30 * 86_400 * 1_000_000 / count;
    let &[first, second, third, fourth, quiet] = ids else {
        return Vec::new();
    };
    let account = format!(
        "CASE WHEN i % 10000 = 5000 THEN {quiet} WHEN i % 20 < 8 THEN {first} WHEN i % 20 < 12 THEN {second}
            WHEN i % 20 < 16 THEN {third} WHEN i % 20 < 18 THEN {fourth} ELSE {first} END"
    );
    let open = count - 50;
    let outcome = "i * 7919 % 100";
    let (body, url) = (
        (dialect.bytes)(
            "'Your code is ' || (i * 7919 % 1000000) || '. It is valid for ten minutes.'",
        ),
        (dialect.bytes)("'https://hooks.example.com/dlr'"),
    );
    let (attempt_key, attempt_value) = dialect.attempt;
    let (ok, reason) = ((dialect.bytes)("'OK'"), (dialect.bytes)("'received'"));
    vec![
        dialect.before.to_owned(),
        format!(
            "INSERT INTO message (id, account_id, recipient, originator, body, coding, coding_given, parts, priority, dlr_url,
                accepted_us, expires_us, state, final_us, status, error, price_micros, network, channel)
            SELECT i, {account}, CASE WHEN i % 5000 = 1 THEN 37120000007 ELSE 37120000000 + i * 7919 % 300000 END,
                CASE i % 3 WHEN 0 THEN 'Acme' WHEN 1 THEN 'Shop' ELSE '+37120000009' END, {body}, 0, FALSE, 1, 1,
                CASE i % 2 WHEN 1 THEN {url} END,
                {now} - ({count} - i) * {step}, {now} + 86400000000, 0,
                CASE WHEN i <= {open} THEN {now} - ({count} - i) * {step} + 4000000 END,
                CASE WHEN i > {open} THEN NULL WHEN {outcome} < 10 THEN 2 WHEN {outcome} < 11 THEN 16 ELSE 1 END,
                CASE WHEN i > {open} THEN NULL WHEN {outcome} < 4 THEN 1 WHEN {outcome} < 7 THEN 13 WHEN {outcome} < 10 THEN 40
                    WHEN {outcome} < 11 THEN 2 ELSE 0 END,
                55000, CASE i % 4 WHEN 0 THEN 2472001 WHEN 1 THEN 2472002 WHEN 2 THEN 2622001 ELSE 2342010 END, 0
            FROM {numbers} AS n"
        ),
        format!("UPDATE id_block SET next = {count} + 20000"),
        format!(
            "INSERT INTO message (id, account_id, recipient, originator, body, coding, coding_given, parts, priority,
                accepted_us, scheduled_us, expires_us, state, price_micros, channel)
            SELECT {count} + i, {first}, 37120000000 + i, 'Acme', {body}, 0, FALSE, 1, 1, {now}, {now} + 86400000000 + i,
                {now} + 172800000000, 1, 55000, 0
            FROM {numbers} AS n WHERE i <= 500"
        ),
        "INSERT INTO queue (owner, lane, due_us, id, attempt)
        SELECT 0, priority, scheduled_us, id, 0 FROM message WHERE state = 1
        UNION ALL SELECT -1, 0, expires_us, id, 1 FROM message WHERE state = 0 AND final_us IS NULL"
            .to_owned(),
        format!(
            "INSERT INTO transit (carrier, reference, id, part, parts, taken_us, status, error)
            SELECT 'simulator', {}, id, 1, 1, accepted_us + 1000000, status, error FROM message
            WHERE id > {count} - 100000 AND state = 0",
            (dialect.bytes)("'ref-' || id")
        ),
        "INSERT INTO callback (id, account_id, message_id, created_us, due_us, state, tries, kind)
        SELECT (id + 1) / 2, account_id, id, final_us, 0, CASE WHEN id % 9999 = 0 THEN 1 ELSE 2 END, 1, 0 FROM message
        WHERE dlr_url IS NOT NULL AND final_us IS NOT NULL"
            .to_owned(),
        format!(
            "INSERT INTO callback_attempt ({attempt_key}, at_us, status, elapsed_ms, body, address, reason)
            SELECT {attempt_value}, created_us + 100000, 200, 12, {ok}, '192.0.2.1:443', {reason} FROM callback"
        ),
        "INSERT INTO traffic (account_id, span, begins, channel, network, status, error, shard, messages, parts, cost_micros)
        SELECT account_id, 0, final_us / 3600000000, channel, 0, status, error, 0, count(*), sum(parts),
            sum(price_micros)
        FROM message WHERE final_us IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6, 7
        UNION ALL
        SELECT account_id, 1, final_us / 86400000000, channel, network, status, error, 0, count(*), sum(parts),
            sum(price_micros)
        FROM message WHERE final_us IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6, 7"
            .to_owned(),
        dialect.after.to_owned(),
    ]
}
