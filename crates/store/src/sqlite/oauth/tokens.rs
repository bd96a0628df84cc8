//! Codes and refresh tokens are exchanged for new tokens, and tokens are revoked.

use domain::oauth::{CodeVerdict, Grant, GrantRefusal, Granted, RefreshVerdict, TokenKind};
use domain::ports::{CodeRedemption, NewPair, Revoked, Rotated, Rotation};
use domain::{GrantId, Permissions, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use crate::rows::micros;
use crate::rows::oauth::{GrantColumns, RefreshColumns};
use crate::sql::oauth as sql;
use crate::sqlite::access;

const GRANT: &str = "
    SELECT id, account_id, client_id, client_name, redirect, challenge, scopes, code_expires_us, code_used_us, revoked_us,
        created_us
    FROM oauth_grant";
/// A refresh token inherits the time of last use, because older access tokens are deleted soon.
const CREATE_TOKEN: &str = "
    INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us, kind, grant_id, last_used_us,
        daily_cap_micros)
    VALUES (?1, ?2, ?3, ?4, '', ?5, ?6, ?7, ?8,
        (SELECT max(last_used_us) FROM token WHERE ?7 = 2 AND grant_id = ?8 AND kind > 0),
        (SELECT daily_cap_micros FROM oauth_grant WHERE id = ?8))";
const FIND_FAMILY: &str =
    "SELECT grant_id FROM token WHERE id = ?1 AND kind = 2 AND revoked_us IS NULL";

pub(super) fn redeem(
    db: &Connection,
    redemption: &CodeRedemption,
) -> Result<Result<Granted, GrantRefusal>> {
    let mut statement = db.prepare_cached(&format!("{GRANT} WHERE code_hash = ?1"))?;
    let found = statement.query_row([redemption.code.as_bytes()], grant);
    let Some(grant) = found.optional()? else {
        return Ok(Err(GrantRefusal::Unknown));
    };
    let now_us = micros(redemption.pair.now);
    match grant.judge_code(&redemption.proof, redemption.pair.now) {
        CodeVerdict::Refuse(reason) => Ok(Err(reason)),
        CodeVerdict::Betrayed => {
            end_grant(db, grant.id, now_us)?;
            Ok(Err(GrantRefusal::Replayed))
        }
        CodeVerdict::Give => {
            let used = params![grant.id.as_i64(), now_us];
            db.prepare_cached(sql::USE_CODE.sqlite)?.execute(used)?;
            let (granted, _) = issue(db, &grant, grant.scopes, &redemption.pair)?;
            Ok(Ok(granted))
        }
    }
}

pub(super) fn rotate(
    db: &Connection,
    rotation: &Rotation,
) -> Result<Result<Rotated, GrantRefusal>> {
    let mut statement = db.prepare_cached(sql::FIND_REFRESH.sqlite)?;
    let found = statement.query_row([rotation.refresh.as_bytes()], |row| {
        RefreshColumns::read(row)
    });
    let Some(found) = found.optional()? else {
        return Ok(Err(GrantRefusal::Unknown));
    };
    let grant = found.grant_id.map(|id| find_grant(db, id)).transpose()?;
    let Some(grant) = grant.flatten() else {
        return Ok(Err(GrantRefusal::Unknown));
    };
    let pair = &rotation.pair;
    let verdict = grant.judge_refresh(
        found.token()?,
        &rotation.client_id,
        rotation.scopes,
        pair.grant_lifetime,
        pair.now,
    );
    match verdict {
        RefreshVerdict::Refuse(reason) => Ok(Err(reason)),
        RefreshVerdict::Repeat(successor) => Ok(Ok(successor.rotated(grant.account))),
        RefreshVerdict::Betrayed => {
            end_grant(db, grant.id, micros(pair.now))?;
            Ok(Err(GrantRefusal::Replayed))
        }
        RefreshVerdict::Give(scopes) => {
            db.prepare_cached(sql::END_TOKENS.sqlite)?
                .execute([grant.id.as_i64(), micros(pair.now)])?;
            let (granted, next) = issue(db, &grant, scopes, pair)?;
            let salt = rotation.salt;
            let values = params![found.id, salt.as_bytes(), next];
            db.prepare_cached(sql::STORE_SUCCESSOR.sqlite)?
                .execute(values)?;
            Ok(Ok(Rotated { granted, salt }))
        }
    }
}

