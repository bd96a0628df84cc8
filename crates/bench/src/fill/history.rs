//! Millions of old messages: they were delivered, and their callbacks were received.

use super::database_file;
use anyhow::Result;
use rusqlite::Connection;
use std::time::Instant;
use testkit::{Server, TestDatabase};

/// The messages are spread over this many days, up to yesterday.
pub(crate) const DAYS: u64 = 30;

/// Fills the database of a server that has not sent anything yet, directly. A server on SQLite is stopped meanwhile.
/// `carrier` took the messages.
pub(crate) fn fill(server: &mut Server, carrier: &str, rows: u64) -> Result<()> {
    let started = Instant::now();
    if let Some(database) = server.database() {
        fill_postgres(database, carrier, rows)?;
    } else {
        server.terminate();
        fill_sqlite(server, carrier, rows)?;
        server.try_restart()?;
    }
    eprintln!(
        "  {rows} messages of history in {:.0} s",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn fill_postgres(database: &TestDatabase, carrier: &str, rows: u64) -> Result<()> {
    for back in (1..=DAYS).rev() {
        database.execute_blocking(&day(carrier, rows / DAYS, back))?;
    }
    database.execute_blocking("VACUUM ANALYZE")?;
    Ok(())
}

fn fill_sqlite(server: &Server, carrier: &str, rows: u64) -> Result<()> {
    let sql = SQLITE.replace("{carrier}", carrier);
    let sql = sql.replace("{rows}", &rows.to_string());
    let sql = sql.replace("{days}", &DAYS.to_string());
    Connection::open(database_file(server)?)?.execute_batch(&sql)?;
    Ok(())
}

/// Fills one day, `back` days ago. The partitions are attached after they are filled, so that their indexes are built
/// in one step. Parts are stored for three days.
fn day(carrier: &str, rows: u64, back: u64) -> String {
    let parts = match back {
        ..=3 => PARTS,
        _ => "",
    };
    let day = DAY.replace("{parts}", parts);
    let day = day.replace("{carrier}", carrier);
    let day = day.replace("{rows}", &rows.to_string());
    day.replace("{back}", &back.to_string())
}

/// Without a journal, because an interrupted benchmark leaves nothing that is used again.
const SQLITE: &str = "
    PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;
    CREATE TEMP TABLE history AS
    SELECT next AS first_id, unixepoch() * 1000000 - {days} * 86400000000 AS first_us FROM id_block;
    BEGIN;
    INSERT INTO message (id, account_id, recipient, originator, body, coding, coding_given, parts, priority, dlr_url,
        accepted_us, expires_us, state, final_us, status, error, price_micros, network, channel)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows} - 1)
    SELECT first_id + n, 1, 37120000000 + n * 7919 % 9000000, 'Switchboard',
        CAST('Your code is ' || (100000 + n * 7919 % 900000) || '. It is valid for 10 minutes.' AS BLOB), 0, FALSE, 1,
        1, CAST('https://hooks.example.com/dlr' AS BLOB), at_us, at_us + 259200000000, 0, at_us + 4000000, 1, 0, 55000,
        2472001, 0
    FROM (SELECT n, first_id, first_us + n * ({days} - 1) * 86400 / {rows} * 1000000 AS at_us FROM numbers, history);
    INSERT INTO callback (account_id, message_id, created_us, due_us, state, tries, kind)
    SELECT account_id, id, final_us, final_us, 2, 1, 0 FROM message ORDER BY id;
    INSERT INTO callback_attempt (id, at_us, status, elapsed_ms, body, address, reason)
    SELECT id * 1048576 + 1, created_us, 200, 12, CAST('OK' AS BLOB), '192.0.2.1:443', CAST('received' AS BLOB)
    FROM callback ORDER BY id;
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, status, error)
    SELECT '{carrier}', CAST(1000000000 + id AS BLOB), id, 1, 1, accepted_us, 1, 0 FROM message
    WHERE accepted_us > (SELECT first_us + ({days} - 3) * 86400000000 FROM history) ORDER BY id;
    UPDATE id_block SET next = next + {rows};
    COMMIT;
    PRAGMA journal_mode = WAL";
const DAY: &str = "
    SET synchronous_commit = off; SET maintenance_work_mem = '256MB';
    DO $fill$ DECLARE
        day BIGINT := CAST(extract(epoch FROM now()) AS BIGINT) / 86400 - {back};
        first BIGINT := (day - 20454) << 32;
        name TEXT := to_char(DATE '1970-01-01' + CAST(day AS INT), 'YYYYMMDD');
        parent TEXT;
    BEGIN
        FOREACH parent IN ARRAY ARRAY['message', 'callback', 'callback_attempt'] LOOP
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS)', parent || '_' || name, parent);
        END LOOP;
        EXECUTE format($sql$
            INSERT INTO %I (id, account_id, recipient, originator, body, coding, coding_given, parts, priority, dlr_url,
                accepted_us, expires_us, state, final_us, status, error, price_micros, network, channel)
            SELECT $1 + n, 1, 37120000000 + n * 7919 %% 9000000, 'Switchboard',
                convert_to('Your code is ' || (100000 + n * 7919 %% 900000) || '. It is valid for 10 minutes.', 'UTF8'),
                0, FALSE, 1, 1, convert_to('https://hooks.example.com/dlr', 'UTF8'), t.at_us, t.at_us + 259200000000, 0,
                t.at_us + 4000000, 1, 0, 55000, 2472001, 0
            FROM generate_series(CAST(0 AS BIGINT), {rows} - 1) AS n
            CROSS JOIN LATERAL (SELECT $2 * 86400000000 + n * 86000000000 / {rows} AS at_us) AS t
        $sql$, 'message_' || name) USING first, day;
        EXECUTE format($sql$
            INSERT INTO %I (account_id, message_id, created_us, due_us, state, tries, kind)
            SELECT account_id, id, final_us, final_us, 2, 1, 0 FROM %I
        $sql$, 'callback_' || name, 'message_' || name);
        EXECUTE format($sql$
            INSERT INTO %I (callback_id, number, message_id, at_us, status, elapsed_ms, body, address, reason)
            SELECT id, 1, message_id, created_us, 200, 12, convert_to('OK', 'UTF8'), '192.0.2.1:443',
                convert_to('received', 'UTF8')
            FROM %I
        $sql$, 'callback_attempt_' || name, 'callback_' || name);
        FOREACH parent IN ARRAY ARRAY['message', 'callback', 'callback_attempt'] LOOP
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent,
                parent || '_' || name, first, first + 4294967296);
        END LOOP;
        {parts}
    END $fill$";
const PARTS: &str = "
        INSERT INTO transit (carrier, reference, id, part, parts, taken_us, status, error)
        SELECT '{carrier}', convert_to(md5(CAST(m.id AS TEXT)), 'UTF8'), m.id, 1, 1, m.accepted_us, 1, 0
        FROM message AS m WHERE m.id >= first AND m.id < first + {rows};";

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn only_recent_days_have_parts() {
        for (back, has_parts) in [(30, false), (4, false), (3, true), (1, true)] {
            let sql = day("alpha", 7, back);
            assert_eq!(sql.contains("INTO transit"), has_parts, "{back}");
            assert_eq!(sql.contains("'alpha'"), has_parts, "{back}");
            assert!(!sql.contains('{'), "{back}: everything is replaced");
        }
    }
}
