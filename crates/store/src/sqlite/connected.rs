//! The clients that may act for an account.

use domain::ids::{AccountId, GrantId, PersonId};
use domain::ports::GrantRecord;
use rusqlite::{Connection, Result, Row, params};

use super::oauth;
use crate::rows::oauth::{ConnectedColumns, Ended, grant_id};

const LIST: &str = "
    SELECT g.id, g.client_id, g.client_name, g.scopes, g.created_us,
        (SELECT max(t.last_used_us) FROM token AS t WHERE t.grant_id = g.id AND t.kind > 0),
        person.email
    FROM oauth_grant AS g LEFT JOIN person ON person.id = g.person_id
    WHERE g.account_id = ?1 AND g.revoked_us IS NULL AND EXISTS (
        SELECT 1 FROM token AS t
        WHERE t.grant_id = g.id AND t.kind > 0 AND t.revoked_us IS NULL AND t.expires_us > ?2)
    ORDER BY g.id DESC";
const IS_GRANT_OF: &str = "SELECT EXISTS (SELECT 1 FROM oauth_grant WHERE id = ?1 AND account_id = ?2 AND revoked_us IS NULL)";

const GRANTS_OF: &str = "
    SELECT id FROM oauth_grant WHERE person_id = ?1 AND revoked_us IS NULL
        AND (?2 OR NOT EXISTS (SELECT 1 FROM person WHERE id = ?1 AND person.account_id = oauth_grant.account_id)
            AND NOT EXISTS (
                SELECT 1 FROM membership WHERE person_id = ?1 AND membership.account_id = oauth_grant.account_id))";

/// Ends what a person granted.
pub(super) fn end_grants_of(
    db: &Connection,
    person: PersonId,
    which: Ended,
    now_us: i64,
) -> Result<()> {
    let mut statement = db.prepare_cached(GRANTS_OF)?;
    let values = params![person.as_i64(), which == Ended::All];
    let grants: Vec<i64> = statement
        .query_map(values, |row| row.get(0))?
        .collect::<Result<_>>()?;
    for grant in grants {
        oauth::end_grant(db, grant_id(grant)?, now_us)?;
    }
    Ok(())
}

/// Those with a token that can still be used or renewed.
pub(super) fn list(db: &Connection, account: AccountId, now_us: i64) -> Result<Vec<GrantRecord>> {
    let read = |row: &Row<'_>| {
        let columns = ConnectedColumns {
            id: row.get(0)?,
            client_id: row.get(1)?,
            client_name: row.get(2)?,
            scopes: row.get(3)?,
            created_us: row.get(4)?,
            last_used_us: row.get(5)?,
            granted_by: row.get(6)?,
        };
        Ok(columns.record()?)
    };
    db.prepare_cached(LIST)?
        .query_map([account.as_i64(), now_us], read)?
        .collect()
}

/// Ends a grant with all its tokens.
pub(super) fn revoke(
    db: &Connection,
    account: AccountId,
    id: GrantId,
    now_us: i64,
) -> Result<bool> {
    let mut is_theirs = db.prepare_cached(IS_GRANT_OF)?;
    if !is_theirs.query_row([id.as_i64(), account.as_i64()], |row| row.get(0))? {
        return Ok(false);
    }
    oauth::end_grant(db, id, now_us)
}
