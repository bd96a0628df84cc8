//! Clients, what they ask for, and what they were granted.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::access::permission::Permissions;
use crate::access::token::TokenHash;
use crate::ids::{AccountId, GrantId, PersonId};
use crate::oauth::{
    AuthorizationRequest, ClientName, ClientRecord, CodeProof, Grant, GrantRefusal, Granted,
    Successor, SuccessorSalt,
};
use crate::person::Email;

/// A client that registered, and until when it is kept unless somebody uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptClient {
    /// The client.
    pub client: ClientRecord,
    /// Now.
    pub created_at: Timestamp,
    /// When it is forgotten.
    pub expires: Timestamp,
}

/// A person's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// For which account.
    pub account: AccountId,
    /// Who grants it; `None`: somebody who came by the link of the first start.
    pub person: Option<PersonId>,
    /// What is granted.
    pub scopes: Permissions,
    /// The fingerprint of the code.
    pub code: TokenHash,
    /// Until when the code may be redeemed.
    pub code_expires: Timestamp,
    /// Now.
    pub now: Timestamp,
}

/// Two tokens to be given to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPair {
    /// The fingerprint of the one for calls.
    pub access: TokenHash,
    /// Until when it may be used.
    pub access_expires: Timestamp,
    /// The fingerprint of the one for new tokens.
    pub refresh: TokenHash,
    /// Until when that may be used.
    pub refresh_expires: Timestamp,
    /// Until when a client that registered is kept, now that it is in use.
    pub client_expires: Timestamp,
    /// How long after the grant all of its tokens are over.
    pub grant_lifetime: SignedDuration,
    /// Now.
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

/// A code that somebody brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRedemption {
    /// Its fingerprint.
    pub code: TokenHash,
    /// What is shown besides.
    pub proof: CodeProof,
    /// What is given for it.
    pub pair: NewPair,
}

/// A refresh token that somebody brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Its fingerprint.
    pub refresh: TokenHash,
    /// Who says that it is theirs.
    pub client_id: String,
    /// What the access token shall be for; `None`: all that was granted.
    pub scopes: Option<Permissions>,
    /// What is given for it.
    pub pair: NewPair,
    /// What that was derived from.
    pub salt: SuccessorSalt,
}

/// What a client was given for a refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// To whom, and for what.
    pub granted: Granted,
    /// What the tokens were derived from. When the client repeated its request, that is the salt of the first time.
    pub salt: SuccessorSalt,
}

impl Successor {
    /// The same tokens once more.
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

/// What became of a client's wish to give a token back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// It works no longer; with a refresh token all of its family.
    Done,
    /// There is none that works.
    Unknown,
    /// It was given to another client.
    OtherClient,
}

/// A client that may act for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRecord {
    /// What it was granted by.
    pub id: GrantId,
    /// What the client is named by.
    pub client_id: String,
    /// What it calls itself.
    pub client_name: ClientName,
    /// What it may do.
    pub scopes: Permissions,
    /// When that was granted.
    pub created_at: Timestamp,
    /// Who granted it, where that is known.
    pub granted_by: Option<Email>,
    /// When one of its tokens last opened something, as far as nodes have noted it.
    pub last_used_at: Option<Timestamp>,
}

/// Clients, what they ask for, and what they were granted.
///
/// What a grant gave are rows of the token list. Whatever changes them raises the access version in the same
/// transaction. All that may change a grant's tokens waits for one another, so of many that redeem the same code at once
/// one is given something, and the others betray it; of many that use the same refresh token at once all get the same.
#[async_trait]
pub trait OAuthStore: Send + Sync + 'static {
    /// Keeps a client. When there are `most` already, those that registered first and were never given tokens make room;
    /// `false` when there are none of those.
    async fn create_client(&self, client: &KeptClient, most: u32) -> Result<bool, StoreError>;

    /// The client of this ID, unless its time is over.
    async fn find_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<ClientRecord>, StoreError>;

    /// Keeps a request under this fingerprint; `false` when there are `most` already.
    async fn create_request(
        &self,
        id: &TokenHash,
        request: &AuthorizationRequest,
        most: u32,
    ) -> Result<bool, StoreError>;

    /// The request of this fingerprint, unless its time is over.
    async fn find_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError>;

    /// Puts a grant in the place of a request. `false`: it is unknown, answered already, or its time is over, or whoever
    /// grants it has been removed.
    async fn approve_request(
        &self,
        id: &TokenHash,
        approval: &Approval,
    ) -> Result<bool, StoreError>;

    /// Takes a request away. `None`: it is unknown, answered already, or its time is over.
    async fn deny_request(
        &self,
        id: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AuthorizationRequest>, StoreError>;

    /// Uses up a code and keeps the tokens that it gives. One that was used before ends the grant.
    async fn redeem_code(
        &self,
        redemption: &CodeRedemption,
    ) -> Result<Result<Granted, GrantRefusal>, StoreError>;

    /// Uses up a refresh token and keeps the tokens in its place; the access token that it had is revoked. One that was
    /// used before ends the grant, unless the same client repeats its request within the grace.
    async fn rotate_refresh(
        &self,
        rotation: &Rotation,
    ) -> Result<Result<Rotated, GrantRefusal>, StoreError>;

    /// Revokes a token that a client gives back. Tokens that were given to no client are not found.
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

    /// Ends a grant of an account with all its tokens; `false` when the account has none of this ID that lives.
    async fn revoke_grant(
        &self,
        account: AccountId,
        id: GrantId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes clients, requests, grants and tokens that are over, up to `limit` of each, and says how many. A used
    /// refresh token stays until it would have expired, so that its reuse is noticed; those of a revoked grant a day.
    async fn prune_grants(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
