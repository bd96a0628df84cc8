//! Saved texts.

use super::{Sql, sql};

pub(crate) const SET: Sql = sql!(
    "INSERT INTO text_template (account_id, name, text) VALUES (?1, ?2, ?3)
    ON CONFLICT (account_id, name) DO UPDATE SET text = excluded.text"
);
pub(crate) const REMOVE: Sql =
    sql!("DELETE FROM text_template WHERE account_id = ?1 AND name = ?2");
/// Sorted by the program, because the databases sort texts differently.
pub(crate) const LIST: Sql = sql!("SELECT name, text FROM text_template WHERE account_id = ?1");
