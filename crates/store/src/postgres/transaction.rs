//! Statements within a transaction.

use std::time::Instant;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::Values;
use super::fault::Fault;

pub(super) async fn query(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Vec<Row>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, values).await?)
}

/// Runs a statement that gives at most one row.
pub(super) async fn find(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Option<Row>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query_opt(&statement, values).await?)
}

/// Runs a statement and returns the number of rows that it changed.
pub(super) async fn execute(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<u64, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.execute(&statement, values).await?)
}

/// Commits, and measures how long that takes.
pub(super) async fn commit(transaction: Transaction<'_>) -> Result<(), Fault> {
    let began = Instant::now();
    transaction.commit().await?;
    metrics::histogram!("switchboard_database_commit_seconds").record(began.elapsed());
    Ok(())
}
