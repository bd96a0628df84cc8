//! The port for monitoring.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{
    AccountBalance, DatabaseHealth, MonitoringStore, PooledMessages, StoreError, WaitingMessages,
};
use rusqlite::{Connection, Result, Row};

use super::{SqliteStore, clock};
use crate::rows::monitoring::{self, BalanceColumns, MOST, PooledColumns, WaitingColumns};
use crate::sql::monitoring as sql;

/// Rows of nobody, of pools and of nodes; each is found in the index.
const LIST_WAITING: &str = "
    WITH lane (lane) AS (VALUES (0), (1), (2)),
    open (owner) AS (SELECT 0 UNION ALL SELECT -1 - id FROM pool UNION ALL SELECT id FROM node)
    SELECT lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM open CROSS JOIN queue ON queue.owner = open.owner
            WHERE queue.lane = lane.lane AND due_us <= ?1 LIMIT ?2)),
        (SELECT min(first_us) FROM (SELECT (SELECT min(due_us) FROM queue
            WHERE queue.owner = open.owner AND queue.lane = lane.lane AND due_us <= ?1) AS first_us FROM open))
    FROM lane";
const SIZE: &str =
    "SELECT c.page_count * s.page_size FROM pragma_page_count AS c, pragma_page_size AS s";

#[async_trait]
impl MonitoringStore for SqliteStore {
    async fn list_waiting(&self) -> Result<Vec<WaitingMessages>, StoreError> {
        self.read("list waiting messages", list_waiting).await
    }

    async fn list_pooled(&self) -> Result<Vec<PooledMessages>, StoreError> {
        self.read("list pooled messages", list_pooled).await
    }

    async fn database_health(&self) -> Result<DatabaseHealth, StoreError> {
        let log = self.readers.log_file();
        let read = move |db: &Connection| {
            let bytes: i64 = db.prepare_cached(SIZE)?.query_row([], |row| row.get(0))?;
            // There is no log before the first write.
            let wal_bytes = std::fs::metadata(log).map_or(0, |file| file.len());
            Ok((monitoring::bytes(bytes)?, wal_bytes))
        };
        let (bytes, wal_bytes) = self.read("measure the database", read).await?;
        Ok(DatabaseHealth {
            bytes,
            wal_bytes: Some(wal_bytes),
            connections: self.readers.connection_use(),
        })
    }

    async fn list_balances(
        &self,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountBalance>, StoreError> {
        let after = after.map_or(0, AccountId::as_i64);
        self.read("list balances", move |db| list_balances(db, after, limit))
            .await
    }
}

fn list_waiting(db: &Connection) -> Result<Vec<WaitingMessages>> {
    let read = |row: &Row<'_>| Ok(WaitingColumns::read(row)?.waiting()?);
    let now_us = clock::now_us(db)?;
    db.prepare_cached(LIST_WAITING)?
        .query_map([now_us, MOST], read)?
        .collect()
}

fn list_pooled(db: &Connection) -> Result<Vec<PooledMessages>> {
    let read = |row: &Row<'_>| Ok(PooledColumns::read(row)?.pooled()?);
    db.prepare_cached(sql::LIST_POOLED.sqlite)?
        .query_map([MOST], read)?
        .collect()
}

fn list_balances(db: &Connection, after: i64, limit: u32) -> Result<Vec<AccountBalance>> {
    let read = |row: &Row<'_>| Ok(BalanceColumns::read(row)?.balance()?);
    db.prepare_cached(sql::LIST_BALANCES.sqlite)?
        .query_map([after, i64::from(limit)], read)?
        .collect()
}
