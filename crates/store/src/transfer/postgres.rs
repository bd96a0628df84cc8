//! A `PostgreSQL` database as the source or target of a copy.

use std::collections::BTreeSet;
use std::pin::pin;

use deadpool_postgres::{Object, Pool};
use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use crate::OpenError;
use crate::migrations::POSTGRES;
use crate::postgres::days::{self, Day};
use crate::postgres::{migrate, pool, settings};
use crate::transfer::endpoint::{Hold, Stream};
use crate::transfer::plan::{Batch, Target};
use crate::transfer::tables::{NOT_COPIED, ONLY_POSTGRES, TABLES as COPIED};
use crate::transfer::value::{Column, Value, kind_of};
use crate::transfer::{Row, TransferError};
use crate::url::{PostgresUrl, describe};

/// Without partitions, which belong to their tables.
const TABLES: &str = "
    SELECT relname::text FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition";
const COLUMNS: &str = "
    SELECT attname::text, atttypid, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
/// The sequences of identity columns and of serial columns.
const SEQUENCES: &str = "
    SELECT c.relname::text, coalesce(pg_sequence_last_value(s.sequence::regclass), 0)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    CROSS JOIN LATERAL pg_get_serial_sequence(c.relname, a.attname) AS s (sequence)
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.attnum > 0 AND NOT a.attisdropped AND s.sequence IS NOT NULL";
const ADVANCE_SEQUENCE: &str = "
    SELECT setval(s.sequence::regclass, $2)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    CROSS JOIN LATERAL pg_get_serial_sequence(c.relname, a.attname) AS s (sequence)
    WHERE c.oid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND s.sequence IS NOT NULL
        AND coalesce(pg_sequence_last_value(s.sequence::regclass), 0) < $2";

/// A connection to a server.
pub(crate) struct PostgresEndpoint {
    client: Object,
    name: String,
    /// Whether all reads are part of one open transaction.
    is_held: bool,
    /// Keeps the connection alive.
    _pool: Pool,
}

impl PostgresEndpoint {
    /// Connects.
    pub(crate) async fn connect(url: &PostgresUrl) -> Result<Self, TransferError> {
        let name = describe(&url.config);
        let cannot_open = |source| OpenError::Open {
            database: name.clone(),
            source,
        };
        let pool =
            pool::build(url, 1, settings::COPY).map_err(|error| cannot_open(Box::new(error)))?;
        let client = pool::connect(&pool).await.map_err(cannot_open)?;
        let missing = settings::missing(&client, settings::COPY).await;
        let missing = missing.map_err(|error| cannot_open(Box::new(error)))?;
        if !missing.is_empty() {
            return Err(TransferError::NotDirect {
                database: name,
                missing,
            });
        }
        Ok(Self {
            client,
            name,
            is_held: false,
            _pool: pool,
        })
    }

    /// Brings the schema up to date, sealed or not.
    pub(crate) async fn migrate(&mut self) -> Result<(), TransferError> {
        Ok(migrate::apply_missing(&mut self.client, POSTGRES).await?)
    }

    fn failed(&self, doing: impl Into<String>) -> impl FnOnce(Error) -> TransferError {
        let (database, doing) = (self.name.clone(), doing.into());
        |source| TransferError::Database {
            database,
            doing,
            source: Box::new(source),
        }
    }

