//! Replies to words such as STOP.

use super::{Sql, sql};

/// The text for a language comes before the one for all.
pub(crate) const FIND: Sql = sql!(
    "SELECT body FROM account_reply WHERE account_id = ?1 AND request = ?2 AND language IN ('', ?3)
    ORDER BY language DESC LIMIT 1"
);
pub(crate) const SET: Sql = sql!(
    "INSERT INTO account_reply (account_id, request, language, body) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (account_id, request, language) DO UPDATE SET body = excluded.body"
);
pub(crate) const UNSET: Sql =
    sql!("DELETE FROM account_reply WHERE account_id = ?1 AND request = ?2 AND language = ?3");
pub(crate) const STORE_DUE: Sql =
    sql!("INSERT INTO inbound_reply (id, account_id, body) VALUES (?1, ?2, ?3)");
pub(crate) const LIST_DUE: Sql = sql!(
    "SELECT r.id, r.account_id, i.number, i.sender, r.body, i.received_us
    FROM inbound_reply AS r JOIN inbound AS i ON i.id = r.id ORDER BY r.id LIMIT ?1"
);
pub(crate) const REMOVE_DUE: Sql = sql!("DELETE FROM inbound_reply WHERE id = ?1");
