//! Redeems codes, refreshes tokens and revokes tokens for clients.

use std::net::IpAddr;

use domain::oauth::{
    ClientIdUrl, CodeProof, GrantRefusal, Granted, RefreshSecret, SuccessorPair, SuccessorSalt,
    Verifier, parse_scopes, same_resource,
};
use domain::ports::{CodeRedemption, NewPair, Revoked, Rotation, StoreError};
use domain::{Permission, Timestamp, TokenSecret};
use jiff::SignedDuration;

use super::{Grants, hash, in_order};
use crate::audit::{Action, Actor};
use crate::entropy;
use crate::identity::throttle::network;

/// A registered client is stored this long after it last got tokens, and at least as long as those live.
const CLIENT_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Codes and tokens are shorter than this.
const MAX_SECRET_BYTES: usize = 256;

/// The parameters of a token request, unchecked. A parameter without a value counts as missing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenParams {
    /// `authorization_code` or `refresh_token`.
    pub grant_type: Option<String>,
    pub client_id: Option<String>,
    pub code: Option<String>,
    /// Where the code was sent to.
    pub redirect_uri: Option<String>,
    /// The secret behind the PKCE challenge.
    pub code_verifier: Option<String>,
    pub refresh_token: Option<String>,
    /// A subset of the granted scopes.
    pub scope: Option<String>,
    /// What the tokens will be for.
    pub resource: Option<String>,
}

/// A new pair of tokens, to be shown once.
pub struct TokenAnswer {
    pub access_token: TokenSecret,
    pub expires_in_s: i64,
    pub refresh_token: RefreshSecret,
    /// The permissions of the access token.
    pub scopes: Vec<Permission>,
}

