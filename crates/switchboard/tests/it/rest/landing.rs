//! `/`: browsers are led to the dashboard, programs get the addresses of the service.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::service::{Service, check};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn get(service: &Service, accept: Option<&str>) -> Response {
    let headers: Vec<_> = accept.map(|value| ("Accept", value)).into_iter().collect();
    let response = service.raw("GET", "/", &headers, b"");
    check("/", &response);
    assert_eq!(response.header("vary"), Some("accept"), "{accept:?}");
    response
}

/// The answer to a program.
fn document(service: &Service) -> Value {
    let response = get(service, Some("application/json"));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    response.json()
}

#[test]
fn the_root_is_for_browsers_and_for_programs() {
    let service = Service::start(Backend::Sqlite);
    let expected = json!({
        "name": "Switchboard",
        "version": env!("CARGO_PKG_VERSION"),
        "docs": service.server.url("/docs"),
        "openapi": service.server.url("/openapi.json"),
        "dashboard": service.server.url("/dashboard"),
        "mcp": service.server.url("/mcp"),
    });
    assert_eq!(document(&service), expected);
    for accept in [None, Some("*/*")] {
        assert_eq!(get(&service, accept).json(), expected, "{accept:?}");
    }
    let browser = get(&service, Some(BROWSER));
    assert_eq!(
        (browser.status, browser.header("location")),
        (303, Some("/dashboard"))
    );
    for path in ["/docs/", "/openapi.json"] {
        assert_eq!(service.raw("GET", path, &[], b"").status, 200, "{path}");
    }

    let head = service.raw("HEAD", "/", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let refused = service.raw("POST", "/", &[], b"{}");
    check("POST /", &refused);
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET,HEAD"))
    );
}

/// A node names what it serves itself, and what the configuration says is elsewhere.
#[test]
fn a_node_knows_only_its_own_parts_and_the_configured_addresses() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.arg("--roles").arg("api,worker")
    });
    let known = document(&service);
    assert_eq!(known["openapi"], service.server.url("/openapi.json"));
    assert_eq!(
        (&known["dashboard"], &known["mcp"]),
        (&Value::Null, &Value::Null)
    );
    let browser = get(&service, Some(BROWSER));
    assert_eq!(browser.status, 200, "there is no dashboard to lead to");
    assert_eq!(browser.json(), known);

    let service = Service::with(Backend::Sqlite, |server| {
        server
            .arg("--roles")
            .arg("worker")
            .env("SWITCHBOARD_URLS__BASE", "https://api.example.com/")
            .env("SWITCHBOARD_URLS__DASHBOARD", "https://desk.example.com")
    });
    let known = document(&service);
    for (key, url) in [
        ("docs", "https://api.example.com/docs"),
        ("dashboard", "https://desk.example.com/dashboard"),
        ("mcp", "https://api.example.com/mcp"),
    ] {
        assert_eq!(known[key], url, "{key}");
    }
    let browser = get(&service, Some(BROWSER));
    assert_eq!(
        (browser.status, browser.header("location")),
        (303, Some("https://desk.example.com/dashboard"))
    );
}
