//! Clients, what they ask for, and what they were granted.

use async_trait::async_trait;
use domain::oauth::{
    AuthorizationRequest, ClientRecord, CodeVerdict, Grant, GrantRefusal, Granted, RefreshVerdict,
    TokenKind,
};
use domain::ports::{
    Approval, CodeRedemption, GrantRecord, KeptClient, NewPair, OAuthStore, Revoked, Rotated,
    Rotation, StoreError,
};
use domain::{AccountId, GrantId, Permissions, PersonId, Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::{SqliteStore, access, connected};
use crate::rows::micros;
use crate::rows::oauth::{
    ClientColumns, GrantColumns, KEPT_EXPIRED_US, KEPT_REVOKED_US, KEPT_SALT_US, RefreshColumns,
    RequestColumns, redirects,
};

/// The oldest of those that were never given tokens, which is seen by their lifetime, as many as it takes for one more.
const EVICT_CLIENTS: &str = "
    DELETE FROM oauth_client WHERE id IN (
        SELECT id FROM oauth_client WHERE expires_us - created_us <= ?1 ORDER BY expires_us
        LIMIT max(0, (SELECT count(*) FROM oauth_client) - ?2 + 1))";
const CREATE_CLIENT: &str = "
    INSERT INTO oauth_client (id, name, redirects, created_us, expires_us)
    SELECT ?1, ?2, ?3, ?4, ?5 WHERE (SELECT count(*) FROM oauth_client) < ?6";
const FIND_CLIENT: &str =
    "SELECT id, name, redirects FROM oauth_client WHERE id = ?1 AND expires_us > ?2";
const KEEP_CLIENT: &str =
    "UPDATE oauth_client SET expires_us = ?2 WHERE id = ?1 AND expires_us < ?2";

const CREATE_REQUEST: &str = "
    INSERT INTO oauth_request (hash, client_id, client_name, redirect, challenge, state, scopes, resource, expires_us)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE (SELECT count(*) FROM oauth_request) < ?10";
const FIND_REQUEST: &str = "
    SELECT client_id, client_name, redirect, challenge, state, scopes, resource, expires_us
    FROM oauth_request WHERE hash = ?1 AND expires_us > ?2";
const END_REQUEST: &str = "DELETE FROM oauth_request WHERE hash = ?1";

const CREATE_GRANT: &str = "
    INSERT INTO oauth_grant (account_id, client_id, client_name, redirect, challenge, scopes, resource, code_hash,
        code_expires_us, created_us, person_id)
    SELECT ?2, client_id, client_name, redirect, challenge, ?3, resource, ?4, ?5, ?6, ?7
    FROM oauth_request WHERE hash = ?1 AND expires_us > ?6
        AND (?7 IS NULL OR EXISTS (SELECT 1 FROM person WHERE id = ?7 AND account_id = ?2)
            OR EXISTS (SELECT 1 FROM membership WHERE person_id = ?7 AND account_id = ?2))";
const GRANT: &str = "
    SELECT id, account_id, client_id, client_name, redirect, challenge, scopes, code_expires_us, code_used_us, revoked_us,
        created_us
    FROM oauth_grant";
const USE_CODE: &str = "UPDATE oauth_grant SET code_used_us = ?2 WHERE id = ?1";
const END_GRANT: &str =
    "UPDATE oauth_grant SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL";
const END_TOKENS: &str =
    "UPDATE token SET revoked_us = ?2 WHERE grant_id = ?1 AND kind > 0 AND revoked_us IS NULL";
/// A refresh token takes over when its family was last used: the access tokens before it are deleted soon.
const CREATE_TOKEN: &str = "
    INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us, kind, grant_id, last_used_us)
    VALUES (?1, ?2, ?3, ?4, '', ?5, ?6, ?7, ?8,
        (SELECT max(last_used_us) FROM token WHERE ?7 = 2 AND grant_id = ?8 AND kind > 0))";
const KEEP_SUCCESSOR: &str =
    "UPDATE token SET successor_salt = ?2, successor_id = ?3 WHERE id = ?1";
