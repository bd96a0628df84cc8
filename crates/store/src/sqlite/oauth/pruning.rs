//! Deletes expired or revoked clients, requests, grants and tokens.

use rusqlite::{Connection, Result, params};

use crate::rows::oauth::{EXPIRED_RETENTION_US, REVOKED_RETENTION_US, SALT_RETENTION_US};

/// Each statement deletes rows that expired or were revoked at least this long ago.
const PRUNE: [(&str, i64); 6] = [
    (
        "DELETE FROM oauth_request WHERE hash IN (SELECT hash FROM oauth_request WHERE expires_us <= ?1 LIMIT ?2)",
        0,
    ),
    (
        "DELETE FROM oauth_client WHERE id IN (SELECT id FROM oauth_client WHERE expires_us <= ?1 LIMIT ?2)",
        0,
    ),
    // The newest row stays: its ID must not be given out again.
    (
        "DELETE FROM token WHERE id IN (
            SELECT id FROM token WHERE kind > 0 AND expires_us <= ?1 AND id < (SELECT max(id) FROM token) LIMIT ?2)",
        EXPIRED_RETENTION_US,
    ),
    (
        "DELETE FROM token WHERE id IN (
            SELECT id FROM token WHERE kind = 1 AND revoked_us <= ?1 AND id < (SELECT max(id) FROM token) LIMIT ?2)",
        REVOKED_RETENTION_US,
    ),
    (
        "DELETE FROM token WHERE id IN (
            SELECT token.id FROM oauth_grant AS g JOIN token ON token.grant_id = g.id
            WHERE g.revoked_us <= ?1 AND token.kind > 0 AND token.id < (SELECT max(id) FROM token) LIMIT ?2)",
        EXPIRED_RETENTION_US,
    ),
    (
        "DELETE FROM oauth_grant WHERE id IN (
            SELECT g.id FROM oauth_grant AS g WHERE g.code_expires_us <= ?1
                AND NOT EXISTS (SELECT 1 FROM token WHERE token.grant_id = g.id AND token.kind > 0) LIMIT ?2)",
        EXPIRED_RETENTION_US,
    ),
];

const DELETE_SALTS: &str = "
    UPDATE token SET successor_salt = NULL WHERE id IN (
        SELECT id FROM token WHERE successor_salt IS NOT NULL AND revoked_us <= ?1 LIMIT ?2)";

pub(super) fn prune(db: &Connection, now_us: i64, limit: u32) -> Result<u64> {
    let mut pruned = 0;
    for (sql, age_us) in PRUNE {
        let values = params![now_us.saturating_sub(age_us), limit];
        pruned += db.prepare_cached(sql)?.execute(values)?;
    }
    let values = params![now_us.saturating_sub(SALT_RETENTION_US), limit];
    let salts = db.prepare_cached(DELETE_SALTS)?.execute(values)?;
    // Removing salts deletes no row, but a full batch means that there may be more.
    if salts >= limit as usize {
        pruned += salts;
    }
    Ok(pruned as u64)
}
