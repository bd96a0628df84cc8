//! Clients, what they ask for, and what they were granted.
//!
//! Whatever changes the tokens of a grant locks the grant's row first, so that of many at once each sees what the one
//! before it did.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::oauth::{
    AuthorizationRequest, ClientRecord, CodeVerdict, Grant, GrantRefusal, Granted, RefreshVerdict,
    SuccessorSalt, TokenKind,
};
use domain::ports::{
    Approval, CodeRedemption, GrantRecord, KeptClient, NewPair, OAuthStore, Revoked, Rotated,
    Rotation, StoreError,
};
use domain::{AccountId, GrantId, Permissions, PersonId, Timestamp, TokenHash, TokenId};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::connected::Disconnect;
use super::fault::Fault;
use super::{PostgresStore, Values, column};
use crate::rows::oauth::{ClientColumns, GrantColumns, RefreshColumns, RequestColumns, redirects};
use crate::rows::{Corrupt, micros};

/// Makes room by the oldest of those that were never given tokens, which is seen by their lifetime.
const CREATE_CLIENT: &str = "
    WITH evicted AS (
        DELETE FROM oauth_client WHERE id IN (
            SELECT id FROM oauth_client WHERE expires_us - created_us <= $5::bigint - $4::bigint ORDER BY expires_us
            LIMIT greatest(0, (SELECT count(*) FROM oauth_client) - $6::bigint + 1) FOR UPDATE SKIP LOCKED)
        RETURNING id
    )
    INSERT INTO oauth_client (id, name, redirects, created_us, expires_us)
    SELECT $1, $2, $3, $4::bigint, $5::bigint
    WHERE (SELECT count(*) FROM oauth_client) - (SELECT count(*) FROM evicted) < $6::bigint RETURNING id";
const FIND_CLIENT: &str =
    "SELECT id, name, redirects FROM oauth_client WHERE id = $1 AND expires_us > $2";
const KEEP_CLIENT: &str =
    "UPDATE oauth_client SET expires_us = $2 WHERE id = $1 AND expires_us < $2";

const CREATE_REQUEST: &str = "
    INSERT INTO oauth_request (hash, client_id, client_name, redirect, challenge, state, scopes, resource, expires_us)
    SELECT $1::bytea, $2, $3, $4, $5::bytea, $6::bytea, $7, $8, $9::bigint
    WHERE (SELECT count(*) FROM oauth_request) < $10::bigint RETURNING hash";
const FIND_REQUEST: &str = "
    SELECT client_id, client_name, redirect, challenge, state, scopes, resource, expires_us
    FROM oauth_request WHERE hash = $1 AND expires_us > $2";
const DENY_REQUEST: &str = "
    DELETE FROM oauth_request WHERE hash = $1 AND expires_us > $2
    RETURNING client_id, client_name, redirect, challenge, state, scopes, resource, expires_us";
/// Whoever is being removed, or loses the account, grants nothing any more: whoever changes that locks the rows first.
const APPROVE_REQUEST: &str = "
    WITH giver AS (
        SELECT id FROM person WHERE id = $7::bigint AND account_id = $2 FOR KEY SHARE
    ), further AS (
        SELECT person_id FROM membership WHERE person_id = $7 AND account_id = $2 FOR KEY SHARE
    ), taken AS (
        DELETE FROM oauth_request WHERE hash = $1 AND expires_us > $6
        RETURNING client_id, client_name, redirect, challenge, resource
    )
    INSERT INTO oauth_grant (account_id, client_id, client_name, redirect, challenge, scopes, resource, code_hash,
        code_expires_us, created_us, person_id)
    SELECT $2::bigint, client_id, client_name, redirect, challenge, $3, resource, $4::bytea, $5::bigint, $6::bigint,
        $7::bigint
    FROM taken
    WHERE $7::bigint IS NULL OR EXISTS (SELECT 1 FROM giver) OR EXISTS (SELECT 1 FROM further) RETURNING id";

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
const USE_CODE: &str = "UPDATE oauth_grant SET code_used_us = $2 WHERE id = $1";
const END_GRANT: &str =
    "UPDATE oauth_grant SET revoked_us = $2 WHERE id = $1 AND revoked_us IS NULL";
