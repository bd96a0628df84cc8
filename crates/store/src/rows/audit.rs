//! Rows of the audit log.

use domain::ids::{AccountId, AuditId};
use domain::ports::{AuditEntry, Change, Cursor, Page};

use super::{Corrupt, SqlRow, account_id, micros, timestamp};

/// The number of rows that one page reads.
pub(crate) const ROWS_PER_PAGE: i64 = 10_000;

/// The columns of a change, in the order in which both databases select them.
pub(crate) struct ChangeColumns {
    pub(crate) id: i64,
    pub(crate) at_us: i64,
    pub(crate) who: String,
    pub(crate) address: Option<String>,
    pub(crate) account_id: Option<i64>,
    pub(crate) action: String,
    pub(crate) subject: String,
    pub(crate) detail: String,
}

impl ChangeColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            at_us: row.column(1)?,
            who: row.column(2)?,
            address: row.column(3)?,
            account_id: row.column(4)?,
            action: row.column(5)?,
            subject: row.column(6)?,
            detail: row.column(7)?,
        })
    }

    /// The database assigns the ID.
    pub(crate) fn from_change(change: &Change) -> Self {
        Self {
            id: 0,
            at_us: micros(change.at),
            who: change.who.clone(),
            address: change.address.map(|address| address.to_string()),
            account_id: change.account.map(AccountId::as_i64),
            action: change.action.clone(),
            subject: change.subject.clone(),
            detail: change.detail.clone(),
        }
    }

    pub(crate) fn entry(self) -> Result<AuditEntry, Corrupt> {
        let address = self.address.map(|text| text.parse()).transpose();
        let change = Change {
            who: self.who,
            address: address.map_err(|_| Corrupt("address"))?,
            account: self.account_id.map(account_id).transpose()?,
            action: self.action,
            subject: self.subject,
            detail: self.detail,
            at: timestamp(self.at_us)?,
        };
        Ok(AuditEntry {
            id: audit_id(self.id)?,
            change,
        })
    }
}

/// Reads the ID of a change.
pub(crate) fn audit_id(number: i64) -> Result<AuditId, Corrupt> {
    AuditId::from_i64(number).ok_or(Corrupt("ID of a change"))
}

/// The rows that one page of a search reads: from `oldest` up to its cursor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// The oldest row; `None` if there are no rows.
    pub(crate) oldest: Option<i64>,
    pub(crate) rows: i64,
}

impl Window {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            oldest: row.column(0)?,
            rows: row.column(1)?,
        })
    }
}

/// The ID below which a page starts.
pub(crate) fn before(cursor: Cursor<AuditId>) -> i64 {
    cursor.before.map_or(i64::MAX, AuditId::as_i64)
}

/// The page made of these rows. The caller reads one row more than the limit, to know whether more follow.
pub(crate) fn page(
    mut rows: Vec<AuditEntry>,
    cursor: Cursor<AuditId>,
    window: Window,
) -> Result<Page<AuditEntry, AuditId>, Corrupt> {
    let limit = cursor.limit as usize;
    let next = if rows.len() > limit {
        rows.truncate(limit);
        rows.last().map(|entry| entry.id).or(cursor.before)
    } else if window.rows >= ROWS_PER_PAGE {
        window.oldest.map(audit_id).transpose()?
    } else {
        None
    };
    Ok(Page { rows, next })
}
