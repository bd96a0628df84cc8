//! The log of changes.

use async_trait::async_trait;
use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Found, Look, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, Values, column, fault};
use crate::rows::Corrupt;
use crate::rows::audit::{ChangeColumns, LOOKED_AT, Window, audit_id, before, found};

const NOTE: &str = "
    INSERT INTO audit (at_us, who, address, account_id, action, subject, detail)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id";

/// The rows that a look goes through, of everybody or of one account.
macro_rules! window {
    ($whose:literal) => {
        concat!(
            "SELECT min(id), count(*) FROM
                (SELECT id FROM audit WHERE id < $1 ",
            $whose,
            " ORDER BY id DESC LIMIT $2) AS looked_at"
        )
    };
}

/// Those among them that fit.
macro_rules! list {
    ($whose:literal) => {
        concat!(
            "SELECT id, at_us, who, address, account_id, action, subject, detail FROM audit
            WHERE id < $1 AND id >= $2 AND ($4::text IS NULL OR who = $4)
                AND ($5::text IS NULL OR substr(action, 1, length($5)) = $5) ",
            $whose,
            " ORDER BY id DESC LIMIT $3"
        )
    };
}

const WINDOW: &str = window!("");
const WINDOW_OF_ACCOUNT: &str = window!("AND account_id = $3");
const LIST: &str = list!("");
const LIST_OF_ACCOUNT: &str = list!("AND account_id = $6");

/// What a look is called in errors.
const LOOK: &str = "look for changes";

#[async_trait]
impl AuditStore for PostgresStore {
    async fn note_change(&self, change: &Change) -> Result<AuditId, StoreError> {
        let columns = ChangeColumns::of(change);
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
        self.get("note a change", NOTE, values, read).await
    }

    /// The log only grows at its young end, so that two statements see the same rows.
    async fn look_for_changes(
        &self,
        filter: &AuditFilter,
        look: Look<AuditId>,
    ) -> Result<Found<AuditEntry, AuditId>, StoreError> {
        let (before, account) = (before(look), filter.account.map(AccountId::as_i64));
        let window = match &account {
            None => {
                let values: Values<'_> = &[&before, &LOOKED_AT];
                self.get(LOOK, WINDOW, values, window).await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &LOOKED_AT, account];
                self.get(LOOK, WINDOW_OF_ACCOUNT, values, window).await?
            }
        };
        let (oldest, limit) = (window.oldest.unwrap_or(before), i64::from(look.limit) + 1);
        let (who, action) = (&filter.who, &filter.action);
        let rows = match &account {
            None => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action];
                self.list(LOOK, LIST, values, entry).await?
            }
            Some(account) => {
                let values: Values<'_> = &[&before, &oldest, &limit, who, action, account];
                self.list(LOOK, LIST_OF_ACCOUNT, values, entry).await?
            }
        };
        found(rows, look, window).map_err(|corrupt| fault::corrupt(LOOK, corrupt))
    }
}

fn window(row: &Row) -> Result<Window, Corrupt> {
    Ok(Window {
        oldest: column(row, 0)?,
        rows: column(row, 1)?,
    })
}

fn entry(row: &Row) -> Result<AuditEntry, Corrupt> {
    let columns = ChangeColumns {
        id: column(row, 0)?,
        at_us: column(row, 1)?,
        who: column(row, 2)?,
        address: column(row, 3)?,
        account_id: column(row, 4)?,
        action: column(row, 5)?,
        subject: column(row, 6)?,
        detail: column(row, 7)?,
    };
    columns.entry()
}
