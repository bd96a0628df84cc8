//! The contents of the database at the end, read without the service, and whether the database is intact.

use std::collections::BTreeSet;
use std::path::Path;

use domain::Code;
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls};

use super::log::{CANCELLED, FinalState};
use super::requests::number_in;

const MESSAGES: &str =
    "SELECT id, recipient, body, status, error, state, price_micros, account_id FROM message";
/// For each account: the balance (from the newest ledger entry), the sum of the ledger, and the sum without credits.
const FUNDS: &str = "
    SELECT a.id,
        coalesce((SELECT n.balance_micros FROM ledger AS n WHERE n.account_id = a.id ORDER BY n.id DESC LIMIT 1), 0),
        CAST(coalesce(sum(l.amount_micros), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN l.kind = 1 THEN 0 ELSE l.amount_micros END), 0) AS BIGINT)
    FROM account AS a LEFT JOIN ledger AS l ON l.account_id = a.id GROUP BY a.id";
/// Reports that wait or are parked.
const UNDELIVERED_REPORTS: &str = "SELECT message_id FROM callback WHERE state IN (0, 1)";
/// Messages with a part that two attempts have settled. Only the owner of a message may settle it, so there are none.
const SETTLED_TWICE: &str =
    "SELECT id FROM transit WHERE id IS NOT NULL GROUP BY id, part HAVING count(*) > 1";
const INBOUND: &str = "SELECT id, body, account_id, incomplete FROM inbound";
const TABLES: &str = "
    SELECT relname::text FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE relkind = 'r' AND n.nspname = 'public'";
const CHECK_INDEXES: &str = "
    SELECT count(bt_index_check(c.oid, true)) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_am AS a ON a.oid = c.relam JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE a.amname = 'btree' AND n.nspname = 'public' AND c.relkind = 'i' AND i.indisvalid";
/// `message.state` of a cancelled message.
const STATE_CANCELLED: i16 = 2;

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: u64,
    /// The request number in its text; the text of a PIN has none.
    pub(super) number: Option<u64>,
    pub(super) to: u64,
    pub(super) final_state: Option<FinalState>,
    pub(super) account: i64,
    pub(super) price: i64,
}

/// A stored text from a handset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InboundRow {
    pub(super) id: u64,
    pub(super) text: String,
    pub(super) account: Option<i64>,
    pub(super) is_incomplete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccountFunds {
    pub(super) account: i64,
    pub(super) balance: i64,
    pub(super) ledger: i64,
    /// The sum of the ledger entries that messages caused.
    pub(super) traffic: i64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct DatabaseContents {
    pub(super) rows: Vec<Row>,
    pub(super) inbound: Vec<InboundRow>,
    pub(super) funds: Vec<AccountFunds>,
    /// Messages with a report that waits or is parked, and texts from handsets with such a callback.
    pub(super) undelivered_reports: BTreeSet<u64>,
    /// Messages with a part that was settled twice.
    pub(super) settled_twice: Vec<u64>,
    /// What the integrity checks of the database found.
    pub(super) damage: Vec<String>,
}

impl Row {
    fn read(
        id: i64,
        to: i64,
        body: &[u8],
        (status, error, state): (Option<i16>, Option<i16>, i16),
        price: i64,
        account: i64,
    ) -> Self {
        let ended = status.zip(error);
        let final_state =
            ended.map(|(status, error)| (unsigned(status.into()), unsigned(error.into())));
        Self {
            id: unsigned(id),
            number: number_in(body),
            to: unsigned(to),
            final_state: final_state.or((state == STATE_CANCELLED).then_some(CANCELLED)),
            account,
            price,
        }
    }

    /// Its price, or nothing if it was refunded.
    pub(super) fn cost(&self) -> i64 {
        match self.final_state {
            Some(CANCELLED) => 0,
            Some((_, error)) if is_refunded(error) => 0,
            _ => self.price,
        }
    }
}

fn is_refunded(error: u64) -> bool {
    let code = u16::try_from(error).ok().and_then(Code::new);
    code.is_some_and(Code::is_refunded)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A connection to a `PostgreSQL` server with administrator rights.
pub(super) struct AdminConnection {
    runtime: Runtime,
    client: Client,
}

impl AdminConnection {
    pub(super) fn connect(url: &str) -> Result<Self, String> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let connected = runtime.block_on(tokio_postgres::connect(url, NoTls));
        let (client, connection) = connected.map_err(|error| error.to_string())?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }

    pub(super) fn query(&self, sql: &str) -> Result<Vec<tokio_postgres::Row>, String> {
        let rows = self.runtime.block_on(self.client.query(sql, &[]));
        rows.map_err(|error| format!("{error:?}"))
    }

    pub(super) fn execute(&self, sql: &str) -> Result<(), String> {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.map_err(|error| format!("{error:?}"))
    }

    pub(super) fn count(&self, sql: &str) -> Result<i64, String> {
        Ok(self.query(sql)?[0].get(0))
    }

    /// Shows the rows of messages that have not ended, to find the cause.
    pub(super) fn describe_unfinished(&self) -> String {
        let rows = self.query(
            "SELECT m.id, m.state, m.parts, m.parts_left,
                (SELECT string_agg(q::text, ' ') FROM queue AS q WHERE q.id = m.id),
                (SELECT string_agg(t::text, ' ') FROM transit AS t WHERE t.id = m.id),
                (SELECT string_agg(n::text, ' ') FROM node AS n)
            FROM message AS m WHERE m.final_us IS NULL AND m.state <> 1",
        );
        let describe = |row: &tokio_postgres::Row| {
            let (id, state): (i64, i16) = (row.get(0), row.get(1));
            let (parts, left): (i16, Option<i16>) = (row.get(2), row.get(3));
            let rows_elsewhere: [Option<String>; 3] = [row.get(4), row.get(5), row.get(6)];
            format!(
                "{id}: state {state}, {left:?} of {parts} parts left; queue, transit, nodes: {rows_elsewhere:?}"
            )
        };
        match rows {
            Ok(rows) => rows.iter().map(describe).collect(),
            Err(error) => error,
        }
    }

    pub(super) fn read_contents(&self) -> Result<DatabaseContents, String> {
        let read = |row: &tokio_postgres::Row| {
            let final_state = (row.get(3), row.get(4), row.get(5));
            Row::read(
                row.get(0),
                row.get(1),
                row.get(2),
                final_state,
                row.get(6),
                row.get(7),
            )
        };
        let inbound = |row: &tokio_postgres::Row| InboundRow {
            id: unsigned(row.get(0)),
            text: String::from_utf8_lossy(row.get(1)).into_owned(),
            account: row.get(2),
            is_incomplete: row.get(3),
        };
        let funds = |row: &tokio_postgres::Row| AccountFunds {
            account: row.get(0),
            balance: row.get(1),
            ledger: row.get(2),
            traffic: row.get(3),
        };
        let ids = |sql| -> Result<Vec<u64>, String> {
            Ok(self
                .query(sql)?
                .iter()
                .map(|row| unsigned(row.get(0)))
                .collect())
        };
        Ok(DatabaseContents {
            rows: self.query(MESSAGES)?.iter().map(read).collect(),
            inbound: self.query(INBOUND)?.iter().map(inbound).collect(),
            funds: self.query(FUNDS)?.iter().map(funds).collect(),
            undelivered_reports: ids(UNDELIVERED_REPORTS)?.into_iter().collect(),
            settled_twice: ids(SETTLED_TWICE)?,
            damage: self.find_damage(),
        })
    }

    /// Checks every index against its table, and reads every row of every table.
    fn find_damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        match self.execute("CREATE EXTENSION IF NOT EXISTS amcheck") {
            Ok(()) => damage.extend(self.query(CHECK_INDEXES).err()),
            Err(error) => println!("amcheck is not installed, so indexes are not checked: {error}"),
        }
        let tables = self.query(TABLES).unwrap_or_else(|error| {
            damage.push(error);
            Vec::new()
        });
        for table in tables {
            let table: String = table.get(0);
            let read_all = format!("SELECT count(*), sum(length(t::text)) FROM \"{table}\" AS t");
            damage.extend(self.query(&read_all).err());
        }
        damage
    }
}