    async fn query(
        &self,
        doing: &str,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, TransferError> {
        let rows = self.client.query(sql, values).await;
        rows.map_err(self.failed(doing))
    }

    pub(crate) async fn tables(&mut self) -> Result<BTreeSet<String>, TransferError> {
        let rows = self.query("listing tables", TABLES, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    pub(crate) async fn columns(
        &mut self,
        table: &'static str,
    ) -> Result<Vec<Column>, TransferError> {
        let rows = self.query("listing columns", COLUMNS, &[&table]).await?;
        let column = |row: &tokio_postgres::Row| Column {
            name: row.get(0),
            kind: Type::from_oid(row.get(1)).and_then(|kind| kind_of(&kind)),
            type_name: row.get(2),
        };
        Ok(rows.iter().map(column).collect())
    }

    pub(crate) async fn text(&mut self, sql: String) -> Result<Option<String>, TransferError> {
        let rows = self.query("reading", &sql, &[]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    pub(crate) async fn numbers(
        &mut self,
        sql: String,
    ) -> Result<Vec<Vec<Option<i64>>>, TransferError> {
        let rows = self.query("counting", &sql, &[]).await?;
        let numbers = rows
            .iter()
            .map(|row| (0..row.len()).map(|at| row.get(at)).collect());
        Ok(numbers.collect())
    }

    pub(crate) async fn execute(&mut self, sql: String) -> Result<(), TransferError> {
        let executed = self.client.batch_execute(&sql).await;
        executed.map_err(self.failed("writing"))
    }

    /// The locks are taken before the snapshot, so that it contains everything written before them.
    pub(crate) async fn begin(&mut self, hold: Hold) -> Result<(), TransferError> {
        let sql = match hold {
            Hold::Snapshot => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1".to_owned()
            }
            Hold::Exclusive => {
                let copied = COPIED.iter().map(|table| table.name);
                let others = NOT_COPIED.iter().chain(ONLY_POSTGRES).copied();
                let all: Vec<&str> = copied.chain(others).collect();
                format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE {} IN EXCLUSIVE MODE",
                    all.join(", ")
                )
            }
        };
        let begun = self.client.batch_execute(&sql).await;
        begun.map_err(self.failed("beginning to read"))?;
        self.is_held = true;
        Ok(())
    }

    pub(crate) async fn finish(&mut self, sql: &'static str) -> Result<(), TransferError> {
        self.is_held = false;
        let ended = self.client.batch_execute(sql).await;
        ended.map_err(self.failed("ending a transaction"))
    }

    /// By a cursor, in a new transaction if none is open.
    pub(crate) async fn next(&mut self, stream: &mut Stream) -> Result<Vec<Row>, TransferError> {
        let query = &stream.query;
        if !stream.is_open {
            let begin = if self.is_held {
                ""
            } else {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
            };
            let mut sql = format!(
                "{begin} DECLARE transfer NO SCROLL CURSOR FOR {}",
                query.select
            );
            if let Some(filter) = &query.filter {
                sql = format!("{sql} WHERE {filter}");
            }
            if !query.order.is_empty() {
                sql = format!("{sql} ORDER BY {}", query.order.join(", "));
            }
            let opened = self.client.batch_execute(&sql).await;
            opened.map_err(self.failed("reading rows"))?;
            stream.is_open = true;
        }
        let fetch = format!("FETCH FORWARD {} FROM transfer", query.page);
        let found = self.query("reading rows", &fetch, &[]).await?;
        let row = |row: &tokio_postgres::Row| {
            let values = (0..query.width).map(|at| row.try_get::<_, Value>(at));
            values.collect::<Result<Row, Error>>()
        };
        let rows: Result<Vec<Row>, Error> = found.iter().map(row).collect();
        let rows = rows.map_err(self.failed("reading rows"))?;
        if rows.len() < query.page {
            stream.is_over = true;
            let end = if self.is_held {
                "CLOSE transfer"
            } else {
                "COMMIT"
            };
            let closed = self.client.batch_execute(end).await;
            closed.map_err(self.failed("reading rows"))?;
        }
        Ok(rows)
    }

    pub(crate) async fn apply(
        &mut self,
        target: &Target,
        batch: Batch,
    ) -> Result<(), TransferError> {
        let applied = apply(&mut self.client, target, &batch).await;
        applied.map_err(self.failed(format!("writing {}", target.table)))
    }

    pub(crate) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, TransferError> {
        let rows = self.query("reading sequences", SEQUENCES, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    pub(crate) async fn advance_sequence(
        &mut self,
        table: &str,
        number: i64,
    ) -> Result<(), TransferError> {
        // A sequence begins at 1.
        if number < 1 {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 2] = [&table, &number];
        let set = self
            .query("setting a sequence", ADVANCE_SEQUENCE, &values)
            .await;
        set.map(drop)
    }
}

async fn apply(client: &mut Object, target: &Target, batch: &Batch) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    if !batch.deleted.is_empty() {
        let types = types(&transaction, target.table, target.key.iter().copied()).await?;
        delete(&transaction, target, &types, &batch.deleted).await?;
    }
    if !batch.inserted.is_empty() {
        days::create_missing(&transaction, &days_of(target, batch)).await?;
        let columns = target.columns.iter().map(String::as_str);
        let types = types(&transaction, target.table, columns).await?;
        let copy = format!(
            "COPY {} ({}) FROM STDIN BINARY",
            target.table,
            target.columns.join(", ")
        );
        let sink = transaction.copy_in(&copy).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in &batch.inserted {
            let values: Vec<&(dyn ToSql + Sync)> = target
                .taken
                .iter()
                .map(|&at| &row[at] as &(dyn ToSql + Sync))
                .collect();
            writer.as_mut().write(&values).await?;
        }
        writer.finish().await?;
    }
    transaction.commit().await
}

/// The days that have rows. Only this process works on the target, so no other creates them.
fn days_of(target: &Target, batch: &Batch) -> BTreeSet<Day> {
    let id = days::partitioned_by(target.table).and_then(|column| {
        let at = target.columns.iter().position(|name| name == column)?;
        target.taken.get(at).copied()
    });
    let day = |row: &Row| match row[id?] {
        Value::Int(id) => Day::from_id(id),
        _ => None,
    };
    batch.inserted.iter().filter_map(day).collect()
}

/// The types of some columns.
async fn types(
    transaction: &deadpool_postgres::Transaction<'_>,
    table: &str,
    columns: impl Iterator<Item = &str>,
) -> Result<Vec<Type>, Error> {
    let columns: Vec<&str> = columns.collect();
    let sql = format!("SELECT {} FROM {table}", columns.join(", "));
    let statement = transaction.prepare_cached(&sql).await?;
    let types = statement.columns().iter();
    Ok(types.map(|column| column.type_().clone()).collect())
}

/// Deletes all rows with one statement, with an array for each column of the key.
async fn delete(
    transaction: &deadpool_postgres::Transaction<'_>,
    target: &Target,
    types: &[Type],
    keys: &[Vec<Value>],
) -> Result<(), Error> {
    let (mut arrays, mut names, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (name, kind)) in target.key.iter().zip(types).enumerate() {
        arrays.push(format!("${}::{}[]", at + 1, kind.name()));
        names.push(format!("k{at}"));
        conditions.push(format!("t.{name} = k.k{at}"));
    }
    let sql = format!(
        "DELETE FROM {} AS t USING UNNEST({}) AS k ({}) WHERE {}",
        target.table,
        arrays.join(", "),
        names.join(", "),
        conditions.join(" AND ")
    );
    let column = |at: usize| {
        keys.iter()
            .map(move |key| &key[at])
            .collect::<Vec<&Value>>()
    };
    let columns: Vec<Vec<&Value>> = (0..types.len()).map(column).collect();
    let values: Vec<&(dyn ToSql + Sync)> = columns
        .iter()
        .map(|column| column as &(dyn ToSql + Sync))
        .collect();
    let statement = transaction.prepare_cached(&sql).await?;
    transaction.execute(&statement, &values).await.map(drop)
}
