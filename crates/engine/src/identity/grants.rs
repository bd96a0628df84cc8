//! OAuth grants: requested, approved, redeemed, refreshed, revoked.
//!
//! A client sends an authorization request ([`Grants::begin`]), a person answers it on a page ([`Grants::approve`],
//! [`Grants::deny`]), and the client redeems its code and later refreshes its tokens ([`Grants::exchange`]). Clients
//! register ([`Grants::register`]) or publish a document at the URL that is their ID.

mod authorize;
mod exchange;
mod register;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::access::attempts::AttemptLimit;
use domain::oauth::AuthorizationRequest;
use domain::ports::{Approval, ClientDocuments, GrantRecord, OAuthStore, StoreError};
use domain::{
    AccountId, Clock, GrantId, Money, Permission, Permissions, PersonId, Timestamp, TokenHash,
};
use jiff::SignedDuration;
use url::Url;

pub use authorize::{AuthorizeError, AuthorizeParams, WrongQuestion};
pub use exchange::{TokenAnswer, TokenError, TokenParams};
pub use register::{RegisterError, RegisteredClient};

use crate::audit::{Action, Actor, Audit};
use crate::entropy;
use crate::identity::attempts::AttemptCounter;
use crate::identity::throttle::Throttle;

/// How long a person may take to answer a request.
const REQUEST_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// How many requests may wait for an answer.
const MAX_REQUESTS: u32 = 100_000;
/// Limits per address: a burst, and the seconds after which one attempt is forgiven.
const REQUESTS_PER_ADDRESS: (u32, u32) = (60, 1);
const FAILURES_PER_ADDRESS: (u32, u32) = (30, 2);
const REGISTRATIONS_PER_ADDRESS: (u32, u32) = (20, 60);
/// Limits of refreshing: per grant, and per client and address.
const REFRESHES_PER_GRANT: AttemptLimit = AttemptLimit::Steady {
    burst: 30,
    forgiven_after: SignedDuration::from_secs(20),
};
const REFRESHES_PER_CLIENT: AttemptLimit = AttemptLimit::Steady {
    burst: 300,
    forgiven_after: SignedDuration::from_secs(1),
};
/// The limit for a whole IPv6 site.
const REGISTRATIONS_PER_SITE: (u32, u32) = (100, 12);

/// Issuer, resource and lifetimes of grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSettings {
    /// The authorization server's URL, without a trailing slash.
    pub issuer: String,
    /// What tokens are for: the URL of the MCP server.
    pub resource: String,
    /// How long a code can be redeemed.
    pub code_lifetime: SignedDuration,
    pub access_lifetime: SignedDuration,
    pub refresh_lifetime: SignedDuration,
    /// When all tokens of a grant end, however often they were refreshed.
    pub grant_lifetime: SignedDuration,
}

/// What a person allows a client.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    /// For the audit log.
    pub by: &'a Actor,
    pub account: AccountId,
    /// `None` if the person came by the link of the first start.
    pub person: Option<PersonId>,
    pub scopes: &'a [Permission],
    /// What the client may spend on one UTC day.
    pub daily_cap: Option<Money>,
}

/// An authorization request as a person sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pending {
    /// Secret: its holder may answer the request, once.
    pub id: String,
    /// The name that the client gave itself.
    pub client_name: String,
    pub client_id: String,
    /// Where the answer goes.
    pub redirect_uri: String,
    /// Whether the client is a program on the person's own machine.
    pub is_loopback: bool,
    /// What the client may get: the requested scopes, or all if it requested none.
    pub scopes: Vec<Permission>,
    /// Whether the client requested scopes. If not, a person must pick each one.
    pub scopes_named: bool,
    /// What the tokens will be for.
    pub resource: String,
    pub expires_at: Timestamp,
}

/// Hides the ID, which is a secret.
impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("client_id", &self.client_id)
            .field("redirect_uri", &self.redirect_uri)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// OAuth grants, from the request to the last token.
pub struct Grants {
    store: Arc<dyn OAuthStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    documents: Arc<dyn ClientDocuments>,
    settings: GrantSettings,
    requests: Throttle,
    failures: Throttle,
    registrations: Throttle,
    registrations_by_site: Throttle,
    /// By refresh token. The count moves to the next token, so it is the grant's.
    refreshes: AttemptCounter<TokenHash>,
    /// By the hash of the client's ID, and by address.
    refreshes_by_client: AttemptCounter<(TokenHash, IpAddr)>,
}

