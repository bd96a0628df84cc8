//! Clients whose ID is the URL of a document: which documents are accepted, and which URLs are never fetched.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;

use async_trait::async_trait;
use domain::oauth::{ClientIdUrl, SCOPES};
use domain::ports::{ClientDocuments, UnusableDocument};
use engine::clock::SystemClock;
use engine::identity::grants::{AuthorizeError, AuthorizeParams, Pending};
use engine::{GrantSettings, Grants};
use jiff::SignedDuration;
use serde_json::{Value, json};
use testkit::Backend;

use super::site::{CHALLENGE, REDIRECT, Site, error, with};
use crate::database::Database;

/// The client's ID, which is the URL of its document.
const ID: &str = "https://client.example/client.json";

/// Returns this document for every URL.
struct FixedDocument(String);

#[async_trait]
impl ClientDocuments for FixedDocument {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        Ok(self.0.clone().into_bytes())
    }
}

/// Starts an authorization request of a client with this document.
async fn begin(
    database: &Database,
    document: &Value,
    redirect: &str,
) -> Result<Pending, AuthorizeError> {
    let settings = GrantSettings {
        issuer: "https://auth.example".to_owned(),
        resource: "https://mcp.example/mcp".to_owned(),
        code_lifetime: SignedDuration::from_secs(60),
        access_lifetime: SignedDuration::from_hours(1),
        refresh_lifetime: SignedDuration::from_hours(24),
        grant_lifetime: SignedDuration::from_hours(24 * 180),
    };
    let documents = Arc::new(FixedDocument(document.to_string()));
    let store = database.open().await;
    let grants = Grants::new(store, Arc::new(SystemClock), documents, settings);
    let params = [
        ("client_id", ID),
        ("redirect_uri", redirect),
        ("response_type", "code"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let params = params.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let pending = grants
        .begin(
            Ipv4Addr::LOCALHOST.into(),
            &AuthorizeParams::from_pairs(params),
        )
        .await?;
    let found = grants.pending(&pending.id).await.expect("answers");
    // Stores round times to microseconds.
    let found = found.map(|found| Pending {
        expires_at: pending.expires_at,
        ..found
    });
    assert_eq!(found.as_ref(), Some(&pending), "it can be read back");
    assert_eq!(grants.pending("x").await.expect("answers"), None);
    Ok(pending)
}

fn document() -> Value {
    json!({
        "client_id": ID, "client_name": "Desk", "redirect_uris": ["http://localhost/cb", REDIRECT],
        "token_endpoint_auth_method": "none",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_described_by_its_document() {
    let database = Database::create();
    for (redirect, is_loopback) in [(REDIRECT, false), ("http://localhost:3118/cb", true)] {
        let pending = begin(&database, &document(), redirect).await;
        let pending = pending.expect("accepted");
        assert_eq!(
            (pending.client_id.as_str(), pending.client_name.as_str()),
            (ID, "Desk")
        );
        assert_eq!(pending.redirect_uri, redirect);
        assert_eq!(pending.is_loopback, is_loopback);
        assert_eq!(pending.scopes, SCOPES, "without a scope, all are offered");
        assert!(!pending.scopes_named, "and none was requested");
        assert_eq!(pending.resource, "https://mcp.example/mcp");
        assert!(!format!("{pending:?}").contains(&pending.id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_or_foreign_document_is_refused() {
    let database = Database::create();
    for (name, field, value) in [
        (
            "another's",
            "client_id",
            json!("https://client.example/other.json"),
        ),
        ("a slash more", "client_id", json!(format!("{ID}/"))),
        (
            "in capitals",
            "client_id",
            json!("https://CLIENT.example/client.json"),
        ),
        ("no ID", "client_id", Value::Null),
        ("no name", "client_name", Value::Null),
        (
            "other redirects",
            "redirect_uris",
            json!(["https://client.example/other"]),
        ),
        ("no redirects", "redirect_uris", json!([])),
        (
            "a bad redirect",
            "redirect_uris",
            json!([REDIRECT, "http://evil.example/"]),
        ),
        ("a secret", "client_secret", json!("x")),
        (
            "a key",
            "token_endpoint_auth_method",
            json!("private_key_jwt"),
        ),
        ("implicit", "response_types", json!(["token"])),
    ] {
        let mut changed = document();
        changed[field] = value;
        let refused = begin(&database, &changed, REDIRECT).await.expect_err(name);
        assert!(
            matches!(refused, AuthorizeError::Quoted(_)),
            "{name}: {refused:?}"
        );
    }
    let stored = database.numbers("SELECT count(*) FROM oauth_request", 1);
    assert_eq!(stored, [[Some(0)]]);
}

#[test]
fn no_document_is_fetched_from_an_internal_address() {
    let site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__ALLOW", "[]")
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let good = site.authorize_params("", REDIRECT);
    for url in [
        "https://127.0.0.1:PORT/client.json",
        "https://127.1:PORT/client.json",
        "https://2130706433:PORT/client.json",
        "https://0x7f000001:PORT/client.json",
        "https://localhost:PORT/client.json",
        "https://a.localhost:PORT/client.json",
        "https://[::1]:PORT/client.json",
        "https://[::ffff:127.0.0.1]:PORT/client.json",
        "https://[64:ff9b::7f00:1]:PORT/client.json",
        "https://0.0.0.0:PORT/client.json",
        "https://10.0.0.1/client.json",
        "https://172.16.0.1/client.json",
        "https://192.168.1.1/client.json",
        "https://100.64.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/latest/meta-data",
        "https://[fe80::1]/client.json",
        "http://127.0.0.1:PORT/client.json",
        "https://user@127.0.0.1:PORT/client.json",
        "https://client.example:x@127.0.0.1:PORT/client.json",
        "https://127.0.0.1:PORT/client.json#x",
        "https://127.0.0.1:PORT/a/../client.json",
        "https://127.0.0.1:PORT/%2e%2e/client.json",
        "https://127.0.0.1:PORT",
        "https://127.0.0.1:PORT/",
        "HTTPS://127.0.0.1:PORT/client.json",
        "https:127.0.0.1:PORT/client.json",
        "https:\\\\127.0.0.1:PORT\\client.json",
        "file:///etc/passwd",
        "gopher://127.0.0.1:PORT/x",
    ] {
        let id = url.replace("PORT", &port.to_string());
        let before = site.issued();
        let answer = site.authorize(&with(&good, "client_id", &id));
        assert_eq!(answer.status, 400, "{id}: {}", answer.text());
        assert_eq!(answer.header("location"), None, "{id}");
        assert_eq!(error(&answer), "invalid_request", "{id}");
        assert_eq!(site.issued(), before, "{id}");
        let no_connection = listener.accept().expect_err("no connection was made");
        assert_eq!(no_connection.kind(), ErrorKind::WouldBlock, "{id}");
    }
}

/// Anybody can send a request, so the answer must not reveal which local ports are open.
#[test]
fn open_and_closed_local_ports_get_the_same_answer() {
    let site = Site::start(Backend::Sqlite);
    let open = TcpListener::bind("127.0.0.1:0").expect("binds");
    open.set_nonblocking(true).expect("a setting");
    let closed = TcpListener::bind("127.0.0.1:0").expect("binds");
    let ports = [&open, &closed].map(|socket| socket.local_addr().expect("an address").port());
    drop(closed);
    let before = site.issued();
    let [open_answer, closed_answer] = ports.map(|port| {
        let id = format!("https://127.0.0.1:{port}/client.json");
        let params = with(&site.authorize_params("", REDIRECT), "client_id", &id);
        let answer = site.authorize(&params);
        assert_eq!((answer.status, answer.header("location")), (400, None));
        answer.text().replace(&port.to_string(), "PORT")
    });
    assert_eq!(open_answer, closed_answer);
    assert!(open_answer.contains("may not be called"), "{open_answer}");
    let no_connection = open.accept().expect_err("no connection was made");
    assert_eq!(no_connection.kind(), ErrorKind::WouldBlock);
    assert_eq!(site.issued(), before);
}
