//! OAuth clients, their requests, and the grants.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{AuditStore, StoreError};
use crate::access::permission::Permissions;
use crate::access::token::TokenHash;
use crate::ids::{AccountId, GrantId, PersonId};
use crate::money::Money;
use crate::oauth::{
    AuthorizationRequest, ClientName, ClientRecord, CodeProof, Grant, GrantRefusal, Granted,
    Successor, SuccessorSalt,
};
use crate::person::Email;

/// A registered client, and when it is deleted unless somebody uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClient {
    pub client: ClientRecord,
    pub created_at: Timestamp,
    pub expires: Timestamp,
}

/// A person's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub account: AccountId,
    /// `None` if the person came by the link of the first start.
    pub person: Option<PersonId>,
    pub scopes: Permissions,
    /// What the client may spend on one UTC day.
    pub daily_cap: Option<Money>,
    /// The hash of the code.
    pub code: TokenHash,
    pub code_expires: Timestamp,
    pub now: Timestamp,
}

/// Two tokens to issue to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPair {
    /// The hash of the access token.
    pub access: TokenHash,
    pub access_expires: Timestamp,
    /// The hash of the refresh token.
    pub refresh: TokenHash,
    pub refresh_expires: Timestamp,
    /// When a registered client is deleted, now that it is in use.
    pub client_expires: Timestamp,
    /// How long after the grant all of its tokens expire.
    pub grant_lifetime: SignedDuration,
    pub now: Timestamp,
}

impl NewPair {
    /// The same, but neither token outlives the grant.
    #[must_use]
    pub fn within(&self, grant: &Grant) -> Self {
        let ends = grant.ends(self.grant_lifetime);
        Self {
            access_expires: self.access_expires.min(ends),
            refresh_expires: self.refresh_expires.min(ends),
            ..self.clone()
        }
    }
}

/// A code that a client redeems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRedemption {
    /// The hash of the code.
    pub code: TokenHash,
    pub proof: CodeProof,
    /// The tokens to issue.
    pub pair: NewPair,
}

/// A refresh token that a client uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The hash of the refresh token.
    pub refresh: TokenHash,
    pub client_id: String,
    /// The scopes of the new access token; `None` for all granted ones.
    pub scopes: Option<Permissions>,
    /// The tokens to issue.
    pub pair: NewPair,
    /// The salt that they were derived with.
    pub salt: SuccessorSalt,
}

/// The tokens that a client got for a refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    pub granted: Granted,
    /// The salt that the tokens were derived with. If the client repeated its request, it is the salt of the first one.
    pub salt: SuccessorSalt,
}

impl Successor {
    pub fn rotated(self, account: AccountId) -> Rotated {
        Rotated {
            granted: Granted {
                account,
                scopes: self.scopes,
                access_expires: self.access_expires,
            },
            salt: self.salt,
        }
    }
}

/// The result of a client revoking a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// It is revoked; with a refresh token, all tokens of the grant are.
    Done,
    /// There is no such valid token.
    Unknown,
    OtherClient,
}

/// A client that may act for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRecord {
    pub id: GrantId,
    pub client_id: String,
    pub client_name: ClientName,
    pub scopes: Permissions,
    /// What the client may spend on one UTC day.
    pub daily_cap: Option<Money>,
    pub created_at: Timestamp,
    pub granted_by: Option<Email>,
    /// When one of its tokens was last used; nodes store it with a delay.
    pub last_used_at: Option<Timestamp>,
}

/// OAuth clients, their requests, and the grants.
///
/// Issued tokens are rows of the token list, and every change of them raises the access version in the same
/// transaction. Changes of one grant's tokens are serialised. So if several requests redeem the same code at once, one
/// gets tokens and the others revoke them; if several use the same refresh token at once, all get the same tokens.
#[async_trait]
pub trait OAuthStore: AuditStore {
    /// Stores a client. If there are `most` clients already, it replaces the oldest ones that never got tokens; `false`
    /// if there are none of those.
    async fn create_client(&self, client: &StoredClient, most: u32) -> Result<bool, StoreError>;

    /// The client with this ID, unless it has expired.
    async fn find_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<ClientRecord>, StoreError>;

    /// Stores a request under this hash; `false` if there are `most` already.
    async fn create_request(
        &self,
        id: &TokenHash,
        request: &AuthorizationRequest,
        most: u32,
    ) -> Result<bool, StoreError>;

    /// The request with this hash, unless it has expired.
    async fn find_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError>;

    /// Replaces a request by a grant. `false` if the request is unknown, answered or expired, or the person has been
    /// removed.
    async fn approve_request(
        &self,
        id: &TokenHash,
        approval: &Approval,
    ) -> Result<bool, StoreError>;

    /// Deletes a request. `None` if it is unknown, answered or expired.
    async fn deny_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError>;

    /// Uses up a code and stores the tokens issued for it. Reuse of a code revokes the grant.
    async fn redeem_code(
        &self,
        redemption: &CodeRedemption,
    ) -> Result<Result<Granted, GrantRefusal>, StoreError>;

    /// Uses up a refresh token and stores the tokens that replace it; its access token is revoked. Reuse revokes the
    /// grant, unless the same client repeats its request within the grace period.
    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError>;

    /// Revokes a token on behalf of its client. Tokens that were not issued to a client are not found.
    async fn revoke_granted(
        &self,
        token: &TokenHash,
        client_id: &str,
        now: Timestamp,
    ) -> Result<Revoked, StoreError>;

    /// The clients that may act for an account, the newest grant first: those with a token that can still be used or
    /// renewed.
    async fn list_grants(
        &self,
        account: AccountId,
        now: Timestamp,
    ) -> Result<Vec<GrantRecord>, StoreError>;

    /// Revokes a grant of an account with all its tokens; `false` if the account has no such active grant.
    async fn revoke_grant(
        &self,
        account: AccountId,
        id: GrantId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes expired clients, requests, grants and tokens, up to `limit` of each. Returns the number. A used refresh
    /// token stays until its expiry, so that its reuse is noticed; tokens of a revoked grant stay for a day.
    async fn prune_grants(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