const FIND_REFRESH: &str = "
    SELECT used.id, used.grant_id, used.expires_us, used.revoked_us, used.successor_salt, access.permissions,
        access.expires_us
    FROM token AS used
    LEFT JOIN token AS next ON next.id = used.successor_id AND next.revoked_us IS NULL
    LEFT JOIN token AS access ON access.grant_id = next.grant_id AND access.kind = 1 AND access.revoked_us IS NULL
    WHERE used.hash = ?1 AND used.kind = 2";
const FIND_GRANTED: &str =
    "SELECT id, grant_id, kind FROM token WHERE hash = ?1 AND kind > 0 AND revoked_us IS NULL";
const FIND_FAMILY: &str =
    "SELECT grant_id FROM token WHERE id = ?1 AND kind = 2 AND revoked_us IS NULL";

/// What is forgotten, each so long after its time was over.
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
        KEPT_EXPIRED_US,
    ),
    (
        "DELETE FROM token WHERE id IN (
            SELECT id FROM token WHERE kind = 1 AND revoked_us <= ?1 AND id < (SELECT max(id) FROM token) LIMIT ?2)",
        KEPT_REVOKED_US,
    ),
    (
        "DELETE FROM token WHERE id IN (
            SELECT token.id FROM oauth_grant AS g JOIN token ON token.grant_id = g.id
            WHERE g.revoked_us <= ?1 AND token.kind > 0 AND token.id < (SELECT max(id) FROM token) LIMIT ?2)",
        KEPT_EXPIRED_US,
    ),
    (
        "DELETE FROM oauth_grant WHERE id IN (
            SELECT g.id FROM oauth_grant AS g WHERE g.code_expires_us <= ?1
                AND NOT EXISTS (SELECT 1 FROM token WHERE token.grant_id = g.id AND token.kind > 0) LIMIT ?2)",
        KEPT_EXPIRED_US,
    ),
];

const FORGET_SALTS: &str = "
    UPDATE token SET successor_salt = NULL WHERE id IN (
        SELECT id FROM token WHERE successor_salt IS NOT NULL AND revoked_us <= ?1 LIMIT ?2)";

#[async_trait]
impl OAuthStore for SqliteStore {
    async fn create_client(&self, kept: &KeptClient, most: u32) -> Result<bool, StoreError> {
        let kept = kept.clone();
        self.write("register a client", move |db| {
            create_client(db, &kept, most)
        })
        .await
    }

    async fn find_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<ClientRecord>, StoreError> {
        let id = id.to_owned();
        self.read("find a client", move |db| {
            let mut statement = db.prepare_cached(FIND_CLIENT)?;
            let found = statement.query_row(params![id, micros(now)], client);
            found.optional()
        })
        .await
    }

    async fn create_request(
        &self,
        id: &TokenHash,
        request: &AuthorizationRequest,
        most: u32,
    ) -> Result<bool, StoreError> {
        let (id, request) = (*id, request.clone());
        self.write("keep an authorization request", move |db| {
            create_request(db, &id, &request, most)
        })
        .await
    }

    async fn find_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError> {
        let id = *id;
        self.read("find an authorization request", move |db| {
            find_request(db, &id, now)
        })
        .await
    }

    async fn approve_request(
        &self,
        id: &TokenHash,
        approval: &Approval,
    ) -> Result<bool, StoreError> {
        let (id, approval) = (*id, approval.clone());
        self.write("approve an authorization request", move |db| {
            approve(db, &id, &approval)
        })
        .await
    }

    async fn deny_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError> {
        let id = *id;
        self.write("deny an authorization request", move |db| {
            let found = find_request(db, &id, now)?;
            db.prepare_cached(END_REQUEST)?.execute([id.as_bytes()])?;
            Ok(found)
        })
        .await
    }

    async fn redeem_code(
        &self,
        redemption: &CodeRedemption,
    ) -> Result<Result<Granted, GrantRefusal>, StoreError> {
        let redemption = redemption.clone();
        self.write("redeem a code", move |db| redeem(db, &redemption))
            .await
    }

    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError> {
        let rotation = rotation.clone();
        self.write("rotate a refresh token", move |db| rotate(db, &rotation))
            .await
    }

