//! A running service, a client, and a person who gives consent.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use domain::oauth::ClientIdUrl;
use domain::ports::{ClientDocuments, Store, UnusableDocument};
use domain::{AccountId, Permission};
use engine::clock::SystemClock;
use engine::identity::grants::{Consent, TokenParams};
use engine::{Actor, GrantSettings, Grants};
use jiff::SignedDuration;
use serde_json::{Value, json};
use testkit::http::Response;
use testkit::{Backend, ServerBuilder};
use tokio::runtime::Runtime;
use url::Url;

use crate::people::joined;
use crate::rest::service::Service;

/// The example of RFC 7636, appendix B.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The redirect of the client.
pub(crate) const REDIRECT: &str = "https://client.example/cb";
pub(super) const STATE: &str = "a state & more";

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// Names and values of a request, to be changed by cases.
pub(crate) type Params = Vec<(String, String)>;

/// The tokens of a client.
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
    pub(super) answer: Value,
}

/// Counts that must not grow when a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issued {
    requests: i64,
    grants: i64,
    tokens: i64,
    clients: i64,
}

/// The service fetches documents, not the test.
struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("authorization requests go to the service, not to the test")
    }
}

/// The service, and the person's side of it on the same database.
pub(crate) struct Site {
    pub(crate) service: Service,
    runtime: Runtime,
    store: Arc<dyn Store>,
    grants: Grants,
    account: AccountId,
    /// Each call comes from its own address, so that the failures of one case do not slow down another.
    caller: Cell<u16>,
}

impl Site {
    pub(super) fn start(backend: Backend) -> Self {
        Self::with(backend, |builder| builder)
    }

    pub(crate) fn with(
        backend: Backend,
        configure: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let service = Service::with(backend, |builder| {
            configure(builder.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.1/32']"))
        });
        let runtime = Runtime::new().expect("a runtime");
        let url = match service.server.database_url() {
            Some(url) => url.to_owned(),
            None => format!(
                "sqlite:{}",
                service.server.data_dir().join("switchboard.db").display()
            ),
        };
        let url = url.parse().expect("a URL");
        let store = runtime.block_on(store::open(&url, &crate::database::options()));
        let store = store.expect("the database opens");
        let account = runtime.block_on(store.find_account("main"));
        let account = account.expect("answers").expect("the first account").id;
        let grants = grants(&service, &store, &|_| {});
        Self {
            service,
            runtime,
            store,
            grants,
            account,
            caller: Cell::new(0),
        }
    }

    /// The name of the authorization server.
    pub(super) fn issuer(&self) -> String {
        self.service.server.url("")
    }

    pub(super) fn resource(&self) -> String {
        self.service.server.url("/mcp")
    }

    /// Sends one request from its own address.
    pub(super) fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let caller = self.caller.get() + 1;
        self.caller.set(caller);
        let address = format!("198.51.{}.{}", caller / 250, caller % 250);
        let mut all = vec![("X-Forwarded-For", address.as_str())];
        all.extend_from_slice(headers);
        self.service.raw(method, path, &all, body)
    }

    pub(super) fn register_as(&self, metadata: &Value) -> Response {
        let json = [("Content-Type", "application/json")];
        let body = metadata.to_string();
        self.call("POST", "/oauth/register", &json, body.as_bytes())
    }

    /// Registers a client with this redirect, and returns its ID.
    pub(crate) fn register(&self, redirect: &str) -> String {
        let metadata = json!({ "client_name": "Acme Desk", "redirect_uris": [redirect] });
        let answer = self.register_as(&metadata);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = answer.json()["client_id"].as_str().map(str::to_owned);
        id.expect("an ID")
    }

