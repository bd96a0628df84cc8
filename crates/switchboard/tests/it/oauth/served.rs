//! Discovery metadata, allowed origins, and the headers and pages of answers.

use serde_json::json;
use testkit::Backend;
use testkit::http::request;

use super::site::{REDIRECT, Site};
use crate::rest::service::{Service, binary};

const METADATA: &str = "/.well-known/oauth-authorization-server";

#[test]
fn the_metadata_describes_the_server() {
    let site = Site::start(Backend::Sqlite);
    let url = |path: &str| site.service.server.url(path);
    let expected = json!({
        "issuer": url(""),
        "authorization_endpoint": url("/oauth/authorize"),
        "token_endpoint": url("/oauth/token"),
        "revocation_endpoint": url("/oauth/revoke"),
        "registration_endpoint": url("/oauth/register"),
        "scopes_supported": ["sms:send", "sms:rates", "sender:write", "hlr:lookup", "numbers:read"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "protected_resources": [url("/mcp")],
    });
    for path in [
        METADATA,
        &format!("{METADATA}/mcp"),
        &format!("{METADATA}/"),
    ] {
        let answer = site.call("GET", path, &[], b"");
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.json(), expected, "{path}");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("*"),
            "{path}"
        );
    }
    let elsewhere = site.call("GET", &format!("{METADATA}/elsewhere"), &[], b"");
    assert_eq!(elsewhere.status, 404);
}

#[test]
fn addresses_come_from_the_configuration() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_URLS__AUTH", "https://auth.example/tenant/")
            .env("SWITCHBOARD_URLS__MCP", "https://mcp.example")
            .env("SWITCHBOARD_URLS__DASHBOARD", "https://desk.example")
    });
    for path in [METADATA, &format!("{METADATA}/tenant")] {
        let document = service.raw("GET", path, &[], b"").json();
        assert_eq!(document["issuer"], "https://auth.example/tenant");
        assert_eq!(
            document["token_endpoint"],
            "https://auth.example/tenant/oauth/token"
        );
        assert_eq!(
            document["protected_resources"],
            json!(["https://mcp.example/mcp"])
        );
    }
    let metadata = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let headers = [("Content-Type", "application/json")];
    let client = service.raw("POST", "/oauth/register", &headers, metadata.as_bytes());
    let client = client.json()["client_id"].as_str().map(str::to_owned);
    let path = format!(
        "/oauth/authorize?client_id={}&redirect_uri={REDIRECT}&response_type=code&code_challenge={}&code_challenge_method=S256&resource=https://mcp.example/mcp",
        client.expect("an ID"),
        super::site::CHALLENGE
    );
    let answer = service.raw("GET", &path, &[], b"");
    let location = answer.header("location").expect("a location");
    assert!(
        location.starts_with("https://desk.example/oauth/consent/"),
        "{location}"
    );
    let id = location.rsplit('/').next().expect("an ID");
    assert_eq!(id.len(), 43, "256 bits in base64url");
}

/// Programs in a browser may register and request tokens. Other origins cannot read where people are redirected.
#[test]
fn browsers_may_call_endpoints_that_need_no_person() {
    let site = Site::start(Backend::Sqlite);
    let preflight = [
        ("Origin", "https://app.example"),
        ("Access-Control-Request-Method", "POST"),
    ];
    for (path, allowed) in [
        (METADATA, Some("*")),
        ("/oauth/token", Some("*")),
        ("/oauth/revoke", Some("*")),
        ("/oauth/register", Some("*")),
        ("/oauth/authorize", None),
        ("/token", None),
    ] {
        let answer = site.call("OPTIONS", path, &preflight, b"");
        assert_eq!(answer.status, 204, "{path}");
        let origin = answer.header("access-control-allow-origin");
        assert_eq!(origin, allowed, "{path}");
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            None,
            "{path}"
        );
    }
}

#[test]
fn redirects_and_error_pages_have_security_headers() {
    let site = Site::start(Backend::Sqlite);
    let client = site.register(REDIRECT);
    let good = site.authorize(&site.authorize_params(&client, REDIRECT));
    let page = [("Accept", "text/html,application/xhtml+xml")];
    let path = "/oauth/authorize?client_id=%3Cscript%3E";
    let bad = site.call("GET", path, &page, b"");
    assert_eq!((good.status, bad.status), (303, 400));
    let kind = bad.header("content-type");
    assert_eq!(kind, Some("text/html; charset=utf-8"));
    assert!(!bad.text().contains("<script"), "{}", bad.text());
    for (name, answer) in [("a redirect", &good), ("an error page", &bad)] {
        for (header, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.header(header), Some(value), "{name}: {header}");
        }
        let policy = answer.header("content-security-policy").unwrap_or("");
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{name}: {policy}"
        );
    }
}

/// The error page has the layout of all other pages, even without a dashboard.
#[test]
fn the_error_page_has_its_style_with_every_role() {
    for roles in ["auth", "auth,dashboard"] {
        let server = testkit::Server::builder(binary(), Backend::Sqlite)
            .arg("--roles")
            .arg(roles)
            .start();
        let get = |path: &str| {
            let headers = [("Accept", "text/html")];
            request(server.addr(), "GET", path, &headers, b"").expect("an answer")
        };
        let page = get("/oauth/authorize?client_id=nobody");
        let text = page.text();
        assert_eq!(page.status, 400, "{roles}: {text}");
        assert!(text.contains("This connection cannot be made"), "{text}");
        assert!(text.contains("class=\"brand\""), "{text}");
        assert!(!text.contains("<style"), "{text}");
        let policy = page.header("content-security-policy").unwrap_or("");
        assert!(policy.contains("style-src 'self'"), "{policy}");
        for (mark, kind) in [
            ("rel=\"stylesheet\" href=\"", "text/css; charset=utf-8"),
            ("rel=\"icon\" href=\"", "image/svg+xml"),
        ] {
            let (_, address) = text.split_once(mark).expect(mark);
            let address = address.split('"').next().expect("an end");
            let asset = get(address);
            assert_eq!(asset.status, 200, "{roles}: {address}");
            assert_eq!(asset.header("content-type"), Some(kind), "{address}");
        }
    }
}

#[test]
fn without_its_role_the_server_is_not_served() {
    let server = testkit::Server::builder(binary(), Backend::Sqlite)
        .arg("--roles")
        .arg("api,worker")
        .start();
    for path in [
        METADATA,
        "/oauth/authorize",
        "/oauth/token",
        "/oauth/register",
    ] {
        let answer = request(server.addr(), "GET", path, &[], b"");
        assert_eq!(answer.expect("an answer").status, 404, "{path}");
    }
}
