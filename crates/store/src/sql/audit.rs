//! The audit log.

use super::{Sql, sql};

/// The entries of one page that match the filter.
macro_rules! list {
    ($whose:literal) => {
        concat!(
            "SELECT id, at_us, who, address, account_id, action, subject, detail FROM audit
            WHERE id < ?1 AND id >= ?2 AND (CAST(?4 AS TEXT) IS NULL OR who = ?4)
                AND (CAST(?5 AS TEXT) IS NULL OR substr(action, 1, length(?5)) = ?5) ",
            $whose,
            " ORDER BY id DESC LIMIT ?3"
        )
    };
}

/// The entries that one page reads, of all accounts or of one.
macro_rules! window {
    ($whose:literal) => {
        concat!(
            "SELECT min(id), count(*) FROM
                (SELECT id FROM audit WHERE id < ?1 ",
            $whose,
            " ORDER BY id DESC LIMIT ?2) AS page"
        )
    };
}

pub(crate) const INSERT: Sql = sql!(
    "INSERT INTO audit (at_us, who, address, account_id, action, subject, detail)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id"
);
pub(crate) const WINDOW: Sql = sql!(window!(""));
pub(crate) const WINDOW_OF_ACCOUNT: Sql = sql!(window!("AND account_id = ?3"));
pub(crate) const LIST: Sql = sql!(list!(""));
pub(crate) const LIST_OF_ACCOUNT: Sql = sql!(list!("AND account_id = ?6"));
