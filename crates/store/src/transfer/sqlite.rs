//! An `SQLite` file as the source or target of a copy.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result, params_from_iter};

use crate::migrations::SQLITE;
use crate::sqlite::{connection, migrate};
use crate::transfer::endpoint::{Hold, Stream};
use crate::transfer::plan::{Batch, Target};
use crate::transfer::value::{Column, Kind};
use crate::transfer::{Row, TransferError};
use crate::{DatabaseUrl, OpenError};

/// During a copy, no checkpoint moves the log into the file.
const SETTINGS: &str = "PRAGMA wal_autocheckpoint = 1000; PRAGMA cache_size = -65536;";
const TABLES: &str = "
    SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
const COLUMNS: &str = "SELECT name, type FROM pragma_table_info(?1)";
/// Tables with numbers that are never reused.
const SEQUENCES: &str = "SELECT name, seq FROM sqlite_sequence";
/// Tables whose next number follows their largest existing number.
const NUMBERED: [&str; 2] = ["account", "token"];

/// A connection to a file.
pub(crate) struct SqliteEndpoint {
    /// `None` only while a statement runs.
    connection: Option<Connection>,
    name: String,
}

impl SqliteEndpoint {
    /// A connection that may write; the file is created when there is none.
    pub(crate) async fn writer(path: &Path) -> Result<Self, TransferError> {
        Self::open(path, |path| {
            let connection = connection::open_writer(path)?;
            connection.execute_batch(SETTINGS)?;
            Ok(connection)
        })
        .await
    }

    /// A connection that only reads.
    pub(crate) async fn reader(path: &Path) -> Result<Self, TransferError> {
        Self::open(path, connection::open_reader).await
    }

