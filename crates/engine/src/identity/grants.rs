//! What people grant to clients: asked for, answered, redeemed, renewed, taken back.
//!
//! A client asks ([`Grants::begin`]), a person answers on a page ([`Grants::approve`], [`Grants::deny`]), the client
//! redeems the code that it is sent back with, and renews its tokens ([`Grants::exchange`]). Clients register
//! ([`Grants::register`]), or are known by a document at the address that is their ID.

mod authorize;
mod exchange;
mod register;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::access::tries::TryLimit;
use domain::oauth::AuthorizationRequest;
use domain::ports::{Approval, ClientDocuments, GrantRecord, Store, StoreError};
use domain::{AccountId, Clock, GrantId, Permission, Permissions, PersonId, Timestamp, TokenHash};
use jiff::SignedDuration;
use url::Url;

pub use authorize::{AuthorizeError, AuthorizeParams, WrongQuestion};
pub use exchange::{TokenAnswer, TokenError, TokenParams};
pub use register::{RegisterError, RegisteredClient};

use crate::audit::{Action, Audit, By};
use crate::entropy;
use crate::identity::throttle::Throttle;
use crate::identity::tries::Tries;

/// How long a person may take to answer.
const REQUEST_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// Requests that may wait for an answer at once.
const MAX_REQUESTS: u32 = 100_000;
/// What an address may ask for or get wrong in quick succession, and after how many seconds one is forgiven.
const ASKING: (u32, i64) = (60, 1);
const FAILING: (u32, i64) = (30, 2);
const REGISTERING: (u32, i64) = (20, 60);
/// How often a client may renew the tokens of one grant, and how often it may renew any from one address.
const RENEWING: TryLimit = TryLimit::Steady {
    burst: 30,
    forgiven_after_s: 20,
};
const RENEWING_BY_CLIENT: TryLimit = TryLimit::Steady {
    burst: 300,
    forgiven_after_s: 1,
};
/// The same for all of an IPv6 site.
const REGISTERING_BY_SITE: (u32, i64) = (100, 12);

/// Who grants, for what, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSettings {
    /// The name of the authorization server, which is its address without a slash at the end.
    pub issuer: String,
    /// What tokens are for: the address of the MCP server.
    pub resource: String,
    /// How long a code may be redeemed.
    pub code_lifetime: SignedDuration,
    /// How long an access token works.
    pub access_lifetime: SignedDuration,
    /// How long a refresh token works.
    pub refresh_lifetime: SignedDuration,
    /// How long after the grant all of its tokens are over, however often they were renewed.
    pub grant_lifetime: SignedDuration,
}

/// What a person grants.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    /// Who, for the audit log.
    pub by: &'a By,
    /// For which account.
    pub account: AccountId,
    /// Who; `None`: somebody who came by the link of the first start.
    pub person: Option<PersonId>,
    /// What the client may do.
    pub scopes: &'a [Permission],
}

/// What a client asks for, as a person is shown it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pending {
    /// Names the request; who holds it may answer, once.
    pub id: String,
    /// What the client calls itself.
    pub client_name: String,
    /// What the client is named by.
    pub client_id: String,
    /// Where the answer goes.
    pub redirect_uri: String,
    /// Whether that is a program on the person's own machine.
    pub is_loopback: bool,
    /// What it may be granted: what it asks for, or all there is when it named nothing.
    pub scopes: Vec<Permission>,
    /// Whether it named them. What nobody asked for is granted only to whom a person picks it for.
    pub scopes_named: bool,
    /// What the tokens will be for.
    pub resource: String,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
}

/// Who holds its name may answer it, so that is not shown.
impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("client_id", &self.client_id)
            .field("redirect_uri", &self.redirect_uri)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Grants, from the question to the last token.
pub struct Grants {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    documents: Arc<dyn ClientDocuments>,
    settings: GrantSettings,
    asking: Throttle,
    failing: Throttle,
    registering: Throttle,
    registering_by_site: Throttle,
    /// By refresh token; the count goes on with the token that follows, so it is the grant's.
    renewing: Tries<TokenHash>,
    /// By the hash of the client's ID, and by address.
    renewing_by_client: Tries<(TokenHash, IpAddr)>,
}

