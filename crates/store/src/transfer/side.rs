//! One end of a copy: a connection to either database, for this alone.

use std::collections::BTreeSet;

use super::plan::{Batch, Query, Target};
use super::tables::Engine;
use super::value::{Column, Value};
use super::{Row, TransferError};
use crate::DatabaseUrl;
use crate::postgres::PostgresSide;
use crate::seal::{ROW, Seal};
use crate::sqlite::SqliteSide;

/// How a source is held while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// One moment of it is seen, while others go on.
    Snapshot,
    /// Nobody else can write.
    Exclusive,
}

/// A connection.
pub(crate) enum Side {
    Sqlite(SqliteSide),
    Postgres(PostgresSide),
}

/// How far a table has been read.
pub(crate) struct Stream {
    pub(crate) query: Query,
    /// The order's values of the last row, on `SQLite`.
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

/// Does the same at whichever end it is.
macro_rules! at_either {
    ($self:ident, $side:ident => $call:expr) => {
        match $self {
            Side::Sqlite($side) => $call,
            Side::Postgres($side) => $call,
        }
    };
}

impl Side {
    /// Connects to a database that is there, and changes nothing.
    pub(crate) async fn find(url: &DatabaseUrl) -> Result<Self, TransferError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => {
                if !path.is_file() {
                    return Err(TransferError::NoSource(url.to_string()));
                }
                Self::Sqlite(SqliteSide::writer(path).await?)
            }
            DatabaseUrl::Postgres(config) => Self::Postgres(PostgresSide::connect(config).await?),
        })
    }

    /// Connects and brings the schema up to date, sealed or not.
    pub(crate) async fn make(url: &DatabaseUrl) -> Result<Self, TransferError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => {
                let mut side = SqliteSide::writer(path).await?;
                side.migrate().await?;
                Self::Sqlite(side)
            }
            DatabaseUrl::Postgres(config) => {
                let mut side = PostgresSide::connect(config).await?;
                side.migrate().await?;
                Self::Postgres(side)
            }
        })
    }

    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Where the schema stands; 0 where there is none.
    pub(crate) async fn level(&mut self) -> Result<i64, TransferError> {
        if !self.tables().await?.contains("schema_migration") {
            return Ok(0);
        }
        let sql = "SELECT CAST(coalesce(max(number), 0) AS BIGINT) FROM schema_migration";
        self.number(sql).await
    }

    /// When it was made, which is what it is known by.
    pub(crate) async fn born_us(&mut self) -> Result<i64, TransferError> {
        self.number("SELECT applied_us FROM schema_migration WHERE number = 1")
            .await
    }

    pub(crate) async fn seal(&mut self) -> Result<Option<Seal>, TransferError> {
        let sql = format!("SELECT name FROM schema_migration WHERE number = {ROW}");
        let text = at_either!(self, it => it.text(sql).await)?;
        Ok(text.as_deref().map(Seal::parse))
    }

    /// Seals it, or takes the seal away.
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

    /// How many nodes work on it, by its own clock.
    pub(crate) async fn living(&mut self) -> Result<i64, TransferError> {
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
        at_either!(self, it => it.tables().await)
    }

    pub(crate) async fn columns(
        &mut self,
        table: &'static str,
    ) -> Result<Vec<Column>, TransferError> {
        at_either!(self, it => it.columns(table).await)
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
        at_either!(self, it => it.numbers(sql).await)
    }

    /// Runs statements that give nothing back.
    pub(crate) async fn execute(&mut self, sql: String) -> Result<(), TransferError> {
        at_either!(self, it => it.execute(sql).await)
    }

    pub(crate) async fn begin(&mut self, hold: Hold) -> Result<(), TransferError> {
        at_either!(self, it => it.begin(hold).await)
    }

    pub(crate) async fn commit(&mut self) -> Result<(), TransferError> {
        at_either!(self, it => it.finish("COMMIT").await)
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), TransferError> {
        at_either!(self, it => it.finish("ROLLBACK").await)
    }

    /// Reads the next rows; none when there are no more.
    pub(crate) async fn next(&mut self, stream: &mut Stream) -> Result<Vec<Row>, TransferError> {
        if stream.is_over {
            return Ok(Vec::new());
        }
        at_either!(self, it => it.next(stream).await)
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
        at_either!(self, it => it.apply(target, batch).await)
    }

    /// The tables that number their rows, and the last number that each gave out.
    pub(crate) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, TransferError> {
        at_either!(self, it => it.sequences().await)
    }

    /// Numbers of a table go on behind this one.
    pub(crate) async fn go_on_behind(
        &mut self,
        table: &str,
        number: i64,
    ) -> Result<(), TransferError> {
        at_either!(self, it => it.go_on_behind(table, number).await)
    }
}
