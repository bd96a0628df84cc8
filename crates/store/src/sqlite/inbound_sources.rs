//! The port for messages from handsets that a carrier gave an ID.

use async_trait::async_trait;
use domain::ports::{InboundSourceStore, NewInbound, StoreError};
use rusqlite::{Result, params};

use super::{SqliteStore, clock, inbound};
use crate::sql::inbound_sources as sql;

#[async_trait]
impl InboundSourceStore for SqliteStore {
    async fn has_source(&self, source: [u8; 16]) -> Result<bool, StoreError> {
        self.read("find a message by its source", move |db| {
            db.prepare_cached(sql::EXISTS.sqlite)?
                .query_row(params![source], |row| row.get(0))
        })
        .await
    }

    async fn store_once(&self, source: [u8; 16], new: &NewInbound) -> Result<bool, StoreError> {
        let new = new.clone();
        self.write("store a message from a handset once", move |db| {
            let values = params![source, new.message.id.as_i64()];
            let is_new = db.prepare_cached(sql::ADD.sqlite)?.execute(values)? > 0;
            if is_new {
                inbound::store(db, &new, clock::now_us(db)?)?;
            }
            Ok(is_new)
        })
        .await
    }
}
