//! The port for the audit log.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Cursor, Page, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, Values, column, fault};
use crate::rows::Corrupt;
use crate::rows::audit::{ChangeColumns, ROWS_PER_PAGE, Window, audit_id, before, page};
use crate::sql::audit as sql;

/// The name of the operation in errors.
const OPERATION: &str = "search the audit log";

#[async_trait]
impl AuditStore for PostgresStore {
    async fn record_change(&self, change: &Change) -> Result<AuditId, StoreError> {
        let columns = ChangeColumns::from_change(change);
        let values: Values<'_> = &[
            &columns.at_us,
            &columns.who,
            &columns.address,
            &columns.account_id,
            &columns.action,
            &columns.subject,
            &columns.detail,
        ];
        let read = |row: &Row| audit_id(column(row, 0)?);
        self.get("record a change", sql::INSERT.postgres, values, read)
            .await
    }

    /// Entries are only appended, so both statements see the same rows.
    async fn search_changes(
        &self,
        filter: &AuditFilter,
        cursor: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        let (before, account) = (before(cursor), filter.account.map(AccountId::as_i64));
        let window = match &account {
            None => {
                let values: Values<'_> = &[&before, &ROWS_PER_PAGE];
                self.get(OPERATION, sql::WINDOW.postgres, values, window)
                    .await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &ROWS_PER_PAGE, account];
                self.get(OPERATION, sql::WINDOW_OF_ACCOUNT.postgres, values, window)
                    .await?
            }
        };
        let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(cursor.limit) + 1);
        let (who, action) = (&filter.who, &filter.action);
        let rows = match &account {
            None => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action];
                self.list(OPERATION, sql::LIST.postgres, values, entry)
                    .await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action, account];
                self.list(OPERATION, sql::LIST_OF_ACCOUNT.postgres, values, entry)
                    .await?
            }
        };
        page(rows, cursor, window).map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }
}

fn window(row: &Row) -> Result<Window, Corrupt> {
    Window::read(row)
}

fn entry(row: &Row) -> Result<AuditEntry, Corrupt> {
    ChangeColumns::read(row)?.entry()
}
