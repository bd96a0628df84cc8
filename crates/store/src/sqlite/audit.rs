//! The log of changes.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Found, Look, StoreError};
use rusqlite::{Connection, Result, Row, params};

use super::SqliteStore;
use crate::rows::audit::{ChangeColumns, LOOKED_AT, Window, audit_id, before, found};

const NOTE: &str = "
    INSERT INTO audit (at_us, who, address, account_id, action, subject, detail)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";

/// The rows that a look goes through, of everybody or of one account.
macro_rules! window {
    ($whose:literal) => {
        concat!(
            "SELECT min(id), count(*) FROM
                (SELECT id FROM audit WHERE id < ?1 ",
            $whose,
            " ORDER BY id DESC LIMIT ?2)"
        )
    };
}

/// Those among them that fit.
macro_rules! list {
    ($whose:literal) => {
        concat!(
            "SELECT id, at_us, who, address, account_id, action, subject, detail FROM audit
            WHERE id < ?1 AND id >= ?2 AND (?4 IS NULL OR who = ?4)
                AND (?5 IS NULL OR substr(action, 1, length(?5)) = ?5) ",
            $whose,
            " ORDER BY id DESC LIMIT ?3"
        )
    };
}

const WINDOW: &str = window!("");
const WINDOW_OF_ACCOUNT: &str = window!("AND account_id = ?3");
const LIST: &str = list!("");
const LIST_OF_ACCOUNT: &str = list!("AND account_id = ?6");

fn note(db: &Connection, change: &Change) -> Result<AuditId> {
    let columns = ChangeColumns::of(change);
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
        .prepare_cached(NOTE)?
        .query_row(values, |row| row.get(0))?;
    Ok(audit_id(id)?)
}

fn find_window(db: &Connection, before: i64, account: Option<i64>) -> Result<Window> {
    let read = |row: &Row<'_>| {
        Ok(Window {
            oldest: row.get(0)?,
            rows: row.get(1)?,
        })
    };
    match account {
        None => db
            .prepare_cached(WINDOW)?
            .query_row(params![before, LOOKED_AT], read),
        Some(account) => db
            .prepare_cached(WINDOW_OF_ACCOUNT)?
            .query_row(params![before, LOOKED_AT, account], read),
    }
}

fn look_for(
    db: &Connection,
    filter: &AuditFilter,
    look: Look<AuditId>,
) -> Result<Found<AuditEntry, AuditId>> {
    let (before, account) = (before(look), filter.account.map(AccountId::as_i64));
    let window = find_window(db, before, account)?;
    let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(look.limit) + 1);
    let (who, action) = (&filter.who, &filter.action);
    let rows = match account {
        None => db
            .prepare_cached(LIST)?
            .query_map(params![before, oldest, limit, who, action], entry)?
            .collect::<Result<_>>()?,
        Some(account) => db
            .prepare_cached(LIST_OF_ACCOUNT)?
            .query_map(params![before, oldest, limit, who, action, account], entry)?
            .collect::<Result<_>>()?,
    };
    Ok(found(rows, look, window)?)
}

fn entry(row: &Row<'_>) -> Result<AuditEntry> {
    let columns = ChangeColumns {
        id: row.get(0)?,
        at_us: row.get(1)?,
        who: row.get(2)?,
        address: row.get(3)?,
        account_id: row.get(4)?,
        action: row.get(5)?,
        subject: row.get(6)?,
        detail: row.get(7)?,
    };
    Ok(columns.entry()?)
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
        look: Look<AuditId>,
    ) -> Result<Found<AuditEntry, AuditId>, StoreError> {
        let filter = filter.clone();
        self.read("look for changes", move |db| look_for(db, &filter, look))
            .await
    }
}