    async fn open(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Connection> + Send + 'static,
    ) -> Result<Self, TransferError> {
        let name = DatabaseUrl::Sqlite(path.to_owned()).to_string();
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&path)).await;
        let opened = opened.expect("opening a file does not panic");
        let connection = opened.map_err(|source| OpenError::Open {
            database: name.clone(),
            source: Box::new(source),
        })?;
        Ok(Self {
            connection: Some(connection),
            name,
        })
    }

    /// Runs work on a thread that may block.
    async fn run<T: Send + 'static>(
        &mut self,
        doing: &str,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T, TransferError> {
        let mut connection = self
            .connection
            .take()
            .expect("nobody gives up a statement in the middle");
        let worked = tokio::task::spawn_blocking(move || {
            let outcome = work(&mut connection);
            (connection, outcome)
        });
        let (connection, outcome) = worked.await.expect("statements do not panic");
        self.connection = Some(connection);
        outcome.map_err(|source| TransferError::Database {
            database: self.name.clone(),
            doing: doing.to_owned(),
            source: Box::new(source),
        })
    }

    /// Brings the schema up to date, sealed or not.
    pub(crate) async fn migrate(&mut self) -> Result<(), TransferError> {
        let migrated = self
            .run("migrating", |db| Ok(migrate::apply_missing(db, SQLITE)))
            .await?;
        Ok(migrated?)
    }

    pub(crate) async fn tables(&mut self) -> Result<BTreeSet<String>, TransferError> {
        self.run("listing tables", |db| {
            let mut tables = db.prepare(TABLES)?;
            tables.query_map([], |row| row.get(0))?.collect()
        })
        .await
    }

    pub(crate) async fn columns(
        &mut self,
        table: &'static str,
    ) -> Result<Vec<Column>, TransferError> {
        self.run("listing columns", move |db| {
            let mut columns = db.prepare(COLUMNS)?;
            let column = |row: &rusqlite::Row<'_>| {
                let type_name: String = row.get(1)?;
                Ok(Column {
                    name: row.get(0)?,
                    kind: kind_of(&type_name),
                    type_name,
                })
            };
            columns.query_map([table], column)?.collect()
        })
        .await
    }

    pub(crate) async fn text(&mut self, sql: String) -> Result<Option<String>, TransferError> {
        self.run("reading", move |db| {
            db.query_row(&sql, [], |row| row.get(0)).optional()
        })
        .await
    }

    pub(crate) async fn numbers(
        &mut self,
        sql: String,
    ) -> Result<Vec<Vec<Option<i64>>>, TransferError> {
        self.run("counting", move |db| {
            let mut statement = db.prepare(&sql)?;
            let width = statement.column_count();
            let rows = statement.query_map([], |row| (0..width).map(|at| row.get(at)).collect())?;
            rows.collect()
        })
        .await
    }

    pub(crate) async fn execute(&mut self, sql: String) -> Result<(), TransferError> {
        self.run("writing", move |db| db.execute_batch(&sql)).await
    }

    /// The snapshot begins now, not at the first read.
    pub(crate) async fn begin(&mut self, hold: Hold) -> Result<(), TransferError> {
        let sql = match hold {
            Hold::Snapshot => "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1",
            Hold::Exclusive => "BEGIN IMMEDIATE",
        };
        self.run("beginning to read", |db| db.execute_batch(sql))
            .await
    }

    pub(crate) async fn finish(&mut self, sql: &'static str) -> Result<(), TransferError> {
        self.run("ending a transaction", |db| db.execute_batch(sql))
            .await
    }

    /// Continues after the last row: an open statement could not move to another thread.
    pub(crate) async fn next(&mut self, stream: &mut Stream) -> Result<Vec<Row>, TransferError> {
        let query = &stream.query;
        let order = query.order.join(", ");
        let mut conditions: Vec<String> = query.filter.iter().cloned().collect();
        if stream.position.is_some() {
            let places = vec!["?"; query.order.len()].join(", ");
            conditions.push(format!("({order}) > ({places})"));
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", conditions.join(" AND "))
        };
        let sql = format!(
            "{} {filter} ORDER BY {order} LIMIT {}",
            query.select, query.page
        );
        let position = stream.position.take().unwrap_or_default();
        let width = query.width + query.order.len();
        let mut rows: Vec<Row> = self
            .run("reading rows", move |db| {
                let mut statement = db.prepare_cached(&sql)?;
                let values = params_from_iter(position);
                let row = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
                statement.query_map(values, row)?.collect()
            })
            .await?;
        let query = &stream.query;
        stream.is_over = rows.len() < query.page;
        let mut position = None;
        for row in &mut rows {
            position = Some(row.split_off(query.width));
        }
        stream.position = position;
        Ok(rows)
    }

    pub(crate) async fn apply(
        &mut self,
        target: &Target,
        batch: Batch,
    ) -> Result<(), TransferError> {
        let delete = format!("DELETE FROM {} WHERE {}", target.table, target.by_key);
        let insert = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            target.table,
            target.columns.join(", "),
            target.values.join(", ")
        );
        self.run(&format!("writing {}", target.table), move |db| {
            let transaction = db.transaction()?;
            for key in &batch.deleted {
                let mut delete = transaction.prepare_cached(&delete)?;
                delete.execute(params_from_iter(key))?;
            }
            for row in &batch.inserted {
                let mut insert = transaction.prepare_cached(&insert)?;
                // The last values may be columns that only the other database has.
                let values = row.iter().take(insert.parameter_count());
                insert.execute(params_from_iter(values))?;
            }
            transaction.commit()
        })
        .await
    }

    pub(crate) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, TransferError> {
        self.run("reading sequences", |db| {
            let mut statement = db.prepare(SEQUENCES)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut sequences: Vec<(String, i64)> = rows.collect::<Result<_>>()?;
            for table in NUMBERED {
                let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
                sequences.push((table.to_owned(), db.query_row(&sql, [], |row| row.get(0))?));
            }
            Ok(sequences)
        })
        .await
    }

    /// Only tables with `AUTOINCREMENT` have a row in `sqlite_sequence`.
    pub(crate) async fn advance_sequence(
        &mut self,
        table: &str,
        number: i64,
    ) -> Result<(), TransferError> {
        let table = table.to_owned();
        self.run("setting a sequence", move |db| {
            let declared = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1
                AND sql LIKE '%AUTOINCREMENT%'";
            if !db.prepare(declared)?.exists([&table])? {
                return Ok(());
            }
            let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
            if db.execute(raise, (&table, number))? == 0 {
                let add = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
                db.execute(add, (&table, number))?;
            }
            Ok(())
        })
        .await
    }

    /// Writes a consistent, compact copy of the file while others use it.
    pub(crate) async fn copy_into(&mut self, path: &Path) -> Result<(), TransferError> {
        let path = path.display().to_string();
        self.run("copying", move |db| {
            db.execute("VACUUM INTO ?1", [path]).map(drop)
        })
        .await
    }

    /// How many bytes the database has.
    pub(crate) async fn size(&mut self) -> Result<u64, TransferError> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let rows = self.numbers(sql.to_owned()).await?;
        let bytes = rows.first().and_then(|row| row.first().copied().flatten());
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or(0))
    }

    /// The problem with the file, if any.
    pub(crate) async fn fault(&mut self) -> Result<Option<String>, TransferError> {
        let found = self.text("PRAGMA quick_check(1)".to_owned()).await?;
        Ok(found.filter(|found| found != "ok"))
    }

    /// Merges the write-ahead log into the file.
    pub(crate) async fn close_log(&mut self) -> Result<(), TransferError> {
        let mode = "PRAGMA journal_mode = DELETE".to_owned();
        self.text(mode).await.map(drop)
    }
}

fn kind_of(type_name: &str) -> Option<Kind> {
    match type_name {
        "INTEGER" => Some(Kind::Int),
        "BLOB" => Some(Kind::Bytes),
        "TEXT" => Some(Kind::Text),
        _ => None,
    }
}
