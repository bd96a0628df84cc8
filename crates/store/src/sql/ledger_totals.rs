//! Adding up the ledger of an account over a period.

use super::{Sql, sql};

pub(crate) const FIRST_AND_LAST: Sql = sql!(
    "SELECT (SELECT min(id) FROM ledger WHERE account_id = ?1), (SELECT max(id) FROM ledger WHERE account_id = ?1)"
);
/// The first entry at or after an ID.
pub(crate) const PROBE: Sql =
    sql!("SELECT id, at_us FROM ledger WHERE account_id = ?1 AND id >= ?2 ORDER BY id LIMIT 1");
/// The balance after the last entry up to an ID.
pub(crate) const BALANCE: Sql = sql!(
    "SELECT balance_micros FROM ledger WHERE account_id = ?1 AND id <= ?2 ORDER BY id DESC LIMIT 1"
);
/// The sums of the next entries.
pub(crate) const SUMS: Sql = sql!(
    "SELECT max(e.id), count(*),
        CAST(coalesce(sum(e.amount_micros), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us < ?4 THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 1 AND e.amount_micros >= 0
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 1 AND e.amount_micros < 0
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 2
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 2
            THEN e.messages END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 3
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 3
            THEN e.messages END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 4
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 4
            THEN e.messages END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 5
            THEN e.amount_micros END), 0) AS BIGINT),
        CAST(coalesce(sum(CASE WHEN e.at_us >= ?4 AND e.at_us < ?5 AND e.kind = 5
            THEN e.messages END), 0) AS BIGINT)
    FROM (
        SELECT id, at_us, kind, amount_micros, messages FROM ledger
        WHERE account_id = ?1 AND id > ?2 AND id < ?3 ORDER BY id LIMIT ?6
    ) AS e"
);