/// [`AdminConnection::read_contents`] for a `SQLite` file.
pub(super) fn read_sqlite(file: &Path) -> rusqlite::Result<DatabaseContents> {
    let db = rusqlite::Connection::open(file)?;
    let read = |row: &rusqlite::Row<'_>| {
        let body: Vec<u8> = row.get(2)?;
        let final_state = (row.get(3)?, row.get(4)?, row.get(5)?);
        Ok(Row::read(
            row.get(0)?,
            row.get(1)?,
            &body,
            final_state,
            row.get(6)?,
            row.get(7)?,
        ))
    };
    let inbound = |row: &rusqlite::Row<'_>| {
        let body: Vec<u8> = row.get(1)?;
        Ok(InboundRow {
            id: row.get(0).map(unsigned)?,
            text: String::from_utf8_lossy(&body).into_owned(),
            account: row.get(2)?,
            is_incomplete: row.get(3)?,
        })
    };
    let funds = |row: &rusqlite::Row<'_>| {
        Ok(AccountFunds {
            account: row.get(0)?,
            balance: row.get(1)?,
            ledger: row.get(2)?,
            traffic: row.get(3)?,
        })
    };
    let id = |row: &rusqlite::Row<'_>| row.get(0).map(unsigned);
    let text = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let checks: Vec<String> = list(&db, "PRAGMA integrity_check", text)?;
    Ok(DatabaseContents {
        rows: list(&db, MESSAGES, read)?,
        inbound: list(&db, INBOUND, inbound)?,
        funds: list(&db, FUNDS, funds)?,
        undelivered_reports: list(&db, UNDELIVERED_REPORTS, id)?.into_iter().collect(),
        settled_twice: list(&db, SETTLED_TWICE, id)?,
        damage: checks.into_iter().filter(|line| line != "ok").collect(),
    })
}

/// [`AdminConnection::count`] for a `SQLite` file.
pub(super) fn count_sqlite(file: &Path, sql: &str) -> rusqlite::Result<i64> {
    let db = rusqlite::Connection::open(file)?;
    db.query_row(sql, [], |row| row.get(0))
}

fn list<T>(
    db: &rusqlite::Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.collect()
}
