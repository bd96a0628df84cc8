//! Deletes expired or revoked clients, requests, grants and tokens.

use domain::Timestamp;
use domain::ports::StoreError;

use crate::postgres::{PostgresStore, Values};
use crate::rows::micros;
use crate::rows::oauth::{EXPIRED_RETENTION_US, REVOKED_RETENTION_US, SALT_RETENTION_US};

/// Each statement deletes rows that expired or were revoked at least this long ago.
const PRUNE: [(&str, i64); 6] = [
    (
        "DELETE FROM oauth_request WHERE hash = ANY(ARRAY(
            SELECT hash FROM oauth_request WHERE expires_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
        0,
    ),
    (
        "DELETE FROM oauth_client WHERE id = ANY(ARRAY(
            SELECT id FROM oauth_client WHERE expires_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
        0,
    ),
    (
        "DELETE FROM token WHERE id = ANY(ARRAY(
            SELECT id FROM token WHERE kind > 0 AND expires_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
        EXPIRED_RETENTION_US,
    ),
    (
        "DELETE FROM token WHERE id = ANY(ARRAY(
            SELECT id FROM token WHERE kind = 1 AND revoked_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
        REVOKED_RETENTION_US,
    ),
    (
        "DELETE FROM token WHERE id = ANY(ARRAY(
            SELECT token.id FROM oauth_grant AS g JOIN token ON token.grant_id = g.id
            WHERE g.revoked_us <= $1 AND token.kind > 0 LIMIT $2 FOR UPDATE OF token SKIP LOCKED)) RETURNING 1",
        EXPIRED_RETENTION_US,
    ),
    (
        "DELETE FROM oauth_grant WHERE id = ANY(ARRAY(
            SELECT g.id FROM oauth_grant AS g WHERE g.code_expires_us <= $1
                AND NOT EXISTS (SELECT 1 FROM token WHERE token.grant_id = g.id AND token.kind > 0)
            LIMIT $2 FOR UPDATE OF g SKIP LOCKED)) RETURNING 1",
        EXPIRED_RETENTION_US,
    ),
];

const DELETE_SALTS: &str = "
    UPDATE token SET successor_salt = NULL WHERE id = ANY(ARRAY(
        SELECT id FROM token WHERE successor_salt IS NOT NULL AND revoked_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING 1";

impl PostgresStore {
    pub(super) async fn prune_clients_and_grants(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut pruned = 0;
        for (sql, age_us) in PRUNE {
            let before_us = micros(now).saturating_sub(age_us);
            let values: Values<'_> = &[&before_us, &i64::from(limit)];
            pruned += self.query("prune grants", sql, values).await?.len();
        }
        let before_us = micros(now).saturating_sub(SALT_RETENTION_US);
        let values: Values<'_> = &[&before_us, &i64::from(limit)];
        let salts = self
            .query("prune grants", DELETE_SALTS, values)
            .await?
            .len();
        // Removing salts deletes no row, but a full batch means that there may be more.
        if salts >= limit as usize {
            pruned += salts;
        }
        Ok(pruned as u64)
    }
}
