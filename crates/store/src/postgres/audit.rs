//! The port for the audit log.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Cursor, Page, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, Values, column, fault};
use crate::rows::Corrupt;
use crate::rows::audit::{ChangeColumns, LOOKED_AT, Window, audit_id, before, found};
use crate::sql::audit as sql;

/// The name of the operation in errors.
const LOOK: &str = "look for changes";

#[async_trait]
impl AuditStore for PostgresStore {
    async fn note_change(&self, change: &Change) -> Result<AuditId, StoreError> {
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
        self.get("note a change", sql::NOTE.postgres, values, read)
            .await
    }

    /// The log only grows at its young end, so that two statements see the same rows.
    async fn look_for_changes(
        &self,
        filter: &AuditFilter,
        look: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        let (before, account) = (before(look), filter.account.map(AccountId::as_i64));
        let window = match &account {
            None => {
                let values: Values<'_> = &[&before, &LOOKED_AT];
                self.get(LOOK, sql::WINDOW.postgres, values, window).await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &LOOKED_AT, account];
                self.get(LOOK, sql::WINDOW_OF_ACCOUNT.postgres, values, window)
                    .await?
            }
        };
        let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(look.limit) + 1);
        let (who, action) = (&filter.who, &filter.action);
        let rows = match &account {
            None => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action];
                self.list(LOOK, sql::LIST.postgres, values, entry).await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action, account];
                self.list(LOOK, sql::LIST_OF_ACCOUNT.postgres, values, entry)
                    .await?
            }
        };
        found(rows, look, window).map_err(|corrupt| fault::corrupt(LOOK, corrupt))
    }
}

fn window(row: &Row) -> Result<Window, Corrupt> {
    Window::read(row)
}

fn entry(row: &Row) -> Result<AuditEntry, Corrupt> {
    ChangeColumns::read(row)?.entry()
}
