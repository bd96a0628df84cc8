//! What the database holds in the end, read past the service, and whether it is whole.

use std::collections::BTreeSet;
use std::path::Path;

use domain::Code;
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls};

use super::log::{CANCELLED, End};
use super::orders::number_in;

const MESSAGES: &str =
    "SELECT id, recipient, body, status, error, state, price_micros, account_id FROM message";
/// Whose balance (it stands in the newest entry), what the ledger adds up to, and what of that is not a credit.
const PURSES: &str = "
    SELECT a.id,
        coalesce((SELECT n.balance_micros FROM ledger AS n WHERE n.account_id = a.id ORDER BY n.id DESC LIMIT 1), 0),
        CAST(coalesce(sum(l.amount_micros), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN l.kind = 1 THEN 0 ELSE l.amount_micros END), 0) AS BIGINT)
    FROM account AS a LEFT JOIN ledger AS l ON l.account_id = a.id GROUP BY a.id";
/// Reports that wait or are parked.
const UNDELIVERED: &str = "SELECT message_id FROM callback WHERE state IN (0, 1)";
/// Parts that two tries of a message have named: only the owner of a message may do that.
const DOUBLED: &str =
    "SELECT id FROM transit WHERE id IS NOT NULL GROUP BY id, part HAVING count(*) > 1";
const TABLES: &str = "
    SELECT relname::text FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
    WHERE relkind = 'r' AND n.nspname = 'public'";
const CHECK_INDEXES: &str = "
    SELECT count(bt_index_check(c.oid, true)) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_am AS a ON a.oid = c.relam JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE a.amname = 'btree' AND n.nspname = 'public' AND c.relkind = 'i' AND i.indisvalid";
/// `message.state` of one that was taken back.
const TAKEN_BACK: i16 = 2;

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: u64,
    /// The order in its text; none in the text of a PIN.
    pub(super) number: Option<u64>,
    pub(super) to: u64,
    pub(super) end: Option<End>,
    pub(super) account: i64,
    pub(super) price: i64,
}

/// An account's money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Purse {
    pub(super) account: i64,
    pub(super) balance: i64,
    pub(super) ledger: i64,
    /// The part of the ledger that messages caused.
    pub(super) traffic: i64,
}

