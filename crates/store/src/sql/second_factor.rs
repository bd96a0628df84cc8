//! Second factors.

use super::{Sql, sql};

pub(crate) const FIND: Sql = sql!(
    "SELECT totp_secret, totp_offered, totp_step, (SELECT count(*) FROM recovery_code WHERE person_id = person.id)
    FROM person WHERE id = ?1"
);
pub(crate) const DELETE_CODES: Sql = sql!("DELETE FROM recovery_code WHERE person_id = ?1");
pub(crate) const CREATE_PENDING: Sql =
    sql!("INSERT INTO half_open (hash, person_id, expires_us) VALUES (?1, ?2, ?3)");
pub(crate) const DELETE_PENDING: Sql =
    sql!("DELETE FROM half_open WHERE hash = ?1 AND expires_us > ?2 RETURNING person_id");
pub(crate) const OFFER: Sql =
    sql!("UPDATE person SET totp_offered = ?2 WHERE id = ?1 AND totp_secret IS NULL");
pub(crate) const USE_CODE: Sql =
    sql!("DELETE FROM recovery_code WHERE person_id = ?1 AND hash = ?2");
pub(crate) const USE_STEP: Sql = sql!(
    "UPDATE person SET totp_step = ?2 WHERE id = ?1 AND totp_secret IS NOT NULL AND totp_step < ?2"
);