    async fn revoke_granted(
        &self,
        token: &TokenHash,
        client_id: &str,
        now: Timestamp,
    ) -> Result<Revoked, StoreError> {
        let (token, client_id) = (*token, client_id.to_owned());
        self.write("revoke a client's token", move |db| {
            revoke(db, &token, &client_id, micros(now))
        })
        .await
    }

    async fn list_grants(
        &self,
        account: AccountId,
        now: Timestamp,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        self.read("list connected clients", move |db| {
            connected::list(db, account, micros(now))
        })
        .await
    }

    async fn revoke_grant(
        &self,
        account: AccountId,
        id: GrantId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("revoke a grant", move |db| {
            connected::revoke(db, account, id, micros(now))
        })
        .await
    }

    async fn prune_grants(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let now_us = micros(now);
        self.write("prune grants", move |db| prune(db, now_us, limit))
            .await
    }
}

fn create_client(db: &Connection, kept: &KeptClient, most: u32) -> Result<bool> {
    let unused_kept_us = micros(kept.expires) - micros(kept.created_at);
    db.prepare_cached(EVICT_CLIENTS)?
        .execute(params![unused_kept_us, most])?;
    let values = params![
        kept.client.id,
        kept.client.name.as_str(),
        redirects(&kept.client),
        micros(kept.created_at),
        micros(kept.expires),
        most,
    ];
    Ok(db.prepare_cached(CREATE_CLIENT)?.execute(values)? > 0)
}

fn create_request(
    db: &Connection,
    id: &TokenHash,
    request: &AuthorizationRequest,
    most: u32,
) -> Result<bool> {
    let values = params![
        id.as_bytes(),
        request.client_id,
        request.client_name.as_str(),
        request.redirect.as_str(),
        request.challenge.as_bytes(),
        request.state.as_ref().map(String::as_bytes),
        request.scopes.to_names(),
        request.resource,
        micros(request.expires),
        most,
    ];
    Ok(db.prepare_cached(CREATE_REQUEST)?.execute(values)? > 0)
}

fn find_request(
    db: &Connection,
    id: &TokenHash,
    now: Timestamp,
) -> Result<Option<AuthorizationRequest>> {
    let mut statement = db.prepare_cached(FIND_REQUEST)?;
    let found = statement.query_row(params![id.as_bytes(), micros(now)], request);
    found.optional()
}

fn approve(db: &Connection, id: &TokenHash, approval: &Approval) -> Result<bool> {
    let values = params![
        id.as_bytes(),
        approval.account.as_i64(),
        approval.scopes.to_names(),
        approval.code.as_bytes(),
        micros(approval.code_expires),
        micros(approval.now),
        approval.person.map(PersonId::as_i64),
    ];
    let granted = db.prepare_cached(CREATE_GRANT)?.execute(values)? > 0;
    db.prepare_cached(END_REQUEST)?.execute([id.as_bytes()])?;
    Ok(granted)
}

fn redeem(db: &Connection, redemption: &CodeRedemption) -> Result<Result<Granted, GrantRefusal>> {
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
            db.prepare_cached(USE_CODE)?.execute(used)?;
            let (granted, _) = give(db, &grant, grant.scopes, &redemption.pair)?;
            Ok(Ok(granted))
        }
    }
}

fn rotate(db: &Connection, rotation: &Rotation) -> Result<Result<Rotated, GrantRefusal>> {
    let mut statement = db.prepare_cached(FIND_REFRESH)?;
    let found = statement.query_row([rotation.refresh.as_bytes()], refresh);
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
            db.prepare_cached(END_TOKENS)?
                .execute([grant.id.as_i64(), micros(pair.now)])?;
            let (granted, next) = give(db, &grant, scopes, pair)?;
            let salt = rotation.salt;
            let values = params![found.id, salt.as_bytes(), next];
            db.prepare_cached(KEEP_SUCCESSOR)?.execute(values)?;
            Ok(Ok(Rotated { granted, salt }))
        }
    }
}

