//! A client that asks for consent: the use cases of the service itself, on its database.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_trait::async_trait;
use domain::clock::SystemClock;
use domain::oauth::ClientIdUrl;
use domain::ports::{ClientDocuments, UnusableDocument};
use domain::{Clock, Permission, Timestamp};
use engine::grants::{AuthorizeParams, TokenError, TokenParams};
use engine::{GrantSettings, Grants};
use jiff::SignedDuration;
use serde_json::json;
use store::{DatabaseUrl, Options};
use testkit::http::Response;
use tokio::runtime::Runtime;
use url::Url;

use crate::rest::service::Service;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The pair of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const RESOURCE: &str = "https://mcp.example/mcp";
pub(super) const REDIRECT: &str = "https://client.example/callback";

/// A clock that is so many minutes late.
struct Late(i64);

impl Clock for Late {
    fn now(&self) -> Timestamp {
        SystemClock.now() - SignedDuration::from_mins(self.0)
    }
}

struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        panic!("no client here is known by a document");
    }
}

/// A client that registered.
pub(super) struct Client {
    runtime: Runtime,
    grants: Grants,
    id: String,
    redirect: String,
}

impl Client {
    /// One that is sent back to a site.
    pub(super) fn new(service: &Service) -> Self {
        Self::with(service, "Helpful Agent", REDIRECT, 0)
    }

    /// A client of this name and address, whose clock is so many minutes late.
    pub(super) fn with(service: &Service, name: &str, redirect: &str, late: i64) -> Self {
        let file = service.server.data_dir().join("switchboard.db");
        let url = service.server.database_url().map(str::to_owned);
        let url = url.unwrap_or_else(|| format!("sqlite:{}", file.display()));
        let url: DatabaseUrl = url.parse().expect("a valid URL");
        let runtime = Runtime::new().expect("a runtime");
        let options = Options {
            postgres_connections: 2,
        };
        let store = runtime.block_on(store::open(&url, &options));
        let settings = GrantSettings {
            issuer: "https://auth.example".to_owned(),
            resource: RESOURCE.to_owned(),
            code_lifetime: SignedDuration::from_secs(60),
            access_lifetime: SignedDuration::from_hours(1),
            refresh_lifetime: SignedDuration::from_hours(24),
        };
        let grants = Grants::new(
            store.expect("the database opens"),
            Arc::new(Late(late)),
            Arc::new(NoDocuments),
            settings,
        );
        let about = json!({
            "client_name": name, "redirect_uris": [redirect], "token_endpoint_auth_method": "none",
        });
        let about = about.to_string();
        let registered = runtime.block_on(grants.register(about.as_bytes(), HERE));
        Self {
            runtime,
            grants,
            id: registered.expect("a good client").client.id,
            redirect: redirect.to_owned(),
        }
    }

    /// Asks for scopes; the answer is the path of the consent page.
    pub(super) fn ask(&self, scopes: &str) -> String {
        let params = AuthorizeParams {
            client_id: Some(self.id.clone()),
            redirect_uri: Some(self.redirect.clone()),
            response_type: Some("code".to_owned()),
            state: Some("the state".to_owned()),
            scope: Some(scopes.to_owned()),
            code_challenge: Some(CHALLENGE.to_owned()),
            code_challenge_method: Some("S256".to_owned()),
            ..AuthorizeParams::default()
        };
        let asked = self.runtime.block_on(self.grants.begin(&params));
        format!("/oauth/consent/{}", asked.expect("a good request").id)
    }

    /// Whether a request still waits for its answer.
    pub(super) fn waits(&self, path: &str) -> bool {
        let id = path.rsplit('/').next().expect("an ID");
        let pending = self.runtime.block_on(self.grants.pending(id));
        pending.expect("answers").is_some()
    }

    /// Redeems a code: the access token and what it may do.
    pub(super) fn redeem(&self, code: &str) -> Result<(String, Vec<Permission>), TokenError> {
        let params = TokenParams {
            grant_type: Some("authorization_code".to_owned()),
            client_id: Some(self.id.clone()),
            code: Some(code.to_owned()),
            redirect_uri: Some(self.redirect.clone()),
            code_verifier: Some(VERIFIER.to_owned()),
            ..TokenParams::default()
        };
        let given = self.runtime.block_on(self.grants.exchange(&params, HERE))?;
        Ok((given.access_token.reveal().to_owned(), given.scopes))
    }
}

/// A parameter of the address that an answer leads to.
pub(super) fn parameter(response: &Response, name: &str) -> Option<String> {
    let address = response.header("location").expect("a way back");
    let address = Url::parse(address).expect("a whole address");
    let found = address.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}
