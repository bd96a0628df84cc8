//! Codes and refresh tokens are exchanged for new tokens, and tokens are revoked.

use deadpool_postgres::{Object, Transaction};
use domain::oauth::{
    CodeVerdict, Grant, GrantRefusal, Granted, RefreshVerdict, SuccessorSalt, TokenKind,
};
use domain::ports::{CodeRedemption, NewPair, Revoked, Rotated, Rotation};
use domain::{AccountId, Permissions, Timestamp, TokenHash, TokenId};
use tokio_postgres::Row;

use crate::postgres::fault::Fault;
use crate::postgres::retry::Retryable;
use crate::postgres::transaction::{execute, find};
use crate::postgres::{Values, column};
use crate::rows::oauth::{GrantColumns, RefreshColumns};
use crate::rows::{Corrupt, micros};
use crate::sql::oauth as sql;

macro_rules! lock_grant {
    ($condition:literal) => {
        concat!(
            "SELECT id, account_id, client_id, client_name, redirect, challenge, scopes, code_expires_us, code_used_us,
                revoked_us, created_us FROM oauth_grant WHERE ",
            $condition,
            " FOR UPDATE"
        )
    };
}
const LOCK_BY_CODE: &str = lock_grant!("code_hash = $1");
pub(super) const LOCK_BY_ID: &str = lock_grant!("id = $1");
const END_TOKEN: &str = "UPDATE token SET revoked_us = $2 WHERE id = $1 AND revoked_us IS NULL";
pub(super) const RAISE_VERSION: &str = "UPDATE access_version SET version = version + 1";
/// A refresh token inherits the time of last use, because older access tokens are deleted soon.
const CREATE_TOKEN: &str = "
    INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us, kind, grant_id, last_used_us,
        daily_cap_micros)
    VALUES ($1, $2, $3, $4, '', $5, $6, $7::smallint, $8::bigint,
        (SELECT max(last_used_us) FROM token WHERE $7::smallint = 2 AND grant_id = $8::bigint AND kind > 0),
        (SELECT daily_cap_micros FROM oauth_grant WHERE id = $8::bigint))
    RETURNING id";
const FIND_LIVE: &str = "
    SELECT grant_id, kind FROM token
    WHERE id = $1 AND revoked_us IS NULL AND ($2::bigint IS NULL OR account_id = $2)";

/// Exchanges a code for tokens.
pub(super) struct Redeem<'a>(pub(super) &'a CodeRedemption);

impl Retryable for Redeem<'_> {
    type Output = Result<Granted, GrantRefusal>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let redemption = self.0;
        let transaction = client.transaction().await?;
        let code = redemption.code.as_bytes().as_slice();
        let Some(grant) = lock(&transaction, LOCK_BY_CODE, &[&code]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        let now_us = micros(redemption.pair.now);
        let outcome = match grant.judge_code(&redemption.proof, redemption.pair.now) {
            CodeVerdict::Refuse(reason) => return Ok(Err(reason)),
            CodeVerdict::Betrayed => {
                end_grant(&transaction, &grant, now_us).await?;
                Err(GrantRefusal::Replayed)
            }
            CodeVerdict::Give => {
                execute(
                    &transaction,
                    sql::USE_CODE.postgres,
                    &[&grant.id.as_i64(), &now_us],
                )
                .await?;
                let (granted, _) =
                    issue(&transaction, &grant, grant.scopes, &redemption.pair).await?;
                Ok(granted)
            }
        };
        transaction.commit().await?;
        Ok(outcome)
    }
}

/// Exchanges a refresh token for new tokens.
pub(super) struct Rotate<'a>(pub(super) &'a Rotation);

impl Retryable for Rotate<'_> {
    type Output = Result<Rotated, GrantRefusal>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let rotation = self.0;
        let transaction = client.transaction().await?;
        let hash = rotation.refresh.as_bytes().as_slice();
        let Some(row) = find(&transaction, sql::FIND_REFRESH.postgres, &[&hash]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        let id = RefreshColumns::read(&row)?.grant_id;
        let Some(grant) = lock(&transaction, LOCK_BY_ID, &[&id]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        // Another request may have changed the token before the lock.
        let Some(row) = find(&transaction, sql::FIND_REFRESH.postgres, &[&hash]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        let found = RefreshColumns::read(&row)?;
        let pair = &rotation.pair;
        let now_us = micros(pair.now);
        let verdict = grant.judge_refresh(
            found.token()?,
            &rotation.client_id,
            rotation.scopes,
            pair.grant_lifetime,
            pair.now,
        );
        let outcome = match verdict {
            RefreshVerdict::Refuse(reason) => return Ok(Err(reason)),
            RefreshVerdict::Repeat(successor) => return Ok(Ok(successor.rotated(grant.account))),
            RefreshVerdict::Betrayed => {
                end_grant(&transaction, &grant, now_us).await?;
                Err(GrantRefusal::Replayed)
            }
            RefreshVerdict::Give(scopes) => {
                execute(&transaction, sql::END_TOKENS.postgres, &[&id, &now_us]).await?;
                let (granted, next) = issue(&transaction, &grant, scopes, pair).await?;
                let salt = rotation.salt;
                store_successor(&transaction, found.id, salt, next).await?;
                Ok(Rotated { granted, salt })
            }
        };
        transaction.commit().await?;
        Ok(outcome)
    }
}

/// Revokes a token at the request of its client.
pub(super) struct RevokeByClient<'a> {
    pub(super) token: &'a TokenHash,
    pub(super) client_id: &'a str,
    pub(super) now_us: i64,
}

