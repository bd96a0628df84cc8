//! Security headers on every kind of answer, and HSTS for requests over HTTPS.

use testkit::Backend;
use testkit::chrome::Chrome;

use super::service::Service;

/// Pages, files, documents, refusals.
const PATHS: [&str; 15] = [
    "/",
    "/token",
    "/nothing",
    "/health/ready",
    "/metrics",
    "/docs/",
    "/docs/swagger-ui.css",
    "/openapi.json",
    "/mcp",
    "/dashboard",
    "/dashboard/sign-in",
    "/dashboard/style.css",
    "/oauth/authorize",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
];

#[test]
fn every_answer_has_security_headers() {
    let service = Service::start(Backend::Sqlite);
    for path in PATHS {
        let response = service.raw("GET", path, &[], b"");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path}: {name}");
        }
        let policy = response.header("content-security-policy");
        let policy = policy.unwrap_or_default();
        for part in ["default-src 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("script-src 'unsafe"), "{path}: {policy}");
        let hsts = response.header("strict-transport-security");
        assert_eq!(hsts, None, "{path} came over plain HTTP");
    }
}

#[test]
fn hsts_is_sent_for_https_at_a_trusted_proxy() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.1/32']")
    });
    for (proto, expected) in [("https", Some("max-age=31536000")), ("http", None)] {
        let forwarded = [("X-Forwarded-Proto", proto)];
        let response = service.raw("GET", "/dashboard/sign-in", &forwarded, b"");
        let hsts = response.header("strict-transport-security");
        assert_eq!(hsts, expected, "{proto}");
    }
    let without_proxy = Service::start(Backend::Sqlite);
    let claimed = [("X-Forwarded-Proto", "https")];
    let response = without_proxy.raw("GET", "/dashboard/sign-in", &claimed, b"");
    assert_eq!(response.header("strict-transport-security"), None);
}

#[tokio::test]
async fn the_api_page_works_under_its_policy() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = chrome.page().await;
    page.open(&service.server.url("/docs/")).await;
    page.wait_for("/numberCorrection").await;
    page.assert_no_browser_errors();
}