/// Why no tokens are given.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A parameter is missing or malformed.
    #[error("{0}")]
    Request(&'static str),
    /// The client is missing or unknown.
    #[error("client_id is missing, or no such client is registered")]
    Client,
    /// The code or refresh token is not valid for this request. Callers do not learn why.
    #[error(
        "the code or refresh token is not valid for this request: unknown, used, expired, revoked, or another's"
    )]
    Grant(GrantRefusal),
    /// The grant type is not offered.
    #[error("only authorization_code and refresh_token are offered")]
    GrantType,
    /// The scope is more than was granted.
    #[error("the scope is no part of what was granted")]
    Scope,
    /// The tokens would be for another resource.
    #[error("tokens are given for this service's own MCP server only")]
    Target,
    /// Too many failures came from the caller's address.
    #[error("too many failures came from this address")]
    Throttled {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Grants {
    /// Exchanges a code or a refresh token for tokens. A failure counts against the caller's address.
    pub async fn exchange(
        &self,
        params: &TokenParams,
        from: IpAddr,
    ) -> Result<TokenAnswer, TokenError> {
        self.ask(from)?;
        let answer = match params.grant_type.as_deref() {
            None => Err(TokenError::Request("grant_type is missing")),
            Some("authorization_code") => self.redeem(params).await,
            Some("refresh_token") => self.renew(params, from).await,
            Some(_) => Err(TokenError::GrantType),
        };
        match answer {
            Ok(tokens) => Ok(tokens),
            Err(error) => {
                let error = self.report_unknown_client(error, params).await?;
                Err(self.failed(error, from))
            }
        }
    }

    /// Answers that the client is unknown, so that a deleted client registers again.
    async fn report_unknown_client(
        &self,
        error: TokenError,
        params: &TokenParams,
    ) -> Result<TokenError, StoreError> {
        let (TokenError::Grant(GrantRefusal::Unknown | GrantRefusal::OtherClient), Some(id)) =
            (&error, params.client_id.as_deref())
        else {
            return Ok(error);
        };
        let is_address = ClientIdUrl::is_meant(id);
        let known = is_address || self.find_registered(id).await?.is_some();
        Ok(if known { error } else { TokenError::Client })
    }

    /// Revokes a token for its client; for a refresh token, the whole grant. Returns `false` if the token belongs to
    /// another client. An unknown token counts against the caller's address, like a wrong code.
    pub async fn revoke(
        &self,
        from: IpAddr,
        token: &str,
        client_id: &str,
    ) -> Result<bool, TokenError> {
        self.ask(from)?;
        if token.len() > MAX_SECRET_BYTES {
            return Ok(true);
        }
        let (token, now) = (hash(token), self.clock.now());
        let revoked = self.store.revoke_granted(&token, client_id, now).await?;
        // Recorded afterwards, because anyone may call this and strangers must not fill the audit log.
        if revoked == Revoked::Done {
            let by = Actor {
                who: format!("client {client_id}"),
                address: Some(from),
            };
            let _done = self
                .audit
                .record(&by, None, Action::GrantRevoke, "its own tokens", "")
                .await?;
        }
        if revoked != Revoked::Done {
            self.fail(from)?;
        }
        Ok(revoked != Revoked::OtherClient)
    }

    /// Call this before the database is asked.
    fn ask(&self, from: IpAddr) -> Result<(), TokenError> {
        throttled(self.failures.ask(from, self.clock.now()))
    }

    fn fail(&self, from: IpAddr) -> Result<(), TokenError> {
        throttled(self.failures.fail(from, self.clock.now()))
    }

    async fn redeem(&self, params: &TokenParams) -> Result<TokenAnswer, TokenError> {
        let code = required(params.code.as_deref(), "code is missing")?;
        let verifier = required(params.code_verifier.as_deref(), "code_verifier is missing")?;
        let client_id = params.client_id.clone().ok_or(TokenError::Client)?;
        self.check_resource(params)?;
        let proof = CodeProof {
            client_id,
            redirect: params.redirect_uri.clone(),
            verifier: Verifier::parse(verifier).map_err(|_| {
                TokenError::Request("code_verifier must have 43 to 128 letters, digits or -._~")
            })?,
        };
        let pair = SuccessorPair {
            access: TokenSecret::from_seed(&entropy::bytes()),
            refresh: RefreshSecret::from_seed(&entropy::bytes()),
        };
        let now = self.clock.now();
        let redemption = CodeRedemption {
            code: hash(code),
            proof,
            pair: self.new_pair(&pair, now),
        };
        let granted = self.store.redeem_code(&redemption).await?;
        Ok(token_answer(pair, &granted.map_err(refused)?, now))
    }

    /// Refreshing too often is refused before the database is asked, and does not end the grant.
    async fn renew(&self, params: &TokenParams, from: IpAddr) -> Result<TokenAnswer, TokenError> {
        let refresh = required(params.refresh_token.as_deref(), "refresh_token is missing")?;
        let client_id = params.client_id.clone().ok_or(TokenError::Client)?;
        self.check_resource(params)?;
        let scopes = parse_scopes(params.scope.as_deref()).map_err(|_| TokenError::Scope)?;
        // Without a scope, the client keeps what it has.
        let scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
        let now = self.clock.now();
        let used = hash(refresh);
        let client = (hash(&client_id), network(from));
        let allowed = self.refreshes.begin(used, now);
        allowed
            .and_then(|()| self.refreshes_by_client.begin(client, now))
            .map_err(|retry_after_s| TokenError::Throttled { retry_after_s })?;
        let salt = SuccessorSalt::from_bytes(entropy::bytes());
        let rotation = Rotation {
            refresh: used,
            client_id,
            scopes,
            pair: self.new_pair(&SuccessorPair::derive(refresh, &salt), now),
            salt,
        };
        let rotated = self.store.rotate_refresh(&rotation).await?;
        let rotated = rotated.map_err(refused)?;
        let pair = SuccessorPair::derive(refresh, &rotated.salt);
        self.refreshes.hand_over(&used, hash(pair.refresh.reveal()));
        Ok(token_answer(pair, &rotated.granted, now))
    }

    fn check_resource(&self, params: &TokenParams) -> Result<(), TokenError> {
        match params.resource.as_deref() {
            Some(asked) if !same_resource(&self.settings.resource, asked) => {
                Err(TokenError::Target)
            }
            _ => Ok(()),
        }
    }

    /// What the store needs to know about a pair.
    fn new_pair(&self, pair: &SuccessorPair, now: Timestamp) -> NewPair {
        let settings = &self.settings;
        NewPair {
            access: pair.access.hash(),
            access_expires: now + settings.access_lifetime,
            refresh: hash(pair.refresh.reveal()),
            refresh_expires: now + settings.refresh_lifetime,
            client_expires: now + settings.refresh_lifetime.max(CLIENT_LIFETIME),
            grant_lifetime: settings.grant_lifetime,
            now,
        }
    }

    /// Counts a failure against its address. After too many, the address must wait. A replayed code or token is logged,
    /// because it may have been stolen.
    fn failed(&self, error: TokenError, from: IpAddr) -> TokenError {
        if matches!(error, TokenError::Grant(GrantRefusal::Replayed)) {
            tracing::warn!(address = %from, "a code or refresh token came again; all tokens of its grant are revoked");
        }
        match error {
            TokenError::Store(_) | TokenError::Throttled { .. } => error,
            _ => self.fail(from).err().unwrap_or(error),
        }
    }
}

fn token_answer(pair: SuccessorPair, granted: &Granted, now: Timestamp) -> TokenAnswer {
    TokenAnswer {
        access_token: pair.access,
        expires_in_s: granted.access_expires.duration_since(now).as_secs().max(0),
        refresh_token: pair.refresh,
        scopes: in_order(granted.scopes),
    }
}

fn refused(refusal: GrantRefusal) -> TokenError {
    match refusal {
        GrantRefusal::Scope => TokenError::Scope,
        refusal => TokenError::Grant(refusal),
    }
}

fn throttled(wait: Option<u32>) -> Result<(), TokenError> {
    wait.map_or(Ok(()), |retry_after_s| {
        Err(TokenError::Throttled { retry_after_s })
    })
}

fn required<'a>(value: Option<&'a str>, missing: &'static str) -> Result<&'a str, TokenError> {
    let value = value.ok_or(TokenError::Request(missing))?;
    if value.len() > MAX_SECRET_BYTES {
        return Err(TokenError::Grant(GrantRefusal::Unknown));
    }
    Ok(value)
}