const END_TOKENS: &str =
    "UPDATE token SET revoked_us = $2 WHERE grant_id = $1 AND kind > 0 AND revoked_us IS NULL";
const END_TOKEN: &str = "UPDATE token SET revoked_us = $2 WHERE id = $1 AND revoked_us IS NULL";
pub(super) const RAISE_VERSION: &str = "UPDATE access_version SET version = version + 1";
/// A refresh token takes over when its family was last used: the access tokens before it are deleted soon.
const CREATE_TOKEN: &str = "
    INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us, kind, grant_id, last_used_us)
    VALUES ($1, $2, $3, $4, '', $5, $6, $7::smallint, $8::bigint,
        (SELECT max(last_used_us) FROM token WHERE $7::smallint = 2 AND grant_id = $8::bigint AND kind > 0))
    RETURNING id";
const KEEP_SUCCESSOR: &str =
    "UPDATE token SET successor_salt = $2, successor_id = $3 WHERE id = $1";
const FIND_REFRESH: &str = "
    SELECT used.id, used.grant_id, used.expires_us, used.revoked_us, used.successor_salt, access.permissions,
        access.expires_us
    FROM token AS used
    LEFT JOIN token AS next ON next.id = used.successor_id AND next.revoked_us IS NULL
    LEFT JOIN token AS access ON access.grant_id = next.grant_id AND access.kind = 1 AND access.revoked_us IS NULL
    WHERE used.hash = $1 AND used.kind = 2";
const FIND_GRANTED: &str =
    "SELECT id, grant_id, kind FROM token WHERE hash = $1 AND kind > 0 AND revoked_us IS NULL";
const FIND_LIVE: &str = "
    SELECT grant_id, kind FROM token
    WHERE id = $1 AND revoked_us IS NULL AND ($2::bigint IS NULL OR account_id = $2)";

/// Uses up a code.
struct Redeem<'a>(&'a CodeRedemption);

impl Attempt for Redeem<'_> {
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
                run(&transaction, USE_CODE, &[&grant.id.as_i64(), &now_us]).await?;
                let (granted, _) =
                    give(&transaction, &grant, grant.scopes, &redemption.pair).await?;
                Ok(granted)
            }
        };
        transaction.commit().await?;
        Ok(outcome)
    }
}

/// Uses up a refresh token.
struct Rotate<'a>(&'a Rotation);

impl Attempt for Rotate<'_> {
    type Output = Result<Rotated, GrantRefusal>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let rotation = self.0;
        let transaction = client.transaction().await?;
        let hash = rotation.refresh.as_bytes().as_slice();
        let Some(row) = find(&transaction, FIND_REFRESH, &[&hash]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        let id = refresh(&row)?.grant_id;
        let Some(grant) = lock(&transaction, LOCK_BY_ID, &[&id]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        // What it was before the lock, another may have changed.
        let Some(row) = find(&transaction, FIND_REFRESH, &[&hash]).await? else {
            return Ok(Err(GrantRefusal::Unknown));
        };
        let found = refresh(&row)?;
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
                run(&transaction, END_TOKENS, &[&id, &now_us]).await?;
                let (granted, next) = give(&transaction, &grant, scopes, pair).await?;
                let salt = rotation.salt;
                keep_successor(&transaction, found.id, salt, next).await?;
                Ok(Rotated { granted, salt })
            }
        };
        transaction.commit().await?;
        Ok(outcome)
    }
}

/// Takes back a token for its client.
struct GiveBack<'a> {
    token: &'a TokenHash,
    client_id: &'a str,
    now_us: i64,
}

