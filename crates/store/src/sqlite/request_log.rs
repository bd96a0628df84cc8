//! The port for refused requests.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{RefusedRequest, RequestLogStore, StoreError};
use rusqlite::{Connection, Result, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::request_log::{number, read_request};
use crate::sql::request_log as sql;

const RECORD: &str = "
    INSERT INTO refused_request (account_id, at_us, token, method, route, status, error, message)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
const PRUNE: &str = "
    DELETE FROM refused_request WHERE account_id = ?1 AND at_us <= (
        SELECT at_us FROM refused_request WHERE account_id = ?1 ORDER BY at_us DESC LIMIT 1 OFFSET ?2
    )";

fn record(db: &Connection, requests: &[RefusedRequest], keep: u32) -> Result<()> {
    let mut record = db.prepare_cached(RECORD)?;
    for request in requests {
        record.execute(params![
            request.account.as_i64(),
            micros(request.at),
            request.token,
            request.method,
            request.route,
            number(request.status),
            request.error.map(number),
            request.message,
        ])?;
    }
    let accounts: BTreeSet<AccountId> = requests.iter().map(|request| request.account).collect();
    let mut prune = db.prepare_cached(PRUNE)?;
    for account in accounts {
        prune.execute(params![account.as_i64(), keep])?;
    }
    Ok(())
}

#[async_trait]
impl RequestLogStore for SqliteStore {
    async fn record_refused_requests(
        &self,
        requests: &[RefusedRequest],
        keep: u32,
    ) -> Result<(), StoreError> {
        let requests = requests.to_vec();
        self.write("record refused requests", move |db| {
            record(db, &requests, keep)
        })
        .await
    }

    async fn list_refused_requests(
        &self,
        account: AccountId,
        token: &str,
        limit: u32,
    ) -> Result<Vec<RefusedRequest>, StoreError> {
        let token = token.to_owned();
        self.read("list refused requests", move |db| {
            let mut list = db.prepare_cached(sql::LIST.sqlite)?;
            let values = params![account.as_i64(), token, limit];
            list.query_map(values, |row| read_request(row))?.collect()
        })
        .await
    }
}
