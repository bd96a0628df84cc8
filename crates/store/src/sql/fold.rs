//! Folding the ledger.

use super::{Sql, sql};

pub(crate) const LIST_ACCOUNTS: Sql =
    sql!("SELECT id FROM account WHERE id >= ?1 ORDER BY id LIMIT ?2");
pub(crate) const IS_DUE: Sql = sql!(
    "SELECT coalesce((
        SELECT at_us < CAST(?3 AS BIGINT) FROM ledger
        WHERE account_id = ?1 AND id > ?2 AND id < (SELECT max(id) FROM ledger WHERE account_id = ?1)
        ORDER BY id LIMIT 1
    ), FALSE)"
);
