//! The source or target of a copy: a connection to either database.

use std::collections::BTreeSet;

use super::plan::{Batch, Query, Target};
use super::postgres::PostgresEndpoint;
use super::sqlite::SqliteEndpoint;
use super::tables::Engine;
use super::value::{Column, Value};
use super::{Row, TransferError};
use crate::DatabaseUrl;
use crate::seal::{ROW, Seal};

/// How a database is locked while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Reads a snapshot, while others continue to write.
    Snapshot,
    /// Nobody else can write.
    Exclusive,
}

pub(crate) enum Endpoint {
    Sqlite(SqliteEndpoint),
    Postgres(PostgresEndpoint),
}

/// How far a table has been read.
pub(crate) struct Stream {
    pub(crate) query: Query,
    /// The values of the order of the last row, on `SQLite`.
    pub(crate) position: Option<Vec<Value>>,
    pub(crate) is_open: bool,
    pub(crate) is_over: bool,
}

impl Stream {
    pub(crate) fn new(query: Query) -> Self {
        Self {
            query,
            position: None,
            is_open: false,
            is_over: false,
        }
    }
}

/// Makes the same call on either database.
macro_rules! on_either {
    ($self:ident, $endpoint:ident => $call:expr) => {
        match $self {
            Endpoint::Sqlite($endpoint) => $call,
            Endpoint::Postgres($endpoint) => $call,
        }
    };
}

impl Endpoint {
    /// Connects to an existing database, and changes nothing.
    pub(crate) async fn find(url: &DatabaseUrl) -> Result<Self, TransferError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => {
                if !path.is_file() {
                    return Err(TransferError::NoSource(url.to_string()));
                }
                Self::Sqlite(SqliteEndpoint::writer(path).await?)
            }
            DatabaseUrl::Postgres(config) => {
                Self::Postgres(PostgresEndpoint::connect(config).await?)
            }
        })
    }

    /// Connects and brings the schema up to date, sealed or not.
    pub(crate) async fn make(url: &DatabaseUrl) -> Result<Self, TransferError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => {
                let mut endpoint = SqliteEndpoint::writer(path).await?;
                endpoint.migrate().await?;
                Self::Sqlite(endpoint)
            }
            DatabaseUrl::Postgres(config) => {
                let mut endpoint = PostgresEndpoint::connect(config).await?;
                endpoint.migrate().await?;
                Self::Postgres(endpoint)
            }
        })
    }

    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// The last migration that was applied; 0 without a schema.
    pub(crate) async fn level(&mut self) -> Result<i64, TransferError> {
        if !self.tables().await?.contains("schema_migration") {
            return Ok(0);
        }
        let sql = "SELECT CAST(coalesce(max(number), 0) AS BIGINT) FROM schema_migration";
        self.number(sql).await
    }

    /// When the database was created, which identifies it.
    pub(crate) async fn created_us(&mut self) -> Result<i64, TransferError> {
        self.number("SELECT applied_us FROM schema_migration WHERE number = 1")
            .await
    }

    pub(crate) async fn seal(&mut self) -> Result<Option<Seal>, TransferError> {
        let sql = format!("SELECT name FROM schema_migration WHERE number = {ROW}");
        let text = on_either!(self, it => it.text(sql).await)?;
        Ok(text.as_deref().map(Seal::parse))
    }

    /// Sets or removes the seal.
    pub(crate) async fn set_seal(&mut self, seal: Option<&Seal>) -> Result<(), TransferError> {
        self.execute(format!("DELETE FROM schema_migration WHERE number = {ROW}"))
            .await?;
        let Some(seal) = seal else {
            return Ok(());
        };
        let text = seal.to_text().replace('\'', "''");
        self.execute(format!(
            "INSERT INTO schema_migration (number, name, applied_us) VALUES ({ROW}, '{text}', 0)"
        ))
        .await
    }

    /// How many nodes use the database, by its own clock.
    pub(crate) async fn count_living_nodes(&mut self) -> Result<i64, TransferError> {
        let now = match self.engine() {
            Engine::Sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Engine::Postgres => {
                "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)"
            }
        };
        self.number(format!(
            "SELECT CAST(count(*) AS BIGINT) FROM node WHERE alive_until_us >= {now}"
        ))
        .await
    }

    pub(crate) async fn tables(&mut self) -> Result<BTreeSet<String>, TransferError> {
        on_either!(self, it => it.tables().await)
    }

    pub(crate) async fn columns(
        &mut self,
        table: &'static str,
    ) -> Result<Vec<Column>, TransferError> {
        on_either!(self, it => it.columns(table).await)
    }

    pub(crate) async fn number(&mut self, sql: impl Into<String>) -> Result<i64, TransferError> {
        let rows = self.numbers(sql.into()).await?;
        let first = rows.first().and_then(|row| row.first().copied().flatten());
        Ok(first.unwrap_or_default())
    }

    pub(crate) async fn numbers(
        &mut self,
        sql: String,
    ) -> Result<Vec<Vec<Option<i64>>>, TransferError> {
        on_either!(self, it => it.numbers(sql).await)
    }

    /// Runs statements that return nothing.
    pub(crate) async fn execute(&mut self, sql: String) -> Result<(), TransferError> {
        on_either!(self, it => it.execute(sql).await)
    }

    pub(crate) async fn begin(&mut self, hold: Hold) -> Result<(), TransferError> {
        on_either!(self, it => it.begin(hold).await)
    }

    pub(crate) async fn commit(&mut self) -> Result<(), TransferError> {
        on_either!(self, it => it.finish("COMMIT").await)
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), TransferError> {
        on_either!(self, it => it.finish("ROLLBACK").await)
    }

    /// Reads the next rows; none when there are no more.
    pub(crate) async fn next(&mut self, stream: &mut Stream) -> Result<Vec<Row>, TransferError> {
        if stream.is_over {
            return Ok(Vec::new());
        }
        on_either!(self, it => it.next(stream).await)
    }

    /// Writes a batch in a transaction.
    pub(crate) async fn apply(
        &mut self,
        target: &Target,
        batch: Batch,
    ) -> Result<(), TransferError> {
        if batch.is_empty() {
            return Ok(());
        }
        on_either!(self, it => it.apply(target, batch).await)
    }

    /// The tables with a sequence, and the last number of each.
    pub(crate) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, TransferError> {
        on_either!(self, it => it.sequences().await)
    }

    /// Makes the sequence of a table continue after this number.
    pub(crate) async fn advance_sequence(
        &mut self,
        table: &str,
        number: i64,
    ) -> Result<(), TransferError> {
        on_either!(self, it => it.advance_sequence(table, number).await)
    }
}
