//! The port for the audit log.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Cursor, Page, StoreError};
use rusqlite::{Connection, Result, Row, params};

use super::SqliteStore;
use crate::rows::audit::{ChangeColumns, LOOKED_AT, Window, audit_id, before, found};
use crate::sql::audit as sql;

fn note(db: &Connection, change: &Change) -> Result<AuditId> {
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
        .prepare_cached(sql::NOTE.sqlite)?
        .query_row(values, |row| row.get(0))?;
    Ok(audit_id(id)?)
}

fn find_window(db: &Connection, before: i64, account: Option<i64>) -> Result<Window> {
    let read = |row: &Row<'_>| Window::read(row);
    match account {
        None => db
            .prepare_cached(sql::WINDOW.sqlite)?
            .query_row(params![before, LOOKED_AT], read),
        Some(account) => db
            .prepare_cached(sql::WINDOW_OF_ACCOUNT.sqlite)?
            .query_row(params![before, LOOKED_AT, account], read),
    }
}

fn look_for(
    db: &Connection,
    filter: &AuditFilter,
    look: Cursor<AuditId>,
) -> Result<Page<AuditEntry, AuditId>> {
    let (before, account) = (before(look), filter.account.map(AccountId::as_i64));
    let window = find_window(db, before, account)?;
    let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(look.limit) + 1);
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
    Ok(found(rows, look, window)?)
}

fn entry(row: &Row<'_>) -> Result<AuditEntry> {
    Ok(ChangeColumns::read(row)?.entry()?)
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn note_change(&self, change: &Change) -> Result<AuditId, StoreError> {
        let change = change.clone();
        self.write("note a change", move |db| note(db, &change))
            .await
    }

    async fn look_for_changes(
        &self,
        filter: &AuditFilter,
        look: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        let filter = filter.clone();
        self.read("look for changes", move |db| look_for(db, &filter, look))
            .await
    }
}