impl Grants {
    pub fn new(
        store: Arc<dyn OAuthStore>,
        clock: Arc<dyn Clock>,
        documents: Arc<dyn ClientDocuments>,
        settings: GrantSettings,
    ) -> Self {
        let throttle = |(burst, seconds)| Throttle::new(burst, seconds);
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            documents,
            settings,
            requests: throttle(REQUESTS_PER_ADDRESS),
            failures: throttle(FAILURES_PER_ADDRESS),
            registrations: throttle(REGISTRATIONS_PER_ADDRESS),
            registrations_by_site: throttle(REGISTRATIONS_PER_SITE).by_site(),
            refreshes: AttemptCounter::new(REFRESHES_PER_GRANT),
            refreshes_by_client: AttemptCounter::new(REFRESHES_PER_CLIENT),
        }
    }

    /// The clients that may act for an account, newest grant first.
    pub async fn list_connected(&self, account: AccountId) -> Result<Vec<GrantRecord>, StoreError> {
        self.store.list_grants(account, self.clock.now()).await
    }

    /// Whether an account has a grant to this client.
    pub async fn is_connected(
        &self,
        account: AccountId,
        client_id: &str,
    ) -> Result<bool, StoreError> {
        let granted = self.list_connected(account).await?;
        Ok(granted.iter().any(|grant| grant.client_id == client_id))
    }

    /// Revokes a grant and all its tokens; all nodes refuse them within a second. Returns `false` if the account has no
    /// such grant.
    pub async fn disconnect(
        &self,
        by: &Actor,
        account: AccountId,
        id: GrantId,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let known = self.store.list_grants(account, now).await?;
        let Some(grant) = known.into_iter().find(|grant| grant.id == id) else {
            return Ok(false);
        };
        let subject = format!("client {}", grant.client_name);
        let recorded = self
            .audit
            .record(
                by,
                Some(account),
                Action::GrantRevoke,
                subject,
                grant.client_id,
            )
            .await?;
        let revoked = self.store.revoke_grant(account, id, now).await;
        recorded.done(revoked).await
    }

    pub fn settings(&self) -> &GrantSettings {
        &self.settings
    }

    /// Counts a request from this address. Returns the seconds to wait if there were too many.
    pub fn slow_down(&self, from: IpAddr) -> Option<u32> {
        self.requests.fail(from, self.clock.now())
    }

    /// Accepts an authorization request, which then waits ten minutes for an answer.
    pub async fn begin(
        &self,
        address: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<Pending, AuthorizeError> {
        let request = self.check_request(address, params).await?;
        let id = secret();
        let key = hash(&id);
        let created = self.store.create_request(&key, &request, MAX_REQUESTS);
        if created.await? {
            Ok(pending(id, request))
        } else {
            let (client, redirect) = (&request.client_id, &request.redirect);
            Err(self.wrong(client, redirect, params, authorize::BUSY))
        }
    }

    /// The request, unless it is answered or expired.
    pub async fn pending(&self, id: &str) -> Result<Option<Pending>, StoreError> {
        let found = self.store.find_request(&hash(id), self.clock.now()).await?;
        Ok(found.map(|request| pending(id.to_owned(), request)))
    }

    /// Approves some of the offered scopes and returns where to redirect the person. `None` if the request is answered
    /// or expired, or if the consent has no scope or one that was not offered.
    pub async fn approve(&self, id: &str, consent: Consent<'_>) -> Result<Option<Url>, StoreError> {
        let now = self.clock.now();
        let Consent {
            by,
            account,
            person,
            scopes,
            daily_cap,
        } = consent;
        let Some(request) = self.store.find_request(&hash(id), now).await? else {
            return Ok(None);
        };
        let offered = offered_scopes(request.scopes);
        if scopes.is_empty() || !scopes.iter().all(|scope| offered.contains(scope)) {
            return Ok(None);
        }
        let scopes = scopes.iter().copied().collect::<Permissions>();
        let (name, client) = (&request.client_name, &request.client_id);
        let subject = format!("client {client} ({name})");
        let cap = daily_cap.map(|cap| format!(", at most {cap} a day"));
        let detail = format!("may {}{}", scopes.to_names(), cap.unwrap_or_default());
        let recorded = self
            .audit
            .record(by, Some(account), Action::GrantApprove, subject, detail)
            .await?;
        let code = secret();
        let approval = Approval {
            account,
            person,
            scopes,
            daily_cap,
            code: hash(&code),
            code_expires: now + self.settings.code_lifetime,
            now,
        };
        let granted = self.store.approve_request(&hash(id), &approval).await;
        match granted {
            Ok(true) => Ok(Some(self.redirect_with(&request, &[("code", &code)]))),
            Ok(false) => {
                recorded.refused(&"it was answered in the meantime").await;
                Ok(None)
            }
            Err(error) => recorded.done(Err(error)).await,
        }
    }

    /// Denies the request and returns where to redirect the person. `None` if it is answered or expired.
    pub async fn deny(&self, id: &str) -> Result<Option<Url>, StoreError> {
        let denied = self.store.deny_request(&hash(id), self.clock.now()).await?;
        let refusal = [
            ("error", "access_denied"),
            ("error_description", "The person said no."),
        ];
        Ok(denied.map(|request| self.redirect_with(&request, &refusal)))
    }

    /// Every answer names the issuer, so that a client of several servers cannot be made to mix them up (RFC 9207).
    fn redirect_with(&self, request: &AuthorizationRequest, parameters: &[(&str, &str)]) -> Url {
        let state = request.state.as_deref().map(|state| ("state", state));
        let parameters = parameters.iter().copied().chain(state);
        request
            .redirect
            .with(parameters.chain([("iss", self.settings.issuer.as_str())]))
    }
}

fn pending(id: String, request: AuthorizationRequest) -> Pending {
    Pending {
        id,
        client_name: request.client_name.to_string(),
        client_id: request.client_id,
        redirect_uri: request.redirect.as_str().to_owned(),
        is_loopback: request.redirect.is_loopback(),
        scopes: offered_scopes(request.scopes),
        scopes_named: !request.scopes.is_empty(),
        resource: request.resource,
        expires_at: request.expires,
    }
}

/// What a person may grant: the requested scopes, or all if none were requested.
fn offered_scopes(requested: Permissions) -> Vec<Permission> {
    if requested.is_empty() {
        domain::oauth::SCOPES.to_vec()
    } else {
        in_order(requested)
    }
}

/// In the order in which they are presented.
fn in_order(scopes: Permissions) -> Vec<Permission> {
    let granted = |scope: &Permission| scopes.contains(*scope);
    domain::oauth::SCOPES.into_iter().filter(granted).collect()
}

fn secret() -> String {
    URL_SAFE_NO_PAD.encode(entropy::bytes::<32>())
}

fn hash(secret: &str) -> TokenHash {
    TokenHash::from_secret(secret)
}
