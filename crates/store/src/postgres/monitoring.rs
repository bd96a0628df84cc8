//! The port for monitoring.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{
    AccountBalance, DatabaseHealth, MonitoringStore, PooledMessages, StoreError, WaitingMessages,
};

use super::{PostgresStore, column};
use crate::rows::monitoring::{self, BalanceColumns, MOST, PooledColumns, WaitingColumns};
use crate::sql::monitoring as sql;

/// Rows of nobody, of pools and of nodes; each is found in the index.
const LIST_WAITING: &str = concat!(
    "WITH clock (now_us) AS MATERIALIZED (SELECT ",
    now_us!(),
    "), lane (lane) AS (VALUES (0::smallint), (1::smallint), (2::smallint)),
    open (owner) AS MATERIALIZED
        (SELECT 0::bigint UNION ALL SELECT -1 - id FROM pool UNION ALL SELECT id FROM node)
    SELECT lane.lane,
        (SELECT count(*) FROM
            (SELECT 1 FROM open AS o CROSS JOIN LATERAL (SELECT 1 FROM queue AS q
                WHERE q.owner = o.owner AND q.lane = lane.lane AND q.due_us <= now_us LIMIT $1) AS q LIMIT $1) AS due),
        (SELECT min(q.due_us) FROM open AS o CROSS JOIN LATERAL (SELECT q.due_us FROM queue AS q
            WHERE q.owner = o.owner AND q.lane = lane.lane AND q.due_us <= now_us ORDER BY q.due_us LIMIT 1) AS q)
    FROM lane, clock"
);
const SIZE: &str = "SELECT pg_database_size(current_database())";
const MAY_LIST_WAL: &str = "SELECT has_function_privilege('pg_ls_waldir()', 'EXECUTE')";
const WAL_SIZE: &str = "SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM pg_ls_waldir()";

#[async_trait]
impl MonitoringStore for PostgresStore {
    async fn list_waiting(&self) -> Result<Vec<WaitingMessages>, StoreError> {
        let read = |row: &_| WaitingColumns::read(row)?.waiting();
        self.list("list waiting messages", LIST_WAITING, &[&MOST], read)
            .await
    }

    async fn list_pooled(&self) -> Result<Vec<PooledMessages>, StoreError> {
        let read = |row: &_| PooledColumns::read(row)?.pooled();
        let statement = sql::LIST_POOLED.postgres;
        self.list("list pooled messages", statement, &[&MOST], read)
            .await
    }

    async fn database_health(&self) -> Result<DatabaseHealth, StoreError> {
        let read = |row: &_| monitoring::bytes(column(row, 0)?);
        let bytes = self.get("measure the database", SIZE, &[], read).await?;
        Ok(DatabaseHealth {
            bytes,
            wal_bytes: self.wal_bytes().await,
            connections: self.pool.usage(),
        })
    }

    async fn list_balances(
        &self,
        after: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<AccountBalance>, StoreError> {
        let (after, limit) = (after.map_or(0, AccountId::as_i64), i64::from(limit));
        let read = |row: &_| BalanceColumns::read(row)?.balance();
        let statement = sql::LIST_BALANCES.postgres;
        self.list("list balances", statement, &[&after, &limit], read)
            .await
    }
}

impl PostgresStore {
    /// The size of the write-ahead log, if the user may know it. Some engines with the same protocol have no such
    /// function.
    async fn wal_bytes(&self) -> Option<u64> {
        const OPERATION: &str = "measure the write-ahead log";
        let may = self.get(OPERATION, MAY_LIST_WAL, &[], |row| column(row, 0));
        if !may.await.unwrap_or(false) {
            return None;
        }
        let read = |row: &_| monitoring::bytes(column(row, 0)?);
        self.get(OPERATION, WAL_SIZE, &[], read).await.ok()
    }
}