    /// Parameters of a valid authorization request.
    pub(super) fn authorize_params(&self, client: &str, redirect: &str) -> Params {
        params(&[
            ("client_id", client),
            ("redirect_uri", redirect),
            ("response_type", "code"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", STATE),
            ("scope", "sms:rates sms:send"),
            ("resource", &self.resource()),
        ])
    }

    pub(super) fn authorize(&self, params: &Params) -> Response {
        let path = format!("/oauth/authorize?{}", encode(params));
        self.call("GET", &path, &[], b"")
    }

    /// An authorization request from a signed-in browser.
    pub(super) fn authorize_as(&self, session: &str, params: &Params) -> Response {
        let path = format!("/oauth/authorize?{}", encode(params));
        let cookie = format!("switchboard={session}");
        self.call("GET", &path, &[("Cookie", &cookie)], b"")
    }

    /// The session of a new member of an account.
    pub(super) fn signed_in(&self, email: &str, account: &str) -> String {
        let browser = joined(&self.service, email, &["--account", account]);
        let session = browser.cookie("switchboard").expect("a session");
        session.to_owned()
    }

    /// Sends an authorization request that must be accepted, and returns its ID.
    pub(super) fn start_request(&self, params: &Params) -> String {
        let answer = self.authorize(params);
        let location = location(&answer);
        let consent = self.service.server.url("/oauth/consent/");
        let id = location.as_str().strip_prefix(&consent);
        id.unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    /// The person approves these scopes.
    pub(super) fn approve(&self, id: &str, scopes: &[Permission]) -> Option<Url> {
        let by = Actor::command_line();
        let approved = self.grants.approve(id, self.consent(&by, scopes));
        self.runtime.block_on(approved).expect("answers")
    }

    fn consent<'a>(&self, by: &'a Actor, scopes: &'a [Permission]) -> Consent<'a> {
        Consent {
            by,
            account: self.account,
            person: None,
            scopes,
            daily_cap: None,
        }
    }

    pub(super) fn deny(&self, id: &str) -> Option<Url> {
        self.runtime
            .block_on(self.grants.deny(id))
            .expect("answers")
    }

    /// A code for a client that was granted all the scopes it requested.
    pub(super) fn code(&self, client: &str) -> String {
        let id = self.start_request(&self.authorize_params(client, REDIRECT));
        let scopes = [Permission::SmsRates, Permission::SmsSend];
        let redirect = self.approve(&id, &scopes).expect("the request is pending");
        query(&redirect, "code").expect("a code")
    }

    /// An expired code.
    pub(super) fn expired_code(&self, client: &str) -> String {
        let id = self.start_request(&self.authorize_params(client, REDIRECT));
        let grants_with_expiry = grants(&self.service, &self.store, &|settings| {
            settings.code_lifetime = SignedDuration::ZERO;
        });
        let (by, scopes) = (Actor::command_line(), [Permission::SmsRates]);
        let approved = grants_with_expiry.approve(&id, self.consent(&by, &scopes));
        let redirect = self.runtime.block_on(approved).expect("answers");
        query(&redirect.expect("the request is pending"), "code").expect("a code")
    }

    /// An expired refresh token.
    pub(super) fn expired_refresh(&self, client: &str) -> String {
        let grants_with_expiry = grants(&self.service, &self.store, &|settings| {
            settings.refresh_lifetime = SignedDuration::ZERO;
        });
        let params = TokenParams {
            grant_type: Some("authorization_code".to_owned()),
            client_id: Some(client.to_owned()),
            code: Some(self.code(client)),
            code_verifier: Some(VERIFIER.to_owned()),
            ..TokenParams::default()
        };
        let caller = [127, 0, 0, 1].into();
        let issued = self
            .runtime
            .block_on(grants_with_expiry.exchange(&params, caller));
        issued.expect("issued").refresh_token.reveal().to_owned()
    }

    pub(super) fn redeem_params(&self, client: &str, code: &str) -> Params {
        params(&[
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
            ("resource", &self.resource()),
        ])
    }

    pub(super) fn refresh_params(&self, client: &str, refresh: &str) -> Params {
        params(&[
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", refresh),
            ("resource", &self.resource()),
        ])
    }

    /// Sends a form to an endpoint.
    pub(crate) fn send(&self, path: &str, params: &Params) -> Response {
        self.call("POST", path, &[FORM], encode(params).as_bytes())
    }

    pub(super) fn exchange(&self, params: &Params) -> Response {
        self.send("/oauth/token", params)
    }

    /// Exchanges a code or a refresh token, which must succeed.
    pub(super) fn exchange_ok(&self, params: &Params) -> Tokens {
        let answer = self.exchange(params);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let text = |name: &str| answer[name].as_str().expect(name).to_owned();
        Tokens {
            access: text("access_token"),
            refresh: text("refresh_token"),
            answer: answer.clone(),
        }
    }

    pub(crate) fn tokens(&self, client: &str) -> Tokens {
        self.exchange_ok(&self.redeem_params(client, &self.code(client)))
    }

    /// The status of a call to REST with this token.
    pub(super) fn rest_status(&self, token: &str) -> u16 {
        let header = [("X-Service-Token", token)];
        self.call("GET", "/token", &header, b"").status
    }

    /// Changes stored times instead of waiting. On SQLite only.
    pub(super) fn change_stored(&self, sql: &str) {
        let changed = self.file().execute(sql, []).expect("a change");
        assert!(changed > 0, "{sql}");
    }

    fn file(&self) -> rusqlite::Connection {
        let path = self.service.server.data_dir().join("switchboard.db");
        let file = rusqlite::Connection::open(path).expect("the file opens");
        file.busy_timeout(testkit::TEST_TIMEOUT).expect("it is set");
        file
    }

    /// What was issued so far. On SQLite only.
    pub(super) fn issued(&self) -> Issued {
        let file = self.file();
        let count = |what: &str| {
            let sql = format!("SELECT count(*) FROM {what}");
            file.query_row(&sql, [], |row| row.get(0)).expect("a count")
        };
        Issued {
            requests: count("oauth_request"),
            grants: count("oauth_grant"),
            tokens: count("token"),
            clients: count("oauth_client"),
        }
    }
}

/// The grants as the consent page uses them, with changed settings.
fn grants(
    service: &Service,
    store: &Arc<dyn Store>,
    change: &dyn Fn(&mut GrantSettings),
) -> Grants {
    let mut settings = GrantSettings {
        issuer: service.server.url(""),
        resource: service.server.url("/mcp"),
        code_lifetime: SignedDuration::from_secs(60),
        access_lifetime: SignedDuration::from_hours(1),
        refresh_lifetime: SignedDuration::from_hours(1),
        grant_lifetime: SignedDuration::from_hours(24 * 180),
    };
    change(&mut settings);
    let (store, clock) = (Arc::clone(store), Arc::new(SystemClock));
    Grants::new(store, clock, Arc::new(NoDocuments), settings)
}

/// Parameters from names and values.
pub(crate) fn params(pairs: &[(&str, &str)]) -> Params {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// The parameters with one of them replaced.
pub(super) fn with(params: &Params, name: &str, value: &str) -> Params {
    change(params, &format!("{name}={value}"), &[])
}

/// The parameters changed: `-name` leaves one out, `name=value` replaces it, `+name=value` adds it once more. `{name}`
/// in a value is replaced by what `placeholders` has for that name.
pub(super) fn change(params: &Params, text: &str, placeholders: &[(&str, &str)]) -> Params {
    let (text, adds) = (text.trim_start_matches('+'), text.starts_with('+'));
    let (name, value) = text.split_once('=').unwrap_or((&text[1..], ""));
    let mut changed = params.clone();
    changed.retain(|(other, _)| adds || other != name);
    if !text.starts_with('-') {
        let fill = |value: String, (word, filled): &(&str, &str)| {
            value.replace(&format!("{{{word}}}"), filled)
        };
        changed.push((
            name.to_owned(),
            placeholders.iter().fold(value.to_owned(), fill),
        ));
    }
    assert!(changed != *params, "{text} changes nothing");
    changed
}

/// The rows of a table: one line each, with `|` between the columns.
pub(super) fn table<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let columns: Vec<&str> = line.splitn(N, '|').map(str::trim).collect();
        columns
            .try_into()
            .unwrap_or_else(|_| panic!("not a row: {line}"))
    })
}

pub(super) fn encode(params: &Params) -> String {
    let mut encoded = url::form_urlencoded::Serializer::new(String::new());
    encoded.extend_pairs(params).finish()
}

/// The target of a redirect.
pub(super) fn location(answer: &Response) -> Url {
    assert_eq!(answer.status, 303, "{}", answer.text());
    let location = answer.header("location").expect("a location");
    Url::parse(location).expect("an address")
}

pub(super) fn query(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// The error code of an answer, which must not be cached.
pub(super) fn error(answer: &Response) -> String {
    let cached = answer.header("cache-control");
    assert_eq!(cached, Some("no-store"), "{}", answer.text());
    let body = answer.json();
    assert!(body.get("access_token").is_none(), "{body}");
    let description = body["error_description"].as_str().unwrap_or_default();
    assert!(description.len() > 10, "{body}");
    body["error"].as_str().expect("a code").to_owned()
}
