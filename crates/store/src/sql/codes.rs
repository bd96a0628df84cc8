//! Confirmation codes.

use super::{Sql, sql};

pub(crate) const SENT_TO: Sql =
    sql!("SELECT sent_us FROM code_sent WHERE number = ?1 ORDER BY sent_us DESC LIMIT ?2");
pub(crate) const SENT_BY: Sql = sql!(
    "SELECT sent_us FROM code_sent WHERE account_id = ?1 ORDER BY sent_us DESC
    LIMIT 1 OFFSET (SELECT codes_per_day - 1 FROM account WHERE id = ?1)"
);
pub(crate) const COUNT: Sql = sql!(
    "INSERT INTO code_sent (number, account_id, sent_us) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
);
