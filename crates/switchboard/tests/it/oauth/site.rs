//! A running service, a client of it, and a person who answers.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use domain::clock::SystemClock;
use domain::oauth::ClientIdUrl;
use domain::ports::{ClientDocuments, Store, UnusableDocument};
use domain::{AccountId, Permission};
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
/// Where the client is sent back to.
pub(crate) const REDIRECT: &str = "https://client.example/cb";
pub(super) const STATE: &str = "a state & more";

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// Names and values of a request, to be changed by cases.
pub(crate) type Params = Vec<(String, String)>;

/// What a client was given.
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
    pub(super) answer: Value,
}

/// What may not grow when something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issued {
    requests: i64,
    grants: i64,
    tokens: i64,
    clients: i64,
}

/// No client here has a document that anybody should see.
struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("questions go to the service, not to the test")
    }
}

/// The service, and the person's side of it on the same database.
pub(crate) struct Site {
    pub(crate) service: Service,
    runtime: Runtime,
    store: Arc<dyn Store>,
    grants: Grants,
    account: AccountId,
    /// Each call comes from an address of its own, so that no case is slowed down by the failures of another.
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

    /// One request from an address of its own.
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

    /// A client that is sent back to this address.
    pub(crate) fn register(&self, redirect: &str) -> String {
        let metadata = json!({ "client_name": "Acme Desk", "redirect_uris": [redirect] });
        let answer = self.register_as(&metadata);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = answer.json()["client_id"].as_str().map(str::to_owned);
        id.expect("an ID")
    }

    /// A question that is in order.
    pub(super) fn question(&self, client: &str, redirect: &str) -> Params {
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

    /// A question that comes by a browser in which somebody is signed in.
    pub(super) fn authorize_as(&self, session: &str, params: &Params) -> Response {
        let path = format!("/oauth/authorize?{}", encode(params));
        let cookie = format!("switchboard={session}");
        self.call("GET", &path, &[("Cookie", &cookie)], b"")
    }

    /// The session of somebody who belongs to an account.
    pub(super) fn signed_in(&self, email: &str, account: &str) -> String {
        let browser = joined(&self.service, email, &["--account", account]);
        let session = browser.cookie("switchboard").expect("a session");
        session.to_owned()
    }

    /// The name of a question that was taken.
    pub(super) fn ask(&self, params: &Params) -> String {
        let answer = self.authorize(params);
        let location = location(&answer);
        let consent = self.service.server.url("/oauth/consent/");
        let id = location.as_str().strip_prefix(&consent);
        id.unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    /// The person says yes to some of it.
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
        }
    }

    pub(super) fn deny(&self, id: &str) -> Option<Url> {
        self.runtime
            .block_on(self.grants.deny(id))
            .expect("answers")
    }

    /// A code for a client, which was granted all that it asked for.
    pub(super) fn code(&self, client: &str) -> String {
        let id = self.ask(&self.question(client, REDIRECT));
        let scopes = [Permission::SmsRates, Permission::SmsSend];
        let back = self.approve(&id, &scopes).expect("the question stands");
        query(&back, "code").expect("a code")
    }

    /// A code whose time is over.
    pub(super) fn late_code(&self, client: &str) -> String {
        let id = self.ask(&self.question(client, REDIRECT));
        let late = grants(&self.service, &self.store, &|settings| {
            settings.code_lifetime = SignedDuration::ZERO;
        });
        let (by, scopes) = (Actor::command_line(), [Permission::SmsRates]);
        let approved = late.approve(&id, self.consent(&by, &scopes));
        let back = self.runtime.block_on(approved).expect("answers");
        query(&back.expect("the question stands"), "code").expect("a code")
    }

    /// A refresh token whose time is over.
    pub(super) fn late_refresh(&self, client: &str) -> String {
        let late = grants(&self.service, &self.store, &|settings| {
            settings.refresh_lifetime = SignedDuration::ZERO;
        });
        let params = TokenParams {
            grant_type: Some("authorization_code".to_owned()),
            client_id: Some(client.to_owned()),
            code: Some(self.code(client)),
            code_verifier: Some(VERIFIER.to_owned()),
            ..TokenParams::default()
        };
        let here = [127, 0, 0, 1].into();
        let given = self.runtime.block_on(late.exchange(&params, here));
        given.expect("given").refresh_token.reveal().to_owned()
    }

    pub(super) fn redemption(&self, client: &str, code: &str) -> Params {
        params(&[
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
            ("resource", &self.resource()),
        ])
    }

    pub(super) fn renewal(&self, client: &str, refresh: &str) -> Params {
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

    /// Tokens that must be given.
    pub(super) fn given(&self, params: &Params) -> Tokens {
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
        self.given(&self.redemption(client, &self.code(client)))
    }

    /// The status of a call to REST with this token.
    pub(super) fn opens(&self, token: &str) -> u16 {
        let header = [("X-Service-Token", token)];
        self.call("GET", "/token", &header, b"").status
    }

    /// Changes what is stored, so that time has passed without waiting for it. On SQLite only.
    pub(super) fn change_stored(&self, sql: &str) {
        let changed = self.file().execute(sql, []).expect("a change");
        assert!(changed > 0, "{sql}");
    }

    fn file(&self) -> rusqlite::Connection {
        let path = self.service.server.data_dir().join("switchboard.db");
        let file = rusqlite::Connection::open(path).expect("the file opens");
        file.busy_timeout(testkit::PATIENCE).expect("it is set");
        file
    }

    /// What was issued until now. On SQLite only.
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

/// The use cases as the consent page has them, perhaps with other lifetimes.
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

/// The parameters changed: `-name` leaves one out, `name=value` replaces it, `+name=value` adds it once more. `{word}`
/// in a value stands for what `words` says.
pub(super) fn change(params: &Params, text: &str, words: &[(&str, &str)]) -> Params {
    let (text, adds) = (text.trim_start_matches('+'), text.starts_with('+'));
    let (name, value) = text.split_once('=').unwrap_or((&text[1..], ""));
    let mut changed = params.clone();
    changed.retain(|(other, _)| adds || other != name);
    if !text.starts_with('-') {
        let fill = |value: String, (word, filled): &(&str, &str)| {
            value.replace(&format!("{{{word}}}"), filled)
        };
        changed.push((name.to_owned(), words.iter().fold(value.to_owned(), fill)));
    }
    assert!(changed != *params, "{text} changes nothing");
    changed
}

/// The rows of a table: a line each, columns between bars.
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

/// Where a person is sent.
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

/// The error code of an answer, which nobody may keep.
pub(super) fn error(answer: &Response) -> String {
    let cached = answer.header("cache-control");
    assert_eq!(cached, Some("no-store"), "{}", answer.text());
    let body = answer.json();
    assert!(body.get("access_token").is_none(), "{body}");
    let words = body["error_description"].as_str().unwrap_or_default();
    assert!(words.len() > 10, "{body}");
    body["error"].as_str().expect("a code").to_owned()
}