impl Attempt for GiveBack<'_> {
    type Output = Revoked;

    async fn run(&self, client: &mut Object) -> Result<Revoked, Fault> {
        let transaction = client.transaction().await?;
        let hash = self.token.as_bytes().as_slice();
        let Some(row) = find(&transaction, FIND_GRANTED, &[&hash]).await? else {
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

/// Revokes a token of any kind by its ID, and with a refresh token all of its family.
pub(super) struct Revoke {
    /// Whose it must be.
    pub(super) account: Option<AccountId>,
    pub(super) token: TokenId,
    pub(super) now: Timestamp,
}

impl Attempt for Revoke {
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
        // It may have been used in this moment: then those that followed it go.
        let revoked = match family {
            Some(grant) => end_grant(&transaction, &grant, now_us).await?,
            None => end_token(&transaction, token, now_us).await?,
        };
        transaction.commit().await?;
        Ok(revoked)
    }
}

/// Keeps a pair of tokens; the version grows with them. Gives the ID of the refresh token besides.
async fn give(
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
    run(transaction, KEEP_CLIENT, kept).await?;
    run(transaction, RAISE_VERSION, &[]).await?;
    let granted = Granted {
        account: grant.account,
        scopes,
        access_expires: pair.access_expires,
    };
    Ok((granted, column(refresh, 0)?))
}

/// Notes on a used refresh token what it was exchanged for.
async fn keep_successor(
    transaction: &Transaction<'_>,
    used: i64,
    salt: SuccessorSalt,
    next: i64,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&used, &salt.as_bytes().as_slice(), &next];
    run(transaction, KEEP_SUCCESSOR, values).await.map(drop)
}

/// Ends a grant with all its tokens; `false` when nothing was left to end.
pub(super) async fn end_grant(
    transaction: &Transaction<'_>,
    grant: &Grant,
    now_us: i64,
) -> Result<bool, Fault> {
    let id = grant.id.as_i64();
    run(transaction, END_GRANT, &[&id, &now_us]).await?;
    let ended = run(transaction, END_TOKENS, &[&id, &now_us]).await? > 0;
    if ended {
        run(transaction, RAISE_VERSION, &[]).await?;
    }
    Ok(ended)
}

/// Ends one token; `false` when it was over already.
async fn end_token(transaction: &Transaction<'_>, id: i64, now_us: i64) -> Result<bool, Fault> {
    let ended = run(transaction, END_TOKEN, &[&id, &now_us]).await? > 0;
    if ended {
        run(transaction, RAISE_VERSION, &[]).await?;
    }
    Ok(ended)
}

pub(super) async fn run(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<u64, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.execute(&statement, values).await?)
}

async fn find(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Option<Row>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query_opt(&statement, values).await?)
}

