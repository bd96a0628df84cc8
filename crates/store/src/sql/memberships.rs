//! Memberships.

use super::{Sql, sql};

pub(crate) const LIST: Sql = sql!(
    "SELECT person_id, account_id, role, seen_us FROM membership WHERE person_id BETWEEN ?1 AND ?2
    ORDER BY person_id, account_id"
);
pub(crate) const USE_INVITATION: Sql = sql!(
    "DELETE FROM invitation
    WHERE hash = ?1 AND expires_us > ?2 AND person_id IS NULL AND role <> 'operator' AND account_id IS NOT NULL
        AND email = (SELECT email FROM person WHERE id = ?3)
    RETURNING email, person_id, role, account_id"
);
pub(crate) const DELETE_LINKS: Sql = sql!("DELETE FROM invitation WHERE person_id = ?1");
/// For an operator without an account.
pub(crate) const SET_FIRST_IF_NONE: Sql =
    sql!("UPDATE person SET account_id = ?2 WHERE id = ?1 AND account_id IS NULL");
pub(crate) const END_ACCOUNT_SESSIONS: Sql = sql!(
    "DELETE FROM session WHERE person_id = ?1 AND (chosen_account_id = ?2
        OR (chosen_account_id IS NULL AND EXISTS (SELECT 1 FROM person WHERE id = ?1 AND account_id = ?2)))"
);
pub(crate) const FIND_OLDEST: Sql = sql!(
    "SELECT account_id, role, seen_us FROM membership WHERE person_id = ?1 ORDER BY created_us, account_id LIMIT 1"
);
pub(crate) const SET_FIRST: Sql =
    sql!("UPDATE person SET role = ?2, account_id = ?3, seen_us = ?4 WHERE id = ?1");
pub(crate) const RESET_CHOSEN_ACCOUNT: Sql = sql!(
    "UPDATE session SET chosen_account_id = NULL WHERE person_id = ?1 AND chosen_account_id = ?2"
);
pub(crate) const JOIN: Sql = sql!(
    "INSERT INTO membership (person_id, account_id, role, created_us)
    SELECT id, CAST(?2 AS BIGINT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT) FROM person WHERE id = ?1 AND account_id <> ?2
    ON CONFLICT (person_id, account_id) DO UPDATE SET role = excluded.role"
);
/// Operators may choose any account. NULL is the first account of the person, or none.
pub(crate) const SWITCH: Sql = sql!(
    "UPDATE session SET hash = ?2, chosen_account_id =
        (SELECT id FROM account WHERE id = ?3
            AND NOT EXISTS (SELECT 1 FROM person WHERE id = session.person_id AND account_id = ?3))
    WHERE hash = ?1 AND (CAST(?3 AS BIGINT) IS NULL
        OR EXISTS (SELECT 1 FROM person WHERE id = session.person_id AND account_id = ?3)
        OR EXISTS (SELECT 1 FROM membership WHERE person_id = session.person_id AND account_id = ?3)
        OR EXISTS (SELECT 1 FROM person WHERE id = session.person_id AND role = 'operator'
            AND EXISTS (SELECT 1 FROM account WHERE id = ?3)))"
);
pub(crate) const LEAVE: Sql =
    sql!("DELETE FROM membership WHERE person_id = ?1 AND account_id = ?2");
