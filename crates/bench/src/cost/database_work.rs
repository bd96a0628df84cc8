//! What `PostgreSQL` does for the messages of a turn, from its own statistics and its write-ahead log.

use crate::processor_time::{self, ProcessorTime};
use anyhow::{Context, Result};
use testkit::TestDatabase;

const EXTENSIONS: &str = "CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_walinspect";
const SERVER_PID: &str = r"SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)";
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
pub(super) struct DatabaseWork {
    pub(super) statements: u64,
    pub(super) commits: u64,
    pub(super) inserted: u64,
    /// Updates that left the indexes alone.
    pub(super) hot_updated: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
    pub(super) index_entries: u64,
    /// Without whole pages: their number depends on the time of the last checkpoint.
    pub(super) record_bytes: u64,
    pub(super) page_bytes: u64,
}

/// A statement, and what it took in a turn.
pub(super) struct Statement {
    pub(super) calls: u64,
    pub(super) rows: u64,
    pub(super) microseconds: u64,
    pub(super) text: String,
}

/// The database of a turn, on a server of this machine.
pub(super) struct Postgres<'a> {
    database: &'a TestDatabase,
    server_pid: u32,
}

/// A position in the write-ahead log.
pub(super) struct Position(String);

impl<'a> Postgres<'a> {
    pub(super) fn new(database: &'a TestDatabase) -> Result<Self> {
        database
            .execute_blocking(EXTENSIONS)
            .context("this needs pg_stat_statements and pg_walinspect of PostgreSQL 15 or newer")?;
        let server_pid = row(database, SERVER_PID)?[0].parse()?;
        Ok(Self {
            database,
            server_pid,
        })
    }

    /// The time of all its processes.
    pub(super) fn processor_time(&self) -> Result<ProcessorTime> {
        processor_time::of_process_and_children(self.server_pid)
    }

    /// Starts to count.
    pub(super) fn start(&self) -> Result<Position> {
        Ok(Position(row(self.database, START)?.swap_remove(0)))
    }

    /// The work since the start.
    pub(super) fn work_since(&self, start: &Position) -> Result<DatabaseWork> {
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
    pub(super) fn statements(&self) -> Result<Vec<Statement>> {
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
