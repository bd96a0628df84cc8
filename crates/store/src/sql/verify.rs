//! Verifications: one-time codes that accounts have sent.

use super::{Sql, sql};

macro_rules! verification {
    ($condition:literal) => {
        sql!(concat!(
            "SELECT id, account_id, number, digits, code_hash, code_salt, state, tries, created_us, expires_us
            FROM verification ",
            $condition
        ))
    };
}

pub(crate) const FIND: Sql = verification!("WHERE id = ?1 AND account_id = ?2");
/// Only for `PostgreSQL`: other guesses at the same code wait.
pub(crate) const LOCK: Sql = verification!("WHERE id = ?1 AND account_id = ?2 FOR UPDATE");
pub(crate) const FIND_PENDING: Sql =
    verification!("WHERE account_id = ?1 AND number = ?2 AND state = 0");
pub(crate) const LIST_OF_NUMBER: Sql = verification!("WHERE number = ?1 ORDER BY id LIMIT ?2");
pub(crate) const REPLACE: Sql = sql!("UPDATE verification SET state = 2 WHERE id = ?1");
pub(crate) const CREATE: Sql = sql!(
    "INSERT INTO verification (account_id, number, prefix, digits, code_hash, code_salt, state, tries, created_us,
        expires_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8) RETURNING id"
);
/// The newest codes of an account to one prefix. Withdrawn ones are not stored.
pub(crate) const SENT_TO_PREFIX: Sql = sql!(
    "SELECT state, created_us FROM verification WHERE account_id = ?1 AND prefix = ?2 AND created_us > ?3
    ORDER BY created_us DESC LIMIT ?4"
);
pub(crate) const CHANGE: Sql =
    sql!("UPDATE verification SET state = ?2, tries = tries + ?3 WHERE id = ?1");
pub(crate) const UNCOUNT: Sql = sql!(
    "DELETE FROM code_sent WHERE (number, sent_us, account_id) =
        (SELECT number, created_us, account_id FROM verification WHERE id = ?1 AND state = 0)"
);
pub(crate) const WITHDRAW: Sql = sql!("DELETE FROM verification WHERE id = ?1 AND state = 0");
pub(crate) const CONVERSIONS: Sql = sql!(
    "SELECT account_id, prefix, count(*), count(CASE WHEN state = 1 THEN 1 END) FROM verification
    WHERE created_us > ?1 GROUP BY account_id, prefix ORDER BY 3 DESC, 1, 2 LIMIT ?2"
);
pub(crate) const PRUNE: Sql = sql!(
    "DELETE FROM verification WHERE id IN (
        SELECT id FROM verification WHERE created_us <= ?1 ORDER BY created_us LIMIT ?2)"
);
pub(crate) const ERASE: Sql = sql!("DELETE FROM verification WHERE number = ?1");