/// Everything that matters.
#[derive(Debug, Clone, Default)]
pub(super) struct Books {
    pub(super) rows: Vec<Row>,
    pub(super) purses: Vec<Purse>,
    /// Messages with a report that waits or is parked.
    pub(super) undelivered: BTreeSet<u64>,
    /// Messages of which a part was named twice.
    pub(super) doubled: Vec<u64>,
    /// What the database's own checks found.
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
        let end = ended.map(|(status, error)| (unsigned(status.into()), unsigned(error.into())));
        Self {
            id: unsigned(id),
            number: number_in(body),
            to: unsigned(to),
            end: end.or((state == TAKEN_BACK).then_some(CANCELLED)),
            account,
            price,
        }
    }

    /// What it cost in the end.
    pub(super) fn cost(&self) -> i64 {
        match self.end {
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

/// Somebody with rights on a `PostgreSQL` server.
pub(super) struct Administrator {
    runtime: Runtime,
    client: Client,
}

impl Administrator {
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

    /// Runs a statement that gives rows.
    pub(super) fn query(&self, sql: &str) -> Result<Vec<tokio_postgres::Row>, String> {
        let rows = self.runtime.block_on(self.client.query(sql, &[]));
        rows.map_err(|error| format!("{error:?}"))
    }

    pub(super) fn execute(&self, sql: &str) -> Result<(), String> {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.map_err(|error| format!("{error:?}"))
    }

    /// How many messages have not ended, apart from those that wait for a time that is more than a minute ahead.
    pub(super) fn unfinished(&self) -> Result<i64, String> {
        let rows = self.query(
            "SELECT count(*) FROM message WHERE final_us IS NULL AND (scheduled_us IS NULL
             OR scheduled_us < extract(epoch FROM now()) * 1000000 + 60000000)",
        )?;
        Ok(rows[0].get(0))
    }

    /// Where messages that have not ended stand, for whoever looks for the cause.
    pub(super) fn describe_unfinished(&self) -> String {
        let rows = self.query(
            "SELECT m.id, m.state, m.parts, m.parts_left,
                (SELECT string_agg(q::text, ' ') FROM queue AS q WHERE q.id = m.id),
                (SELECT string_agg(t::text, ' ') FROM transit AS t WHERE t.id = m.id),
                (SELECT string_agg(n::text, ' ') FROM node AS n)
            FROM message AS m WHERE m.final_us IS NULL AND m.state <> 1",
        );
        let shown = |row: &tokio_postgres::Row| {
            let (id, state): (i64, i16) = (row.get(0), row.get(1));
            let (parts, left): (i16, Option<i16>) = (row.get(2), row.get(3));
            let places: [Option<String>; 3] = [row.get(4), row.get(5), row.get(6)];
            format!(
                "{id}: state {state}, {left:?} of {parts} parts left; queue, transit, nodes: {places:?}"
            )
        };
        match rows {
            Ok(rows) => rows.iter().map(shown).collect(),
            Err(error) => error,
        }
    }

    pub(super) fn read_books(&self) -> Result<Books, String> {
        let read = |row: &tokio_postgres::Row| {
            let end = (row.get(3), row.get(4), row.get(5));
            Row::read(
                row.get(0),
                row.get(1),
                row.get(2),
                end,
                row.get(6),
                row.get(7),
            )
        };
        let purse = |row: &tokio_postgres::Row| Purse {
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
        Ok(Books {
            rows: self.query(MESSAGES)?.iter().map(read).collect(),
            purses: self.query(PURSES)?.iter().map(purse).collect(),
            undelivered: ids(UNDELIVERED)?.into_iter().collect(),
            doubled: ids(DOUBLED)?,
            damage: self.find_damage(),
        })
    }

    /// Every index against its table, and every row of every table.
    fn find_damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        match self.execute("CREATE EXTENSION IF NOT EXISTS amcheck") {
            Ok(()) => damage.extend(self.query(CHECK_INDEXES).err()),
            Err(error) => println!("amcheck is not there, so indexes are not checked: {error}"),
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

/// The same for a file of `SQLite`.
pub(super) fn read_sqlite(file: &Path) -> rusqlite::Result<Books> {
    let db = rusqlite::Connection::open(file)?;
    let read = |row: &rusqlite::Row<'_>| {
        let body: Vec<u8> = row.get(2)?;
        let end = (row.get(3)?, row.get(4)?, row.get(5)?);
        Ok(Row::read(
            row.get(0)?,
            row.get(1)?,
            &body,
            end,
            row.get(6)?,
            row.get(7)?,
        ))
    };
    let purse = |row: &rusqlite::Row<'_>| {
        Ok(Purse {
            account: row.get(0)?,
            balance: row.get(1)?,
            ledger: row.get(2)?,
            traffic: row.get(3)?,
        })
    };
    let id = |row: &rusqlite::Row<'_>| row.get(0).map(unsigned);
    let text = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let checks: Vec<String> = list(&db, "PRAGMA integrity_check", text)?;
    Ok(Books {
        rows: list(&db, MESSAGES, read)?,
        purses: list(&db, PURSES, purse)?,
        undelivered: list(&db, UNDELIVERED, id)?.into_iter().collect(),
        doubled: list(&db, DOUBLED, id)?,
        damage: checks.into_iter().filter(|line| line != "ok").collect(),
    })
}

/// As [`Administrator::unfinished`].
pub(super) fn unfinished_sqlite(file: &Path) -> rusqlite::Result<i64> {
    let db = rusqlite::Connection::open(file)?;
    db.query_row(
        "SELECT count(*) FROM message WHERE final_us IS NULL AND (scheduled_us IS NULL
         OR scheduled_us < (CAST(strftime('%s', 'now') AS INTEGER) + 60) * 1000000)",
        [],
        |row| row.get(0),
    )
}

fn list<T>(
    db: &rusqlite::Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.collect()
}
