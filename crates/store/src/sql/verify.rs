//! Verifications: one-time codes that accounts have sent.

use super::{Sql, sql};

macro_rules! verification {
    ($condition:literal) => {
        sql!(concat!(
            "SELECT id, account_id, number, digits, code_hash, code_salt, state, tries, created_us, expires_us,
                price_micros
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
pub(crate) const FIND_KEYED: Sql =
    verification!("WHERE account_id = ?1 AND request_key = ?2 ORDER BY id DESC LIMIT 1");
pub(crate) const LIST: Sql =
    verification!("WHERE account_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
pub(crate) const LIST_OF_NUMBER: Sql = verification!("WHERE number = ?1 ORDER BY id LIMIT ?2");
pub(crate) const REPLACE: Sql = sql!("UPDATE verification SET state = 2 WHERE id = ?1");
pub(crate) const CREATE: Sql = sql!(
    "INSERT INTO verification (account_id, number, prefix, digits, code_hash, code_salt, state, tries, created_us,
        expires_us, network, request_key, price_micros)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8, ?9, ?10,
        (SELECT verify_price_micros FROM account WHERE id = ?1)) RETURNING id"
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
pub(crate) const FIND_WITHDRAWN: Sql = verification!("WHERE id = ?1 AND state = 0");
/// The code that a withdrawn one had replaced. Of the others of this number, only the newest can be that.
pub(crate) const RESTORE: Sql = sql!(
    "UPDATE verification SET state = 0 WHERE state = 2 AND id =
        (SELECT max(id) FROM verification WHERE account_id = ?1 AND number = ?2 AND id < ?3)"
);
/// The newest codes since a time, of all accounts.
macro_rules! recent {
    () => {
        "(SELECT account_id, prefix, network, state, created_us FROM verification WHERE created_us > ?1
            ORDER BY created_us DESC LIMIT ?3) AS recent"
    };
}
/// The newest codes since a time, of one account.
macro_rules! recent_of_account {
    () => {
        "(SELECT account_id, prefix, network, state, created_us FROM verification WHERE account_id = ?4 AND created_us > ?1
            ORDER BY created_us DESC LIMIT ?3) AS recent"
    };
}
/// Of each account and prefix: a network, codes sent, codes entered, and the same of the newest codes.
macro_rules! by_prefix {
    ($recent:expr) => {
        sql!(concat!(
            "SELECT c.account_id, c.prefix, max(c.network), count(*), count(CASE WHEN c.state = 1 THEN 1 END),
                count(CASE WHEN c.place <= 500 THEN 1 END), count(CASE WHEN c.place <= 500 AND c.state = 1 THEN 1 END)
            FROM (SELECT account_id, prefix, network, state,
                row_number() OVER (PARTITION BY account_id, prefix ORDER BY created_us DESC) AS place FROM ",
            $recent,
            ") AS c GROUP BY c.account_id, c.prefix ORDER BY 4 DESC, 1, 2 LIMIT ?2"
        ))
    };
}
macro_rules! by_network {
    ($recent:expr) => {
        sql!(concat!(
            "SELECT network, count(*), count(CASE WHEN state = 1 THEN 1 END) FROM ",
            $recent,
            " GROUP BY network ORDER BY 2 DESC, 1 LIMIT ?2"
        ))
    };
}
pub(crate) const CONVERSIONS: Sql = by_prefix!(recent!());
pub(crate) const CONVERSIONS_OF_ACCOUNT: Sql = by_prefix!(recent_of_account!());
pub(crate) const NETWORKS: Sql = by_network!(recent!());
pub(crate) const NETWORKS_OF_ACCOUNT: Sql = by_network!(recent_of_account!());
pub(crate) const PRUNE: Sql = sql!(
    "DELETE FROM verification WHERE id IN (
        SELECT id FROM verification WHERE created_us <= ?1 ORDER BY created_us LIMIT ?2)"
);
pub(crate) const ERASE: Sql = sql!("DELETE FROM verification WHERE number = ?1");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_codes_are_counted_as_slow_a_prefix_down() {
        let counted = format!("place <= {} ", domain::verify::MAX_COUNTED);
        assert!(CONVERSIONS.sqlite.contains(&counted));
    }
}
