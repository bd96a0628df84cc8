//! Connected clients: grants of an account and of a person.

use domain::ids::{AccountId, GrantId, PersonId};
use domain::ports::GrantRecord;
use rusqlite::{Connection, Result, Row, params};

use super::tokens::end_grant;
use crate::rows::oauth::{ConnectedColumns, GrantsToEnd, grant_id};
use crate::sql::oauth as sql;

const IS_GRANT_OF: &str = "SELECT EXISTS (SELECT 1 FROM oauth_grant WHERE id = ?1 AND account_id = ?2 AND revoked_us IS NULL)";

const GRANTS_OF: &str = "
    SELECT id FROM oauth_grant WHERE person_id = ?1 AND revoked_us IS NULL
        AND (?2 OR NOT EXISTS (SELECT 1 FROM person WHERE id = ?1 AND person.account_id = oauth_grant.account_id)
            AND NOT EXISTS (
                SELECT 1 FROM membership WHERE person_id = ?1 AND membership.account_id = oauth_grant.account_id))";

/// Ends the grants of a person.
pub(in crate::sqlite) fn end_grants_of(
    db: &Connection,
    person: PersonId,
    which: GrantsToEnd,
    now_us: i64,
) -> Result<()> {
    let mut statement = db.prepare_cached(GRANTS_OF)?;
    let values = params![person.as_i64(), which == GrantsToEnd::All];
    let grants: Vec<i64> = statement
        .query_map(values, |row| row.get(0))?
        .collect::<Result<_>>()?;
    for grant in grants {
        end_grant(db, grant_id(grant)?, now_us)?;
    }
    Ok(())
}

/// Grants with a token that can still be used or renewed.
pub(super) fn list(db: &Connection, account: AccountId, now_us: i64) -> Result<Vec<GrantRecord>> {
    let read = |row: &Row<'_>| Ok(ConnectedColumns::read(row)?.record()?);
    db.prepare_cached(sql::LIST_CONNECTED.sqlite)?
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
    end_grant(db, id, now_us)
}
