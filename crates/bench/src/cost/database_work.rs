//! What `PostgreSQL` does for the messages of a turn, from its own statistics and its write-ahead log.

use crate::processor_time::{self, ProcessorTime};
use anyhow::{Context, Result};
use testkit::TestDatabase;

const EXTENSIONS: &str = "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_walinspect";
const SERVER: &str =
    r"SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1), current_database()";
/// Forgets earlier statements.
const START: &str = "SELECT pg_current_wal_flush_lsn(), pg_stat_statements_reset()";
const END: &str =
    "SELECT pg_current_wal_flush_lsn(), coalesce(sum(calls), 0) FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";
/// The types of records are named as in `pg_get_wal_stats`. `+INIT` marks the first record on a new page.
const WAL: &str = "
    SELECT coalesce(sum(count) FILTER (WHERE type = 'Transaction/COMMIT'), 0),
        coalesce(sum(count) FILTER (WHERE type LIKE 'Heap/INSERT%'), 0),
        coalesce(sum(count) FILTER (WHERE type LIKE 'Heap/HOT_UPDATE%'), 0),
        coalesce(sum(count) FILTER (WHERE type LIKE 'Heap/UPDATE%'), 0),
        coalesce(sum(count) FILTER (WHERE type LIKE 'Heap/DELETE%'), 0),
        coalesce(sum(count) FILTER (WHERE type IN
            ('Btree/INSERT_LEAF', 'Btree/INSERT_POST', 'Btree/SPLIT_L', 'Btree/SPLIT_R')), 0),
        CAST(sum(record_bytes) AS BIGINT), CAST(sum(page_bytes) AS BIGINT)
    FROM pg_get_wal_stats('{from}', '{to}', TRUE)
        AS s (type, count, count_part, record_bytes, record_part, page_bytes, page_part, bytes, bytes_part)";
const STATEMENTS: &str = r"
    SELECT calls, rows, CAST(total_exec_time * 1000 AS BIGINT), regexp_replace(query, '\s+', ' ', 'g')
    FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY total_exec_time DESC LIMIT 25";

/// The work for all messages of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseWork {
    pub(crate) statements: u64,
    pub(crate) commits: u64,
    pub(crate) inserted: u64,
    /// Updates that left the indexes alone.
    pub(crate) hot_updated: u64,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
    pub(crate) index_entries: u64,
    /// Without whole pages: their number depends on the time of the last checkpoint.
    pub(crate) record_bytes: u64,
    pub(crate) page_bytes: u64,
}

/// A statement, and what it took in a turn.
pub(crate) struct Statement {
    pub(crate) calls: u64,
    pub(crate) rows: u64,
    pub(crate) microseconds: u64,
    pub(crate) text: String,
}

/// The database of a turn, on a server of this machine.
pub(crate) struct Postgres<'a> {
    database: &'a TestDatabase,
    database_name: String,
    server_pid: u32,
}

/// A position in the write-ahead log.
pub(crate) struct Position(String);

impl<'a> Postgres<'a> {
    pub(crate) fn new(database: &'a TestDatabase) -> Result<Self> {
        database
            .execute_blocking(EXTENSIONS)
            .context("this needs pg_stat_statements and pg_walinspect of PostgreSQL 15 or newer")?;
        let mut server = row(database, SERVER)?;
        Ok(Self {
            database,
            server_pid: server[0].parse()?,
            database_name: server.swap_remove(1),
        })
    }

    /// The time of all its processes, except sessions of other databases.
    pub(crate) fn processor_time(&self) -> Result<ProcessorTime> {
        let is_counted = |title: &str| serves(title, &self.database_name);
        processor_time::of_process_and_children(self.server_pid, is_counted)
    }

    /// Starts to count.
    pub(crate) fn start(&self) -> Result<Position> {
        Ok(Position(row(self.database, START)?.swap_remove(0)))
    }

    /// The work since the start.
    pub(crate) fn work_since(&self, start: &Position) -> Result<DatabaseWork> {
        let end = row(self.database, END)?;
        let sql = WAL.replace("{from}", &start.0);
        let row = row(self.database, &sql.replace("{to}", &end[0]))?;
        let counts: Vec<u64> = row
            .iter()
            .map(|count| count.parse())
            .collect::<Result<_, _>>()?;
        Ok(DatabaseWork {
            statements: end[1].parse()?,
            commits: counts[0],
            inserted: counts[1],
            hot_updated: counts[2],
            updated: counts[3],
            deleted: counts[4],
            index_entries: counts[5],
            record_bytes: counts[6],
            page_bytes: counts[7],
        })
    }

    /// The statements that took the most time.
    pub(crate) fn statements(&self) -> Result<Vec<Statement>> {
        let rows = self.database.query_blocking(STATEMENTS)?;
        let statement = |row: Vec<String>| {
            Ok(Statement {
                calls: row[0].parse()?,
                rows: row[1].parse()?,
                microseconds: row[2].parse()?,
                text: row[3].clone(),
            })
        };
        rows.into_iter().map(statement).collect()
    }
}

fn row(database: &TestDatabase, sql: &str) -> Result<Vec<String>> {
    let mut rows = database.query_blocking(sql)?;
    rows.pop().context("the query has no rows")
}

/// Whether a process of the server works for this database or for all of them, by its title. The title of a session is
/// `postgres: USER DATABASE HOST(PORT) STATE`.
fn serves(title: &str, database: &str) -> bool {
    let mut words = title.split_whitespace().skip(2);
    match (words.next(), words.next()) {
        (Some(other), Some(client)) if client.ends_with(')') => other == database,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn only_sessions_of_other_databases_are_left_out() {
        for (title, expected) in [
            ("postgres: postgres test_1 127.0.0.1(5000) idle", true),
            ("postgres: postgres test_2 127.0.0.1(5001) SELECT", false),
            ("postgres: checkpointer ", true),
            ("postgres: autovacuum worker test_2", true),
            ("postgres: logical replication launcher ", true),
            ("", true),
        ] {
            assert_eq!(serves(title, "test_1"), expected, "{title}");
        }
    }
}