/// Keeps a pair of tokens; the version grows with them. Gives the ID of the refresh token besides.
fn give(
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
    db.prepare_cached(KEEP_CLIENT)?.execute(kept)?;
    let granted = Granted {
        account: grant.account,
        scopes,
        access_expires: pair.access_expires,
    };
    Ok((granted, refresh))
}

fn revoke(db: &Connection, token: &TokenHash, client_id: &str, now_us: i64) -> Result<Revoked> {
    let mut statement = db.prepare_cached(FIND_GRANTED)?;
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

/// Ends the family of a refresh token; `None` when the ID is not that of a live one.
pub(super) fn end_family(db: &Connection, token: i64, now_us: i64) -> Result<Option<bool>> {
    let mut statement = db.prepare_cached(FIND_FAMILY)?;
    let family: Option<i64> = statement.query_row([token], |row| row.get(0)).optional()?;
    let Some(grant) = family.and_then(GrantId::from_i64) else {
        return Ok(None);
    };
    end_grant(db, grant, now_us).map(Some)
}

/// Ends a grant with all its tokens; `false` when nothing was left to end.
pub(super) fn end_grant(db: &Connection, grant: GrantId, now_us: i64) -> Result<bool> {
    let values = [grant.as_i64(), now_us];
    db.prepare_cached(END_GRANT)?.execute(values)?;
    access::change(db, END_TOKENS, values)
}

fn find_grant(db: &Connection, id: i64) -> Result<Option<Grant>> {
    let mut statement = db.prepare_cached(&format!("{GRANT} WHERE id = ?1"))?;
    statement.query_row([id], grant).optional()
}

fn prune(db: &Connection, now_us: i64, limit: u32) -> Result<u64> {
    let mut pruned = 0;
    for (sql, age_us) in PRUNE {
        let values = params![now_us.saturating_sub(age_us), limit];
        pruned += db.prepare_cached(sql)?.execute(values)?;
    }
    let values = params![now_us.saturating_sub(KEPT_SALT_US), limit];
    let salts = db.prepare_cached(FORGET_SALTS)?.execute(values)?;
    // No row is gone with them, but there may be more.
    if salts >= limit as usize {
        pruned += salts;
    }
    Ok(pruned as u64)
}

fn client(row: &Row<'_>) -> Result<ClientRecord> {
    let columns = ClientColumns {
        id: row.get(0)?,
        name: row.get(1)?,
        redirects: row.get(2)?,
    };
    Ok(columns.record()?)
}

fn request(row: &Row<'_>) -> Result<AuthorizationRequest> {
    let columns = RequestColumns {
        client_id: row.get(0)?,
        client_name: row.get(1)?,
        redirect: row.get(2)?,
        challenge: row.get(3)?,
        state: row.get(4)?,
        scopes: row.get(5)?,
        resource: row.get(6)?,
        expires_us: row.get(7)?,
    };
    Ok(columns.request()?)
}

fn grant(row: &Row<'_>) -> Result<Grant> {
    let columns = GrantColumns {
        id: row.get(0)?,
        account_id: row.get(1)?,
        client_id: row.get(2)?,
        client_name: row.get(3)?,
        redirect: row.get(4)?,
        challenge: row.get(5)?,
        scopes: row.get(6)?,
        code_expires_us: row.get(7)?,
        code_used_us: row.get(8)?,
        revoked_us: row.get(9)?,
        created_us: row.get(10)?,
    };
    Ok(columns.grant()?)
}

fn refresh(row: &Row<'_>) -> Result<RefreshColumns> {
    Ok(RefreshColumns {
        id: row.get(0)?,
        grant_id: row.get(1)?,
        expires_us: row.get(2)?,
        revoked_us: row.get(3)?,
        successor_salt: row.get(4)?,
        successor_scopes: row.get(5)?,
        successor_expires_us: row.get(6)?,
    })
}