impl Retryable for RevokeByClient<'_> {
    type Output = Revoked;

    async fn run(&self, client: &mut Object) -> Result<Revoked, Fault> {
        let transaction = client.transaction().await?;
        let hash = self.token.as_bytes().as_slice();
        let Some(row) = find(&transaction, sql::FIND_GRANTED.postgres, &[&hash]).await? else {
            return Ok(Revoked::Unknown);
        };
        let (id, grant_id): (i64, Option<i64>) = (column(&row, 0)?, column(&row, 1)?);
        let kind: i16 = column(&row, 2)?;
        let Some(grant) = lock(&transaction, LOCK_BY_ID, &[&grant_id]).await? else {
            return Ok(Revoked::Unknown);
        };
        if grant.client_id != self.client_id {
            return Ok(Revoked::OtherClient);
        }
        if kind == TokenKind::Refresh.number() {
            end_grant(&transaction, &grant, self.now_us).await?;
        } else {
            end_token(&transaction, id, self.now_us).await?;
        }
        transaction.commit().await?;
        Ok(Revoked::Done)
    }
}

/// Revokes a token of any kind by its ID; with a refresh token, all tokens of its grant.
pub(in crate::postgres) struct Revoke {
    /// The account that it must belong to.
    pub(in crate::postgres) account: Option<AccountId>,
    pub(in crate::postgres) token: TokenId,
    pub(in crate::postgres) now: Timestamp,
}

impl Retryable for Revoke {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (token, now_us) = (self.token.as_i64(), micros(self.now));
        let account = self.account.map(AccountId::as_i64);
        let Some(row) = find(&transaction, FIND_LIVE, &[&token, &account]).await? else {
            return Ok(false);
        };
        let (grant_id, kind): (Option<i64>, i16) = (column(&row, 0)?, column(&row, 1)?);
        let family = if kind == TokenKind::Refresh.number() {
            lock(&transaction, LOCK_BY_ID, &[&grant_id]).await?
        } else {
            None
        };
        // The token may have been used just now; then the tokens that replaced it are revoked.
        let revoked = match family {
            Some(grant) => end_grant(&transaction, &grant, now_us).await?,
            None => end_token(&transaction, token, now_us).await?,
        };
        transaction.commit().await?;
        Ok(revoked)
    }
}

/// Stores a pair of tokens and raises the access version. Also returns the ID of the refresh token.
async fn issue(
    transaction: &Transaction<'_>,
    grant: &Grant,
    scopes: Permissions,
    pair: &NewPair,
) -> Result<(Granted, i64), Fault> {
    let pair = pair.within(grant);
    let mut last = None;
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
        let values: Values<'_> = &[
            &grant.account.as_i64(),
            &kind.name_for(&grant.client_name),
            &hash.as_bytes().as_slice(),
            &scopes.to_names(),
            &micros(expires),
            &micros(pair.now),
            &kind.number(),
            &grant.id.as_i64(),
        ];
        last = find(transaction, CREATE_TOKEN, values).await?;
    }
    let refresh = last.as_ref().ok_or(Corrupt("token ID"))?;
    let kept: Values<'_> = &[&grant.client_id, &micros(pair.client_expires)];
    execute(transaction, sql::EXTEND_CLIENT.postgres, kept).await?;
    execute(transaction, RAISE_VERSION, &[]).await?;
    let granted = Granted {
        account: grant.account,
        scopes,
        access_expires: pair.access_expires,
    };
    Ok((granted, column(refresh, 0)?))
}

/// Stores on a used refresh token which token replaced it.
async fn store_successor(
    transaction: &Transaction<'_>,
    used: i64,
    salt: SuccessorSalt,
    next: i64,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&used, &salt.as_bytes().as_slice(), &next];
    execute(transaction, sql::STORE_SUCCESSOR.postgres, values)
        .await
        .map(drop)
}

/// Ends a grant with all its tokens; `false` if no token was left.
pub(super) async fn end_grant(
    transaction: &Transaction<'_>,
    grant: &Grant,
    now_us: i64,
) -> Result<bool, Fault> {
    let id = grant.id.as_i64();
    execute(transaction, sql::END_GRANT.postgres, &[&id, &now_us]).await?;
    let ended = execute(transaction, sql::END_TOKENS.postgres, &[&id, &now_us]).await? > 0;
    if ended {
        execute(transaction, RAISE_VERSION, &[]).await?;
    }
    Ok(ended)
}

/// Ends one token; `false` if it had ended already.
async fn end_token(transaction: &Transaction<'_>, id: i64, now_us: i64) -> Result<bool, Fault> {
    let ended = execute(transaction, END_TOKEN, &[&id, &now_us]).await? > 0;
    if ended {
        execute(transaction, RAISE_VERSION, &[]).await?;
    }
    Ok(ended)
}

pub(super) async fn lock(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Option<Grant>, Fault> {
    let found = find(transaction, sql, values).await?;
    Ok(found.as_ref().map(grant).transpose()?)
}

fn grant(row: &Row) -> Result<Grant, Corrupt> {
    GrantColumns::read(row)?.grant()
}
