//! The MCP server in a process of its own, which calls the REST API of another.

use serde_json::json;
use testkit::{Backend, Server, ServerBuilder};

use super::{Client, envelope, failure, start, told};
use crate::rest::service::{Service, binary};

/// A process that has nothing but the MCP server, on the same database.
fn mcp_alone(service: &Service) -> ServerBuilder {
    let database = service.server.data_dir().join("switchboard.db");
    Server::builder(binary(), Backend::Sqlite)
        .arg("--roles")
        .arg("mcp")
        .env(
            "SWITCHBOARD_DATABASE__URL",
            format!("sqlite:{}", database.display()),
        )
}

#[test]
fn tools_reach_the_api_of_another_process() {
    let mut rest = Service::with(Backend::Sqlite, |builder| {
        builder
            .arg("--roles")
            .arg("api,worker")
            .env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.1/32']")
    });
    let server = mcp_alone(&rest)
        .env("SWITCHBOARD_URLS__BASE", rest.server.url(""))
        .env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.1/32']")
        .start();
    let alone = Service {
        token: rest.token.clone(),
        server,
    };
    let token = &alone.token;
    assert_eq!(alone.raw("GET", "/rates", &[], b"").status, 404);
    assert_eq!(rest.post(token, &[], b"{}").status, 404);

    let sms = json!({ "to": "+37120000001", "from": "Acme", "message": "Hi" });
    let sent = told(&alone.call_tool(token, "send_sms", &sms));
    let id = sent["messageIds"][0].as_str().expect("an ID");
    assert_eq!(rest.get(&format!("/sms/status/{id}")).status, 200);
    assert_eq!(sent["parts"], 1);
    let rates = told(&alone.call_tool(token, "get_sms_rates", &json!({})));
    assert_eq!(rates["rates"], rest.get("/rates").json());
    let bad = alone.call_tool(token, "get_operator", &json!({ "operatorId": "../token" }));
    assert_eq!(failure(&bad).0, "NOT_FOUND");

    let little = rest
        .create_token("main", &["--permission", "sms:rates"])
        .token;
    let refused = alone.call_tool(&little, "send_sms", &sms);
    assert_eq!(refused.status, 403);
    assert_eq!(envelope(&refused.json()).0, "FORBIDDEN");
    // The caller's own address is what REST judges by.
    let bound = rest
        .create_token("main", &["--allow-ip", "192.0.2.7"])
        .token;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "get_sms_rates", "arguments": { "country": "LV" } } });
    let call = call.to_string();
    let from = |address: &str| alone.post(&bound, &[("X-Forwarded-For", address)], call.as_bytes());
    told(&from("192.0.2.7"));
    assert_eq!(failure(&from("192.0.2.8")).0, "FORBIDDEN");

    rest.server.kill9();
    let (code, message) = failure(&alone.call_tool(token, "send_sms", &sms));
    assert_eq!(code, "UPSTREAM_UNAVAILABLE");
    assert!(message.contains("not known"), "{message}");
}

#[test]
fn what_rest_says_of_a_token_is_the_status_of_the_answer() {
    let rest = start();
    // Under another name the token does not reach REST, which the door cannot know.
    let server = mcp_alone(&rest)
        .env("SWITCHBOARD_URLS__BASE", rest.server.url(""))
        .env("SWITCHBOARD_SERVER__HEADER_PREFIX", "X-Other")
        .start();
    let alone = Service {
        token: rest.token.clone(),
        server,
    };
    let refused = alone.call_tool(&alone.token, "get_sms_rates", &json!({ "country": "LV" }));
    assert_eq!(refused.status, 401, "{}", refused.text());
    let (code, message) = envelope(&refused.json());
    assert_eq!(code, "AUTH_REQUIRED");
    assert!(message.contains("No API token"), "{message}");
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(
        challenge.starts_with("Bearer resource_metadata="),
        "{challenge}"
    );
}

#[test]
fn alone_it_must_know_where_the_api_is() {
    let service = start();
    let error = mcp_alone(&service).try_start().expect_err("no urls.base");
    let error = format!("{error:?}");
    assert!(error.contains("urls.base"), "{error}");
}
