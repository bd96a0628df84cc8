//! The port for the audit log.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Cursor, Page, StoreError};
use rusqlite::{Connection, Result, Row, params};

use super::SqliteStore;
use crate::rows::audit::{ChangeColumns, ROWS_PER_PAGE, Window, audit_id, before, page};
use crate::sql::audit as sql;

fn insert(db: &Connection, change: &Change) -> Result<AuditId> {
    let columns = ChangeColumns::from_change(change);
    let values = params![
        columns.at_us,
        columns.who,
        columns.address,
        columns.account_id,
        columns.action,
        columns.subject,
        columns.detail,
    ];
    let id = db
        .prepare_cached(sql::INSERT.sqlite)?
        .query_row(values, |row| row.get(0))?;
    Ok(audit_id(id)?)
}

fn find_window(db: &Connection, before: i64, account: Option<i64>) -> Result<Window> {
    let read = |row: &Row<'_>| Window::read(row);
    match account {
        None => db
            .prepare_cached(sql::WINDOW.sqlite)?
            .query_row(params![before, ROWS_PER_PAGE], read),
        Some(account) => db
            .prepare_cached(sql::WINDOW_OF_ACCOUNT.sqlite)?
            .query_row(params![before, ROWS_PER_PAGE, account], read),
    }
}

fn search(
    db: &Connection,
    filter: &AuditFilter,
    cursor: Cursor<AuditId>,
) -> Result<Page<AuditEntry, AuditId>> {
    let (before, account) = (before(cursor), filter.account.map(AccountId::as_i64));
    let window = find_window(db, before, account)?;
    let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(cursor.limit) + 1);
    let (who, action) = (&filter.who, &filter.action);
    let rows = match account {
        None => db
            .prepare_cached(sql::LIST.sqlite)?
            .query_map(params![before, oldest, limit, who, action], entry)?
            .collect::<Result<_>>()?,
        Some(account) => db
            .prepare_cached(sql::LIST_OF_ACCOUNT.sqlite)?
            .query_map(params![before, oldest, limit, who, action, account], entry)?
            .collect::<Result<_>>()?,
    };
    Ok(page(rows, cursor, window)?)
}

fn entry(row: &Row<'_>) -> Result<AuditEntry> {
    Ok(ChangeColumns::read(row)?.entry()?)
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn record_change(&self, change: &Change) -> Result<AuditId, StoreError> {
        let change = change.clone();
        self.write("record a change", move |db| insert(db, &change))
            .await
    }

    async fn search_changes(
        &self,
        filter: &AuditFilter,
        cursor: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        let filter = filter.clone();
        self.read("search the audit log", move |db| {
            search(db, &filter, cursor)
        })
        .await
    }
}