impl Grants {
    /// Works on a store.
    pub fn new(
        store: Arc<dyn Store>,
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
            asking: throttle(ASKING),
            failing: throttle(FAILING),
            registering: throttle(REGISTERING),
            registering_by_site: throttle(REGISTERING_BY_SITE).by_site(),
            renewing: Tries::new(RENEWING),
            renewing_by_client: Tries::new(RENEWING_BY_CLIENT),
        }
    }

    /// The clients that may act for an account, the newest grant first.
    pub async fn list_connected(&self, account: AccountId) -> Result<Vec<GrantRecord>, StoreError> {
        self.store.list_grants(account, self.clock.now()).await
    }

    /// Whether an account has granted something to this client.
    pub async fn is_connected(
        &self,
        account: AccountId,
        client_id: &str,
    ) -> Result<bool, StoreError> {
        let granted = self.list_connected(account).await?;
        Ok(granted.iter().any(|grant| grant.client_id == client_id))
    }

    /// Ends what an account granted to a client, with all its tokens; every node refuses them within a second. `false`
    /// when the account has granted nothing of this ID, or not any more.
    pub async fn disconnect(
        &self,
        by: &By,
        account: AccountId,
        id: GrantId,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let known = self.store.list_grants(account, now).await?;
        let Some(grant) = known.into_iter().find(|grant| grant.id == id) else {
            return Ok(false);
        };
        let subject = format!("client {}", grant.client_name);
        let noted = self
            .audit
            .note(
                by,
                Some(account),
                Action::GrantRevoke,
                subject,
                grant.client_id,
            )
            .await?;
        let revoked = self.store.revoke_grant(account, id, now).await;
        noted.done(revoked).await
    }

    /// Who grants, for what, and for how long.
    pub fn settings(&self) -> &GrantSettings {
        &self.settings
    }

    /// The seconds to wait, when this address has asked too often. Each call counts.
    pub fn slow_down(&self, from: IpAddr) -> Option<u32> {
        self.asking.fail(from, self.clock.now())
    }

    /// Takes a client's question, from this address. It waits ten minutes for its answer.
    pub async fn begin(
        &self,
        asker: IpAddr,
        params: &AuthorizeParams,
    ) -> Result<Pending, AuthorizeError> {
        let request = self.check_request(asker, params).await?;
        let id = secret();
        let key = hash(&id);
        let kept = self.store.create_request(&key, &request, MAX_REQUESTS);
        if kept.await? {
            Ok(pending(id, request))
        } else {
            let (client, redirect) = (&request.client_id, &request.redirect);
            Err(self.wrong(client, redirect, params, authorize::BUSY))
        }
    }

    /// What was asked for, unless it is answered or its time is over.
    pub async fn pending(&self, id: &str) -> Result<Option<Pending>, StoreError> {
        let found = self.store.find_request(&hash(id), self.clock.now()).await?;
        Ok(found.map(|request| pending(id.to_owned(), request)))
    }

    /// Grants some of what was offered, and says where to send the person with the code. `None`: it is answered, its
    /// time is over, or the consent names no scope, or one that was not offered.
    pub async fn approve(&self, id: &str, consent: Consent<'_>) -> Result<Option<Url>, StoreError> {
        let now = self.clock.now();
        let Consent {
            by,
            account,
            person,
            scopes,
        } = consent;
        let Some(request) = self.store.find_request(&hash(id), now).await? else {
            return Ok(None);
        };
        let offered = offered(request.scopes);
        if scopes.is_empty() || !scopes.iter().all(|scope| offered.contains(scope)) {
            return Ok(None);
        }
        let scopes = scopes.iter().copied().collect::<Permissions>();
        let (name, client) = (&request.client_name, &request.client_id);
        let subject = format!("client {client} ({name})");
        let detail = format!("may {}", scopes.to_names());
        let noted = self
            .audit
            .note(by, Some(account), Action::GrantApprove, subject, detail)
            .await?;
        let code = secret();
        let approval = Approval {
            account,
            person,
            scopes,
            code: hash(&code),
            code_expires: now + self.settings.code_lifetime,
            now,
        };
        let granted = self.store.approve_request(&hash(id), &approval).await;
        match granted {
            Ok(true) => Ok(Some(self.answer(&request, &[("code", &code)]))),
            Ok(false) => {
                noted.refused(&"it was answered in the meantime").await;
                Ok(None)
            }
            Err(error) => noted.done(Err(error)).await,
        }
    }

    /// Grants nothing, and says where to send the person. `None`: it is answered, or its time is over.
    pub async fn deny(&self, id: &str) -> Result<Option<Url>, StoreError> {
        let denied = self.store.deny_request(&hash(id), self.clock.now()).await?;
        let refusal = [
            ("error", "access_denied"),
            ("error_description", "The person said no."),
        ];
        Ok(denied.map(|request| self.answer(&request, &refusal)))
    }

    /// Every answer says who gives it, so that a client of several servers cannot be made to mix them up (RFC 9207).
    fn answer(&self, request: &AuthorizationRequest, parameters: &[(&str, &str)]) -> Url {
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
        scopes: offered(request.scopes),
        scopes_named: !request.scopes.is_empty(),
        resource: request.resource,
        expires_at: request.expires,
    }
}

/// What a person may grant to whom asks for this: all there is to whom asks for nothing in particular.
fn offered(asked: Permissions) -> Vec<Permission> {
    if asked.is_empty() {
        domain::oauth::SCOPES.to_vec()
    } else {
        in_order(asked)
    }
}

/// In the order in which people are asked.
fn in_order(scopes: Permissions) -> Vec<Permission> {
    let granted = |scope: &Permission| scopes.contains(*scope);
    domain::oauth::SCOPES.into_iter().filter(granted).collect()
}

/// 256 random bits.
fn secret() -> String {
    URL_SAFE_NO_PAD.encode(entropy::bytes::<32>())
}

fn hash(secret: &str) -> TokenHash {
    TokenHash::of(secret)
}
