//! The MCP server in its own process, which calls the REST API of another.

use serde_json::json;
use testkit::{Backend, Server, ServerBuilder};

use super::{Client, envelope, failure, start, tool_output};
use crate::rest::service::{Service, binary, wait_for};

/// A process with only the MCP server, on the same database.
fn mcp_only(service: &Service) -> ServerBuilder {
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
    let server = mcp_only(&rest)
        .env("SWITCHBOARD_URLS__BASE", rest.server.url(""))
        .env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.1/32']")
        .start();
    let mcp = Service {
        token: rest.token.clone(),
        server,
    };
    let token = &mcp.token;
    assert_eq!(mcp.raw("GET", "/rates", &[], b"").status, 404);
    assert_eq!(rest.post(token, &[], b"{}").status, 404);

    let sms = json!({ "to": "+37120000001", "from": "Acme", "message": "Hi" });
    let sent = tool_output(&mcp.call_tool(token, "send_sms", &sms));
    let id = sent["messageIds"][0].as_str().expect("an ID");
    assert_eq!(rest.get(&format!("/sms/status/{id}")).status, 200);
    assert_eq!(sent["parts"], 1);
    wait_for("the message is delivered", || {
        let arguments = json!({ "id": id, "waitSeconds": 10 });
        let message = tool_output(&mcp.call_tool(token, "get_message", &arguments));
        (message["state"] == "delivered").then_some(())
    });
    let rates = tool_output(&mcp.call_tool(token, "get_sms_rates", &json!({})));
    let all = rest.get("/rates").json();
    let first_page = &all.as_array().expect("a list")[..100];
    assert_eq!(rates["rates"], json!(first_page));
    let bad = mcp.call_tool(token, "get_operator", &json!({ "operatorId": "../token" }));
    assert_eq!(failure(&bad).0, "NOT_FOUND");

    let limited = rest
        .create_token("main", &["--permission", "sms:rates"])
        .token;
    let refused = mcp.call_tool(&limited, "send_sms", &sms);
    assert_eq!(refused.status, 403);
    assert_eq!(envelope(&refused.json()).0, "FORBIDDEN");
    // REST checks the address of the caller, not that of the MCP server.
    let bound = rest
        .create_token("main", &["--allow-ip", "192.0.2.7"])
        .token;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "get_sms_rates", "arguments": { "country": "LV" } } });
    let call = call.to_string();
    let from = |address: &str| mcp.post(&bound, &[("X-Forwarded-For", address)], call.as_bytes());
    tool_output(&from("192.0.2.7"));
    assert_eq!(failure(&from("192.0.2.8")).0, "FORBIDDEN");

    rest.server.kill9();
    let (code, message) = failure(&mcp.call_tool(token, "send_sms", &sms));
    assert_eq!(code, "UPSTREAM_UNAVAILABLE");
    assert!(message.contains("not known"), "{message}");
}

#[test]
fn a_token_that_rest_refuses_is_answered_with_401() {
    let rest = start();
    // Under another header name the token does not reach REST, which the MCP server cannot know.
    let server = mcp_only(&rest)
        .env("SWITCHBOARD_URLS__BASE", rest.server.url(""))
        .env("SWITCHBOARD_SERVER__HEADER_PREFIX", "X-Other")
        .start();
    let mcp = Service {
        token: rest.token.clone(),
        server,
    };
    let refused = mcp.call_tool(&mcp.token, "get_sms_rates", &json!({ "country": "LV" }));
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
fn a_separate_process_needs_the_address_of_the_api() {
    let service = start();
    let error = mcp_only(&service).try_start().expect_err("no urls.base");
    let error = format!("{error:?}");
    assert!(error.contains("urls.base"), "{error}");
}
