//! The port for OAuth: clients, authorization requests, grants and their tokens.

use async_trait::async_trait;
use domain::oauth::{AuthorizationRequest, ClientRecord, GrantRefusal, Granted};
use domain::ports::{
    Approval, CodeRedemption, GrantRecord, OAuthStore, Revoked, Rotated, Rotation, StoreError,
    StoredClient,
};
use domain::{AccountId, GrantId, Money, PersonId, Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::oauth::{ClientColumns, RequestColumns, redirects};
use crate::sql::oauth as sql;

mod connected;
mod pruning;
mod tokens;

pub(super) use connected::end_grants_of;
pub(super) use tokens::end_family;

/// Deletes the oldest clients that never got tokens (their lifetime shows it), as many as needed for one more.
const EVICT_CLIENTS: &str = "
    DELETE FROM oauth_client WHERE id IN (
        SELECT id FROM oauth_client WHERE expires_us - created_us <= ?1 ORDER BY expires_us
        LIMIT max(0, (SELECT count(*) FROM oauth_client) - ?2 + 1))";
const CREATE_CLIENT: &str = "
    INSERT INTO oauth_client (id, name, redirects, created_us, expires_us)
    SELECT ?1, ?2, ?3, ?4, ?5 WHERE (SELECT count(*) FROM oauth_client) < ?6";

const CREATE_REQUEST: &str = "
    INSERT INTO oauth_request (hash, client_id, client_name, redirect, challenge, state, scopes, resource, expires_us)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE (SELECT count(*) FROM oauth_request) < ?10";
const END_REQUEST: &str = "DELETE FROM oauth_request WHERE hash = ?1";

const CREATE_GRANT: &str = "
    INSERT INTO oauth_grant (account_id, client_id, client_name, redirect, challenge, scopes, resource, code_hash,
        code_expires_us, created_us, person_id, daily_cap_micros)
    SELECT ?2, client_id, client_name, redirect, challenge, ?3, resource, ?4, ?5, ?6, ?7, ?8
    FROM oauth_request WHERE hash = ?1 AND expires_us > ?6
        AND (?7 IS NULL OR EXISTS (SELECT 1 FROM person WHERE id = ?7 AND account_id = ?2)
            OR EXISTS (SELECT 1 FROM membership WHERE person_id = ?7 AND account_id = ?2))";
#[async_trait]
impl OAuthStore for SqliteStore {
    async fn create_client(&self, stored: &StoredClient, most: u32) -> Result<bool, StoreError> {
        let stored = stored.clone();
        self.write("register a client", move |db| {
            create_client(db, &stored, most)
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
            let mut statement = db.prepare_cached(sql::FIND_CLIENT.sqlite)?;
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
        self.write("store an authorization request", move |db| {
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
        self.write("redeem a code", move |db| tokens::redeem(db, &redemption))
            .await
    }

    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError> {
        let rotation = rotation.clone();
        self.write("rotate a refresh token", move |db| {
            tokens::rotate(db, &rotation)
        })
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
            tokens::revoke(db, &token, &client_id, micros(now))
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
        self.write("prune grants", move |db| pruning::prune(db, now_us, limit))
            .await
    }
}

fn create_client(db: &Connection, stored: &StoredClient, most: u32) -> Result<bool> {
    let unused_lifetime_us = micros(stored.expires) - micros(stored.created_at);
    db.prepare_cached(EVICT_CLIENTS)?
        .execute(params![unused_lifetime_us, most])?;
    let values = params![
        stored.client.id,
        stored.client.name.as_str(),
        redirects(&stored.client),
        micros(stored.created_at),
        micros(stored.expires),
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
    let mut statement = db.prepare_cached(sql::FIND_REQUEST.sqlite)?;
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
        approval.daily_cap.map(Money::micros),
    ];
    let granted = db.prepare_cached(CREATE_GRANT)?.execute(values)? > 0;
    db.prepare_cached(END_REQUEST)?.execute([id.as_bytes()])?;
    Ok(granted)
}

fn client(row: &Row<'_>) -> Result<ClientRecord> {
    Ok(ClientColumns::read(row)?.record()?)
}

fn request(row: &Row<'_>) -> Result<AuthorizationRequest> {
    Ok(RequestColumns::read(row)?.request()?)
}
