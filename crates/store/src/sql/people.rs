//! People and invitations.

use super::{Sql, sql};

/// A person as lists show them.
macro_rules! person {
    ($which:literal) => {
        concat!(
            "SELECT id, email, role, account_id, created_us, seen_us, totp_secret IS NOT NULL FROM person ",
            $which
        )
    };
}

pub(crate) const INVITE: Sql = sql!(
    "INSERT INTO invitation (email, hash, person_id, role, account_id, expires_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (email, coalesce(account_id, 0), (person_id IS NOT NULL)) DO UPDATE SET hash = excluded.hash,
        person_id = excluded.person_id, role = excluded.role, expires_us = excluded.expires_us"
);
pub(crate) const FIND_INVITATION: Sql = sql!(
    "SELECT email, person_id, role, account_id FROM invitation WHERE hash = ?1 AND expires_us > ?2"
);
pub(crate) const USE_INVITATION: Sql =
    sql!("DELETE FROM invitation WHERE hash = ?1 RETURNING email, person_id, role, account_id");
pub(crate) const CREATE_PERSON: Sql = sql!(
    "INSERT INTO person (email, password, role, account_id, created_us) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (email) DO NOTHING RETURNING id"
);
pub(crate) const FIND_CREDENTIALS: Sql = sql!(
    "SELECT id, email, role, account_id, password, totp_secret IS NOT NULL FROM person WHERE email = ?1"
);
pub(crate) const FIND_PERSON: Sql = sql!(person!("WHERE id = ?1"));
pub(crate) const LIST_PEOPLE: Sql = sql!(person!("WHERE id > ?1 ORDER BY id LIMIT ?2"));
/// No person is listed twice: the account in `person` is never repeated in `membership`.
pub(crate) const LIST_PEOPLE_OF_ACCOUNT: Sql = sql!(
    "SELECT id, email, role, account_id, created_us, seen_us, totp_secret IS NOT NULL FROM person
    WHERE id > ?1 AND account_id = ?3
    UNION ALL
    SELECT person.id, email, CASE person.role WHEN 'operator' THEN person.role ELSE membership.role END,
        membership.account_id, membership.created_us, membership.seen_us, totp_secret IS NOT NULL
    FROM membership JOIN person ON person.id = membership.person_id
    WHERE membership.person_id > ?1 AND membership.account_id = ?3
    ORDER BY 1 LIMIT ?2"
);
/// The account in `person` is not repeated in `membership`.
pub(crate) const END_SAME_MEMBERSHIP: Sql = sql!(
    "DELETE FROM membership
    WHERE person_id = ?1 AND account_id = (SELECT account_id FROM person WHERE id = ?1)"
);
pub(crate) const WITHDRAW_INVITATIONS: Sql = sql!(
    "DELETE FROM invitation WHERE email = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR account_id = ?2
        OR (account_id IS NULL AND person_id IN (SELECT id FROM person WHERE account_id = ?2)))"
);
