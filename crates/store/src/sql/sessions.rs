//! Sessions.

use super::{Sql, sql};

pub(crate) const CREATE_LINK: Sql =
    sql!("INSERT INTO sign_in_link (hash, account_id, expires_us) VALUES (?1, ?2, ?3)");
pub(crate) const FIND_LINK: Sql =
    sql!("SELECT 1 FROM sign_in_link WHERE hash = ?1 AND expires_us > ?2");
pub(crate) const FIND: Sql = sql!(
    "SELECT person.id, person.email,
        CASE person.role WHEN 'operator' THEN person.role ELSE coalesce(membership.role, person.role) END,
        coalesce(membership.account_id,
            CASE person.role WHEN 'operator' THEN session.chosen_account_id END, person.account_id),
        session.account_id, session.seen_us
    FROM session LEFT JOIN person ON person.id = session.person_id
        LEFT JOIN membership ON membership.person_id = session.person_id
            AND membership.account_id = session.chosen_account_id
    WHERE session.hash = ?1 AND session.expires_us > ?2"
);
pub(crate) const FIND_PROOF: Sql =
    sql!("SELECT coalesce(proved_us, opened_us) FROM session WHERE hash = ?1 AND expires_us > ?2");
pub(crate) const SET_PROOF: Sql = sql!("UPDATE session SET proved_us = ?2 WHERE hash = ?1");
pub(crate) const LIST: Sql = sql!(
    "SELECT hash, opened_us, seen_us, expires_us, address, browser FROM session
    WHERE person_id = ?1 AND expires_us > ?2 ORDER BY seen_us DESC, opened_us DESC, hash LIMIT ?3"
);
pub(crate) const END: Sql = sql!("DELETE FROM session WHERE hash = ?1");
