//! OAuth clients, requests and grants.

use super::{Sql, sql};

pub(crate) const LIST_CONNECTED: Sql = sql!(
    "SELECT g.id, g.client_id, g.client_name, g.scopes, g.created_us,
        (SELECT max(t.last_used_us) FROM token AS t WHERE t.grant_id = g.id AND t.kind > 0),
        person.email, g.daily_cap_micros
    FROM oauth_grant AS g LEFT JOIN person ON person.id = g.person_id
    WHERE g.account_id = ?1 AND g.revoked_us IS NULL AND EXISTS (
        SELECT 1 FROM token AS t
        WHERE t.grant_id = g.id AND t.kind > 0 AND t.revoked_us IS NULL AND t.expires_us > ?2)
    ORDER BY g.id DESC"
);
pub(crate) const FIND_CLIENT: Sql =
    sql!("SELECT id, name, redirects FROM oauth_client WHERE id = ?1 AND expires_us > ?2");
pub(crate) const EXTEND_CLIENT: Sql =
    sql!("UPDATE oauth_client SET expires_us = ?2 WHERE id = ?1 AND expires_us < ?2");
pub(crate) const FIND_REQUEST: Sql = sql!(
    "SELECT client_id, client_name, redirect, challenge, state, scopes, resource, expires_us
    FROM oauth_request WHERE hash = ?1 AND expires_us > ?2"
);
/// Counts ?3 as spent on the day ?2, unless that exceeds the cap ?4. A day that is over counts no more.
pub(crate) const SPEND: Sql = sql!(
    "UPDATE oauth_grant SET
        spent_micros = CAST(?3 AS BIGINT) + CASE WHEN spent_day < CAST(?2 AS INTEGER) THEN 0 ELSE spent_micros END,
        spent_day = CASE WHEN spent_day < CAST(?2 AS INTEGER) THEN CAST(?2 AS INTEGER) ELSE spent_day END
    WHERE id = ?1 AND CAST(?3 AS BIGINT)
        + CASE WHEN spent_day < CAST(?2 AS INTEGER) THEN 0 ELSE spent_micros END <= CAST(?4 AS BIGINT)"
);
pub(crate) const UNSPEND: Sql = sql!(
    "UPDATE oauth_grant SET spent_micros = spent_micros - CAST(?3 AS BIGINT)
    WHERE id = ?1 AND spent_day = CAST(?2 AS INTEGER) AND spent_micros >= CAST(?3 AS BIGINT)"
);
pub(crate) const FIND_SPENDING: Sql = sql!(
    "SELECT CASE WHEN spent_day < CAST(?2 AS INTEGER) THEN 0 ELSE spent_micros END FROM oauth_grant WHERE id = ?1"
);
pub(crate) const USE_CODE: Sql = sql!("UPDATE oauth_grant SET code_used_us = ?2 WHERE id = ?1");
pub(crate) const END_GRANT: Sql =
    sql!("UPDATE oauth_grant SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL");
pub(crate) const END_TOKENS: Sql = sql!(
    "UPDATE token SET revoked_us = ?2 WHERE grant_id = ?1 AND kind > 0 AND revoked_us IS NULL"
);
pub(crate) const STORE_SUCCESSOR: Sql =
    sql!("UPDATE token SET successor_salt = ?2, successor_id = ?3 WHERE id = ?1");
pub(crate) const FIND_REFRESH: Sql = sql!(
    "SELECT used.id, used.grant_id, used.expires_us, used.revoked_us, used.successor_salt, access.permissions,
        access.expires_us
    FROM token AS used
    LEFT JOIN token AS next ON next.id = used.successor_id AND next.revoked_us IS NULL
    LEFT JOIN token AS access ON access.grant_id = next.grant_id AND access.kind = 1 AND access.revoked_us IS NULL
    WHERE used.hash = ?1 AND used.kind = 2"
);
pub(crate) const FIND_GRANTED: Sql = sql!(
    "SELECT id, grant_id, kind FROM token WHERE hash = ?1 AND kind > 0 AND revoked_us IS NULL"
);