/// Stores a pair of tokens and raises the access version. Also returns the ID of the refresh token.
fn issue(
    db: &Connection,
    grant: &Grant,
    scopes: Permissions,
    pair: &NewPair,
) -> Result<(Granted, i64)> {
    let pair = pair.within(grant);
    let tokens = [
        (TokenKind::Access, &pair.access, scopes, pair.access_expires),
        (
            TokenKind::Refresh,
            &pair.refresh,
            grant.scopes,
            pair.refresh_expires,
        ),
    ];
    for (kind, hash, scopes, expires) in tokens {
        let values = params![
            grant.account.as_i64(),
            kind.name_for(&grant.client_name),
            hash.as_bytes(),
            scopes.to_names(),
            micros(expires),
            micros(pair.now),
            kind.number(),
            grant.id.as_i64(),
        ];
        access::change(db, CREATE_TOKEN, values)?;
    }
    let refresh = db.last_insert_rowid();
    let kept = params![grant.client_id, micros(pair.client_expires)];
    db.prepare_cached(sql::EXTEND_CLIENT.sqlite)?
        .execute(kept)?;
    let granted = Granted {
        account: grant.account,
        scopes,
        access_expires: pair.access_expires,
    };
    Ok((granted, refresh))
}

pub(super) fn revoke(
    db: &Connection,
    token: &TokenHash,
    client_id: &str,
    now_us: i64,
) -> Result<Revoked> {
    let mut statement = db.prepare_cached(sql::FIND_GRANTED.sqlite)?;
    let found = statement.query_row([token.as_bytes()], |row| row.try_into());
    let Some((id, grant_id, kind)): Option<(i64, i64, i16)> = found.optional()? else {
        return Ok(Revoked::Unknown);
    };
    match find_grant(db, grant_id)? {
        None => Ok(Revoked::Unknown),
        Some(grant) if grant.client_id != client_id => Ok(Revoked::OtherClient),
        Some(grant) => {
            if kind == TokenKind::Refresh.number() {
                end_grant(db, grant.id, now_us)?;
            } else {
                access::change(db, access::REVOKE_TOKEN, [id, now_us])?;
            }
            Ok(Revoked::Done)
        }
    }
}

/// Ends all tokens of a refresh token's grant; `None` if this is not the ID of an active refresh token.
pub(in crate::sqlite) fn end_family(
    db: &Connection,
    token: i64,
    now_us: i64,
) -> Result<Option<bool>> {
    let mut statement = db.prepare_cached(FIND_FAMILY)?;
    let family: Option<i64> = statement.query_row([token], |row| row.get(0)).optional()?;
    let Some(grant) = family.and_then(GrantId::from_i64) else {
        return Ok(None);
    };
    end_grant(db, grant, now_us).map(Some)
}

/// Ends a grant with all its tokens; `false` if no token was left.
pub(super) fn end_grant(db: &Connection, grant: GrantId, now_us: i64) -> Result<bool> {
    let values = [grant.as_i64(), now_us];
    db.prepare_cached(sql::END_GRANT.sqlite)?.execute(values)?;
    access::change(db, sql::END_TOKENS.sqlite, values)
}

fn find_grant(db: &Connection, id: i64) -> Result<Option<Grant>> {
    let mut statement = db.prepare_cached(&format!("{GRANT} WHERE id = ?1"))?;
    statement.query_row([id], grant).optional()
}

fn grant(row: &Row<'_>) -> Result<Grant> {
    Ok(GrantColumns::read(row)?.grant()?)
}
