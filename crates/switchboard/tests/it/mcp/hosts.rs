//! The metadata of the resource, and the allowed hosts and origins.

use serde_json::{Value, json};
use testkit::Backend;

use super::{Client, envelope, start};
use crate::rest::service::Service;

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn metadata(service: &Service) -> [Value; 2] {
    ["", "/mcp"].map(|path| {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let response = service.raw("GET", &path, &[], b"");
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("content-type"), Some("application/json"));
        response.json()
    })
}

#[test]
fn the_metadata_names_the_resource_and_its_scopes() {
    let service = start();
    let [root, path] = metadata(&service);
    let expected = json!({
        "resource": service.server.url("/mcp"),
        "authorization_servers": [service.server.url("")],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["sms:send", "sms:rates", "sender:write", "hlr:lookup", "numbers:read"],
    });
    assert_eq!(root, expected);
    assert_eq!(path, expected);
}

#[test]
fn only_post_is_allowed() {
    let service = start();
    let bearer = format!("Bearer {}", service.token);
    for method in ["GET", "DELETE", "HEAD", "PUT", "PATCH"] {
        for headers in [vec![], vec![("Authorization", bearer.as_str())]] {
            let response = service.raw(method, "/mcp", &headers, b"");
            assert_eq!(response.status, 405, "{method}");
            assert_eq!(response.header("allow"), Some("POST"), "{method}");
        }
    }
}

#[test]
fn only_configured_hosts_and_origins_are_allowed() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_URLS__MCP", "https://mcp.example.com")
            .env("SWITCHBOARD_URLS__AUTH", "https://auth.example.com/")
            .env(
                "SWITCHBOARD_URLS__DASHBOARD",
                "https://dash.example.com:8443",
            )
    });
    let [root, _] = metadata(&service);
    assert_eq!(root["resource"], "https://mcp.example.com/mcp");
    assert_eq!(
        root["authorization_servers"],
        json!(["https://auth.example.com"])
    );

    let port = service.server.addr().port();
    let [local, name, other_port] = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("127.0.0.1:{}", port ^ 1),
    ];
    for (host, status) in [
        (local.as_str(), 200),
        (&name, 200),
        ("mcp.example.com", 200),
        ("MCP.example.com:443", 200),
        ("mcp.example.com:80", 403),
        ("mcp.example.com.evil.example", 403),
        ("evil.example", 403),
        (&other_port, 403),
        ("", 403),
    ] {
        let response = service.post(&service.token, &[("Host", host)], PING);
        assert_eq!(response.status, status, "{host}: {}", response.text());
        if status == 403 {
            let (code, message) = envelope(&response.json());
            assert_eq!(code, "FORBIDDEN", "{host}");
            assert!(message.contains("Host"), "{host}: {message}");
        }
    }
    let own = format!("http://localhost:{port}");
    for (origin, status) in [
        (own.as_str(), 200),
        ("https://mcp.example.com", 200),
        ("https://mcp.example.com:443", 200),
        ("https://auth.example.com", 200),
        ("https://dash.example.com:8443", 200),
        ("https://dash.example.com", 403),
        ("http://mcp.example.com", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
    ] {
        let response = service.post(&service.token, &[("Origin", origin)], PING);
        assert_eq!(response.status, status, "{origin}: {}", response.text());
    }
    let two = [("Origin", own.as_str()), ("Origin", "https://evil.example")];
    assert_eq!(service.post(&service.token, &two, PING).status, 403);
    // This is checked before anything else.
    for header in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        let response = service.raw("POST", "/mcp", &[header], b"nonsense");
        assert_eq!(response.status, 403, "{header:?}: {}", response.text());
        assert_eq!(envelope(&response.json()).0, "FORBIDDEN");
    }
}

#[test]
fn a_base_url_is_used_for_all() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_URLS__BASE", "https://sms.example.com/")
    });
    let [root, _] = metadata(&service);
    assert_eq!(root["resource"], "https://sms.example.com/mcp");
    assert_eq!(
        root["authorization_servers"],
        json!(["https://sms.example.com"])
    );
}