pub(super) async fn lock(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Option<Grant>, Fault> {
    let found = find(transaction, sql, values).await?;
    Ok(found.as_ref().map(grant).transpose()?)
}

#[async_trait]
impl OAuthStore for PostgresStore {
    async fn create_client(&self, kept: &KeptClient, most: u32) -> Result<bool, StoreError> {
        let client = &kept.client;
        let values: Values<'_> = &[
            &client.id,
            &client.name.as_str(),
            &redirects(client),
            &micros(kept.created_at),
            &micros(kept.expires),
            &i64::from(most),
        ];
        let created = self.query("register a client", CREATE_CLIENT, values);
        Ok(!created.await?.is_empty())
    }

    async fn find_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<ClientRecord>, StoreError> {
        let values: Values<'_> = &[&id, &micros(now)];
        self.find("find a client", FIND_CLIENT, values, client)
            .await
    }

    async fn create_request(
        &self,
        id: &TokenHash,
        request: &AuthorizationRequest,
        most: u32,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[
            &id.as_bytes().as_slice(),
            &request.client_id,
            &request.client_name.as_str(),
            &request.redirect.as_str(),
            &request.challenge.as_bytes().as_slice(),
            &request.state.as_ref().map(String::as_bytes),
            &request.scopes.to_names(),
            &request.resource,
            &micros(request.expires),
            &i64::from(most),
        ];
        let created = self.query("keep an authorization request", CREATE_REQUEST, values);
        Ok(!created.await?.is_empty())
    }

    async fn find_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError> {
        let values: Values<'_> = &[&id.as_bytes().as_slice(), &micros(now)];
        let operation = "find an authorization request";
        self.find(operation, FIND_REQUEST, values, request).await
    }

    async fn approve_request(
        &self,
        id: &TokenHash,
        approval: &Approval,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[
            &id.as_bytes().as_slice(),
            &approval.account.as_i64(),
            &approval.scopes.to_names(),
            &approval.code.as_bytes().as_slice(),
            &micros(approval.code_expires),
            &micros(approval.now),
            &approval.person.map(PersonId::as_i64),
        ];
        let granted = self.query("approve an authorization request", APPROVE_REQUEST, values);
        Ok(!granted.await?.is_empty())
    }

    async fn deny_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError> {
        let values: Values<'_> = &[&id.as_bytes().as_slice(), &micros(now)];
        let operation = "deny an authorization request";
        self.find(operation, DENY_REQUEST, values, request).await
    }

    async fn redeem_code(
        &self,
        redemption: &CodeRedemption,
    ) -> Result<Result<Granted, GrantRefusal>, StoreError> {
        attempt::run(&self.pool, "redeem a code", &Redeem(redemption)).await
    }

    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError> {
        attempt::run(&self.pool, "rotate a refresh token", &Rotate(rotation)).await
    }

    async fn revoke_granted(
        &self,
        token: &TokenHash,
        client_id: &str,
        now: Timestamp,
    ) -> Result<Revoked, StoreError> {
        let give_back = GiveBack {
            token,
            client_id,
            now_us: micros(now),
        };
        attempt::run(&self.pool, "revoke a client's token", &give_back).await
    }

    async fn list_grants(
        &self,
        account: AccountId,
        now: Timestamp,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        self.list_connected(account, micros(now)).await
    }

    async fn revoke_grant(
        &self,
        account: AccountId,
        id: GrantId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let now_us = micros(now);
        let disconnect = Disconnect {
            account,
            id,
            now_us,
        };
        attempt::run(&self.pool, "revoke a grant", &disconnect).await
    }

    async fn prune_grants(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.prune_clients_and_grants(now, limit).await
    }
}

fn client(row: &Row) -> Result<ClientRecord, Corrupt> {
    let columns = ClientColumns {
        id: column(row, 0)?,
        name: column(row, 1)?,
        redirects: column(row, 2)?,
    };
    columns.record()
}

fn request(row: &Row) -> Result<AuthorizationRequest, Corrupt> {
    let columns = RequestColumns {
        client_id: column(row, 0)?,
        client_name: column(row, 1)?,
        redirect: column(row, 2)?,
        challenge: column(row, 3)?,
        state: column(row, 4)?,
        scopes: column(row, 5)?,
        resource: column(row, 6)?,
        expires_us: column(row, 7)?,
    };
    columns.request()
}

fn grant(row: &Row) -> Result<Grant, Corrupt> {
    let columns = GrantColumns {
        id: column(row, 0)?,
        account_id: column(row, 1)?,
        client_id: column(row, 2)?,
        client_name: column(row, 3)?,
        redirect: column(row, 4)?,
        challenge: column(row, 5)?,
        scopes: column(row, 6)?,
        code_expires_us: column(row, 7)?,
        code_used_us: column(row, 8)?,
        revoked_us: column(row, 9)?,
        created_us: column(row, 10)?,
    };
    columns.grant()
}

fn refresh(row: &Row) -> Result<RefreshColumns, Corrupt> {
    Ok(RefreshColumns {
        id: column(row, 0)?,
        grant_id: column(row, 1)?,
        expires_us: column(row, 2)?,
        revoked_us: column(row, 3)?,
        successor_salt: column(row, 4)?,
        successor_scopes: column(row, 5)?,
        successor_expires_us: column(row, 6)?,
    })
}
