//! Codes and refresh tokens for new tokens, and tokens that are given back.

use std::net::IpAddr;

use domain::oauth::{
    ClientIdUrl, CodeProof, GrantRefusal, Granted, RefreshSecret, SuccessorPair, SuccessorSalt,
    Verifier, parse_scopes, same_resource,
};
use domain::ports::{CodeRedemption, NewPair, Revoked, Rotation, StoreError};
use domain::{Permission, Timestamp, TokenSecret};
use jiff::SignedDuration;

use super::{Grants, hash, in_order};
use crate::audit::{Action, By};
use crate::entropy;
use crate::identity::throttle::network;

/// A client that registered is kept so long after it was last given tokens, and never shorter than those live.
const CLIENT_KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Codes and tokens are shorter than this, in bytes.
const MAX_SECRET_BYTES: usize = 256;

/// The parameters of a wish for tokens, as they came. One without a value counts as left out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenParams {
    /// What is brought: a code or a refresh token.
    pub grant_type: Option<String>,
    /// Who brings it.
    pub client_id: Option<String>,
    /// The code.
    pub code: Option<String>,
    /// Where it was sent to.
    pub redirect_uri: Option<String>,
    /// The secret behind the challenge.
    pub code_verifier: Option<String>,
    /// The refresh token.
    pub refresh_token: Option<String>,
    /// What the access token shall be for.
    pub scope: Option<String>,
    /// What the tokens shall be for.
    pub resource: Option<String>,
}

/// Two tokens, to be shown once.
pub struct TokenAnswer {
    /// For calls.
    pub access_token: TokenSecret,
    /// How long that works.
    pub expires_in_s: i64,
    /// For new tokens.
    pub refresh_token: RefreshSecret,
    /// What the access token may do.
    pub scopes: Vec<Permission>,
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A parameter is missing or malformed.
    #[error("{0}")]
    Request(&'static str),
    /// Nobody says who brings it, or nobody knows whom that names.
    #[error("client_id is missing, or no such client is registered")]
    Client,
    /// It is brought by the wrong one, too late, again or with a wrong proof. Which of these is nobody's business.
    #[error(
        "the code or refresh token is not valid for this request: unknown, used, expired, revoked, or another's"
    )]
    Grant(GrantRefusal),
    /// Something else is brought.
    #[error("only authorization_code and refresh_token are offered")]
    GrantType,
    /// More is asked for than was granted.
    #[error("the scope is no part of what was granted")]
    Scope,
    /// The tokens shall be for something else.
    #[error("tokens are given for this service's own MCP server only")]
    Target,
    /// Too many failures came from the caller's address.
    #[error("too many failures came from this address")]
    Throttled {
        /// When to try again.
        retry_after_s: u32,
    },
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Grants {
    /// Gives tokens for a code or a refresh token. A failure counts against the caller's address.
    pub async fn exchange(
        &self,
        params: &TokenParams,
        from: IpAddr,
    ) -> Result<TokenAnswer, TokenError> {
        self.ask(from)?;
        let given = match params.grant_type.as_deref() {
            None => Err(TokenError::Request("grant_type is missing")),
            Some("authorization_code") => self.redeem(params).await,
            Some("refresh_token") => self.renew(params, from).await,
            Some(_) => Err(TokenError::GrantType),
        };
        match given {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let error = self.name_client(error, params).await?;
                Err(self.failed(error, from))
            }
        }
    }

    /// A client that was forgotten has to register again, so it is told; all that it holds is worth nothing anyway.
    async fn name_client(
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

    /// Takes back a token that a client no longer wants; with a refresh token all of its family. `false`: it was given
    /// to another client. What is not there counts against the caller's address, like a wrong code.
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
        // Afterwards, because anybody may ask: a log that strangers can fill is no log.
        if revoked == Revoked::Done {
            let by = By {
                who: format!("client {client_id}"),
                address: Some(from),
            };
            let _done = self
                .audit
                .note(&by, None, Action::GrantRevoke, "its own tokens", "")
                .await?;
        }
        if revoked != Revoked::Done {
            self.fail(from)?;
        }
        Ok(revoked != Revoked::OtherClient)
    }

    /// Asked before the database is.
    fn ask(&self, from: IpAddr) -> Result<(), TokenError> {
        throttled(self.failing.ask(from, self.clock.now()))
    }

    fn fail(&self, from: IpAddr) -> Result<(), TokenError> {
        throttled(self.failing.fail(from, self.clock.now()))
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
            pair: self.kept(&pair, now),
        };
        let granted = self.store.redeem_code(&redemption).await?;
        Ok(hand_over(pair, &granted.map_err(refused)?, now))
    }

    /// Refreshing too often is refused before the database is asked, and does not end the grant.
    async fn renew(&self, params: &TokenParams, from: IpAddr) -> Result<TokenAnswer, TokenError> {
        let refresh = required(params.refresh_token.as_deref(), "refresh_token is missing")?;
        let client_id = params.client_id.clone().ok_or(TokenError::Client)?;
        self.check_resource(params)?;
        let scopes = parse_scopes(params.scope.as_deref()).map_err(|_| TokenError::Scope)?;
        // Who names none keeps what it has.
        let scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
        let now = self.clock.now();
        let used = hash(refresh);
        let client = (hash(&client_id), network(from));
        let within = self.renewing.begin(used, now);
        within
            .and_then(|()| self.renewing_by_client.begin(client, now))
            .map_err(|retry_after_s| TokenError::Throttled { retry_after_s })?;
        let salt = SuccessorSalt::from_bytes(entropy::bytes());
        let rotation = Rotation {
            refresh: used,
            client_id,
            scopes,
            pair: self.kept(&SuccessorPair::derive(refresh, &salt), now),
            salt,
        };
        let rotated = self.store.rotate_refresh(&rotation).await?;
        let rotated = rotated.map_err(refused)?;
        let pair = SuccessorPair::derive(refresh, &rotated.salt);
        self.renewing.hand_over(&used, hash(pair.refresh.reveal()));
        Ok(hand_over(pair, &rotated.granted, now))
    }

    fn check_resource(&self, params: &TokenParams) -> Result<(), TokenError> {
        match params.resource.as_deref() {
            Some(asked) if !same_resource(&self.settings.resource, asked) => {
                Err(TokenError::Target)
            }
            _ => Ok(()),
        }
    }

    /// What the store keeps of a pair.
    fn kept(&self, pair: &SuccessorPair, now: Timestamp) -> NewPair {
        let settings = &self.settings;
        NewPair {
            access: pair.access.hash(),
            access_expires: now + settings.access_lifetime,
            refresh: hash(pair.refresh.reveal()),
            refresh_expires: now + settings.refresh_lifetime,
            client_expires: now + settings.refresh_lifetime.max(CLIENT_KEPT),
            grant_lifetime: settings.grant_lifetime,
            now,
        }
    }

    /// A wrong guess counts against its address; when that has used up its tries, it is told to wait instead. What was
    /// used before is told to people: somebody has it who should not.
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

fn hand_over(pair: SuccessorPair, granted: &Granted, now: Timestamp) -> TokenAnswer {
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
