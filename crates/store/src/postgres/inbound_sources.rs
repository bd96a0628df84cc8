//! The port for messages from handsets that a carrier gave an ID.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::ports::{InboundSourceStore, NewInbound, StoreError};
use tokio_postgres::Row;

use super::fault::Fault;
use super::inbound::store_messages;
use super::retry::Retryable;
use super::transaction::{commit, execute};
use super::{PostgresStore, Values, column, retry};
use crate::sql::inbound_sources as sql;

struct StoreOnce<'a> {
    source: [u8; 16],
    new: &'a NewInbound,
}

impl Retryable for StoreOnce<'_> {
    type Output = bool;

    /// Waits for another node that stores the same.
    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (source, id) = (&self.source[..], self.new.message.id.as_i64());
        let values: Values<'_> = &[&source, &id];
        if execute(&transaction, sql::ADD.postgres, values).await? == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        store_messages(&transaction, &[self.new]).await?;
        commit(transaction).await?;
        Ok(true)
    }
}

#[async_trait]
impl InboundSourceStore for PostgresStore {
    async fn has_source(&self, source: [u8; 16]) -> Result<bool, StoreError> {
        let source = &source[..];
        let read = |row: &Row| column(row, 0);
        let operation = "find a message by its source";
        self.get(operation, sql::EXISTS.postgres, &[&source], read)
            .await
    }

    async fn store_once(&self, source: [u8; 16], new: &NewInbound) -> Result<bool, StoreError> {
        let work = StoreOnce { source, new };
        retry::run(&self.pool, "store a message from a handset once", &work).await
    }
}
