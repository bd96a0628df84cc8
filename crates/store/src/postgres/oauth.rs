//! The port for OAuth: clients, authorization requests, grants and their tokens.
//!
//! Every change to the tokens of a grant locks the row of the grant first, so that concurrent changes follow one
//! another.

use async_trait::async_trait;
use domain::oauth::{AuthorizationRequest, ClientRecord, GrantRefusal, Granted};
use domain::ports::{
    Approval, CodeRedemption, GrantRecord, OAuthStore, Revoked, Rotated, Rotation, StoreError,
    StoredClient,
};
use domain::{AccountId, GrantId, Money, PersonId, Timestamp, TokenHash};
use tokio_postgres::Row;

use super::{PostgresStore, Values, retry};
use crate::rows::oauth::{ClientColumns, RequestColumns, redirects};
use crate::rows::{Corrupt, micros};
use crate::sql::oauth as sql;

mod connected;
mod pruning;
mod tokens;

use connected::RevokeGrant;
pub(super) use connected::end_grants_of;
pub(super) use tokens::Revoke;
use tokens::{Redeem, RevokeByClient, Rotate};

/// Deletes the oldest clients that never got tokens (their lifetime shows it), as many as needed for one more.
const CREATE_CLIENT: &str = "
    WITH evicted AS (
        DELETE FROM oauth_client WHERE id = ANY(ARRAY(
            SELECT id FROM oauth_client WHERE expires_us - created_us <= $5::bigint - $4::bigint ORDER BY expires_us
            LIMIT greatest(0, (SELECT count(*) FROM oauth_client) - $6::bigint + 1) FOR UPDATE SKIP LOCKED))
        RETURNING id
    )
    INSERT INTO oauth_client (id, name, redirects, created_us, expires_us)
    SELECT $1, $2, $3, $4::bigint, $5::bigint
    WHERE (SELECT count(*) FROM oauth_client) - (SELECT count(*) FROM evicted) < $6::bigint RETURNING id";

const CREATE_REQUEST: &str = "
    INSERT INTO oauth_request (hash, client_id, client_name, redirect, challenge, state, scopes, resource, expires_us)
    SELECT $1::bytea, $2, $3, $4, $5::bytea, $6::bytea, $7, $8, $9::bigint
    WHERE (SELECT count(*) FROM oauth_request) < $10::bigint RETURNING hash";
const DENY_REQUEST: &str = "
    DELETE FROM oauth_request WHERE hash = $1 AND expires_us > $2
    RETURNING client_id, client_name, redirect, challenge, state, scopes, resource, expires_us";
/// The row locks wait for a removal of the person from the account, after which nothing is granted.
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
        code_expires_us, created_us, person_id, daily_cap_micros)
    SELECT $2::bigint, client_id, client_name, redirect, challenge, $3, resource, $4::bytea, $5::bigint, $6::bigint,
        $7::bigint, $8::bigint
    FROM taken
    WHERE $7::bigint IS NULL OR EXISTS (SELECT 1 FROM giver) OR EXISTS (SELECT 1 FROM further) RETURNING id";

#[async_trait]
impl OAuthStore for PostgresStore {
    async fn create_client(&self, stored: &StoredClient, most: u32) -> Result<bool, StoreError> {
        let client = &stored.client;
        let values: Values<'_> = &[
            &client.id,
            &client.name.as_str(),
            &redirects(client),
            &micros(stored.created_at),
            &micros(stored.expires),
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
        self.find("find a client", sql::FIND_CLIENT.postgres, values, client)
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
        let created = self.query("store an authorization request", CREATE_REQUEST, values);
        Ok(!created.await?.is_empty())
    }

    async fn find_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError> {
        let values: Values<'_> = &[&id.as_bytes().as_slice(), &micros(now)];
        let operation = "find an authorization request";
        self.find(operation, sql::FIND_REQUEST.postgres, values, request)
            .await
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
            &approval.daily_cap.map(Money::micros),
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
        retry::run(&self.pool, "redeem a code", &Redeem(redemption)).await
    }

    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError> {
        retry::run(&self.pool, "rotate a refresh token", &Rotate(rotation)).await
    }

    async fn revoke_granted(
        &self,
        token: &TokenHash,
        client_id: &str,
        now: Timestamp,
    ) -> Result<Revoked, StoreError> {
        let revocation = RevokeByClient {
            token,
            client_id,
            now_us: micros(now),
        };
        retry::run(&self.pool, "revoke a client's token", &revocation).await
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
        let revocation = RevokeGrant {
            account,
            id,
            now_us,
        };
        retry::run(&self.pool, "revoke a grant", &revocation).await
    }

    async fn prune_grants(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.prune_clients_and_grants(now, limit).await
    }
}

fn client(row: &Row) -> Result<ClientRecord, Corrupt> {
    ClientColumns::read(row)?.record()
}

fn request(row: &Row) -> Result<AuthorizationRequest, Corrupt> {
    RequestColumns::read(row)?.request()
}
