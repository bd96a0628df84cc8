//! Counted attempts and known browsers.

use super::{Sql, sql};

pub(crate) const DELETE: Sql = sql!("DELETE FROM sign_in_try WHERE key = ?1");
pub(crate) const LIST_PEOPLE_OF_BROWSER: Sql =
    sql!("SELECT person_id FROM known_browser WHERE hash = ?1 AND expires_us > ?2");
pub(crate) const REMEMBER: Sql = sql!(
    "INSERT INTO known_browser (hash, person_id, expires_us) VALUES (?1, ?2, ?3)
    ON CONFLICT (hash, person_id) DO UPDATE SET expires_us = ?3"
);
