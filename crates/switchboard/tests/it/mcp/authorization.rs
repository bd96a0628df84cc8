//! Authorization: tokens, permissions and addresses, and the answers to callers that are refused.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::{Client, Era, TOOLS, envelope, failure, result_of, start};
use crate::rest::service::{Service, wait_for};

const ALL_SCOPES: &str = "sms:send sms:rates sender:write hlr:lookup numbers:read";

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// Posts `tools/list` with these headers and nothing else.
fn post(service: &Service, headers: &[(&str, &str)]) -> Response {
    let mut all = vec![("Content-Type", "application/json")];
    all.extend_from_slice(headers);
    service.raw("POST", "/mcp", &all, LIST.as_bytes())
}

/// Checks the answer to a caller without a valid token, and returns its message.
fn check_unauthorized(
    case: &str,
    service: &Service,
    response: &Response,
    wrong_token: bool,
) -> String {
    let body = response.json();
    assert_eq!(response.status, 401, "{case}: {body}");
    let (code, message) = envelope(&body);
    assert_eq!(code, "AUTH_REQUIRED", "{case}");
    for page in ["signup_url", "signin_url", "token_url"] {
        let url = body["error"][page].as_str().unwrap_or_default();
        assert!(url.starts_with("http"), "{case}: {body}");
    }
    let metadata = service.server.url("/.well-known/oauth-protected-resource");
    let error = if wrong_token {
        ", error=\"invalid_token\""
    } else {
        ""
    };
    let challenge =
        format!("Bearer resource_metadata=\"{metadata}\", scope=\"{ALL_SCOPES}\"{error}");
    assert_eq!(
        response.header("www-authenticate"),
        Some(challenge.as_str()),
        "{case}"
    );
    message
}

#[test]
fn without_a_valid_token_everything_is_401() {
    let service = start();
    let token = &service.token;
    let [mistyped, basic] = [
        format!("Bearer {}x", &token[..token.len() - 1]),
        format!("Basic {token}"),
    ];
    let bare = token.clone();
    for (case, headers, wrong, part) in [
        ("no header", vec![], false, "No access token"),
        (
            "another scheme",
            vec![("Authorization", basic.as_str())],
            false,
            "No access token",
        ),
        (
            "no scheme",
            vec![("Authorization", bare.as_str())],
            false,
            "No access token",
        ),
        (
            "REST's header",
            vec![("X-Service-Token", bare.as_str())],
            false,
            "No access token",
        ),
        (
            "an empty token",
            vec![("Authorization", "Bearer ")],
            false,
            "No access token",
        ),
        (
            "nonsense",
            vec![("Authorization", "Bearer nonsense")],
            true,
            "not valid",
        ),
        (
            "a mistyped token",
            vec![("Authorization", mistyped.as_str())],
            true,
            "not valid",
        ),
        (
            "not text",
            vec![("Authorization", "Bearer \u{e4}\u{f6}")],
            true,
            "not valid",
        ),
    ] {
        let response = post(&service, &headers);
        let message = check_unauthorized(case, &service, &response, wrong);
        assert!(message.contains(part), "{case}: {message}");
    }
    let twice = format!("Bearer {token}");
    let twice = [
        ("Authorization", twice.as_str()),
        ("Authorization", "Bearer x"),
    ];
    check_unauthorized("two headers", &service, &post(&service, &twice), false);
    // For any request body.
    for body in [
        "",
        "{",
        "[]",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
    ] {
        let response = service.raw("POST", "/mcp", &[], body.as_bytes());
        check_unauthorized(body, &service, &response, false);
    }
}

#[test]
fn without_a_valid_token_no_tool_can_be_called() {
    let service = start();
    for (name, _) in TOOLS {
        let response = service.call_tool("sb_nonsense", name, &json!({}));
        check_unauthorized(name, &service, &response, true);
    }
}

#[test]
fn expired_and_revoked_tokens_are_refused_with_different_messages() {
    let service = start();
    let short = service.create_token("main", &["--expires", "1s"]);
    let message = wait_for("the token expires", || {
        let response =
            service.call_tool(&short.token, "get_sms_rates", &json!({ "country": "LV" }));
        (response.status == 401).then(|| check_unauthorized("expired", &service, &response, true))
    });
    assert!(message.contains("expired"), "{message}");

    let created = service.create_token("main", &[]);
    let list = |token: &str| service.call_method(Era::Handshake, token, "tools/list", json!({}));
    assert_eq!(list(&created.token).status, 200);
    assert!(
        service
            .server
            .cli(&["token", "revoke", &created.id])
            .status
            .success()
    );
    let message = wait_for("the revocation", || {
        let response = list(&created.token);
        (response.status == 401).then(|| check_unauthorized("revoked", &service, &response, true))
    });
    assert!(message.contains("revoked"), "{message}");
}

#[test]
fn requests_without_a_token_are_slowed_down_by_address() {
    let service = start();
    let slowed = wait_for("the limit", || {
        Some(post(&service, &[])).filter(|response| response.status != 401)
    });
    assert_eq!(slowed.status, 429);
    // The limit lasts two seconds. On a slow machine, one of them may be over already.
    let retry_after = slowed.header("retry-after");
    assert!(matches!(retry_after, Some("1" | "2")), "{retry_after:?}");
    assert_eq!(envelope(&slowed.json()).0, "RATE_LIMITED");
    let valid = service.call_method(Era::Handshake, &service.token, "tools/list", json!({}));
    assert_eq!(
        valid.status, 200,
        "a valid token from the same address passes"
    );
}

/// Arguments that REST accepts with the right permission.
fn arguments(tool: &str) -> Value {
    match tool {
        "send_sms" => {
            json!({ "to": "+37120000001", "from": "Acme", "message": "Hi", "testMode": "1" })
        }
        "register_sender_id" => {
            json!({ "name": "Acme", "category": "Brand", "categoryDescription": "x" })
        }
        "register_msisdn_sender" => json!({ "name": "+37120000033" }),
        "confirm_msisdn_sender" => json!({ "senderId": 1, "code": "12345" }),
        "lookup_hlr" => json!({ "msisdn": "+37129100000", "callBackUrl": "http://127.0.0.1:9/" }),
        "get_operator" => json!({ "operatorId": 1 }),
        "get_message" | "get_lookup" | "cancel_message" | "get_verification" => json!({ "id": 1 }),
        "start_verification" => json!({ "to": "+37120000034" }),
        "check_verification" => json!({ "id": 1, "code": "123456" }),
        "get_account" | "list_senders" | "list_inbox" => json!({}),
        "correct_phone_number" => json!({ "Number": "29111111", "CountryIso": "LV" }),
        _ => json!({ "country": "LV" }),
    }
}

#[test]
fn a_token_allows_exactly_the_tools_of_its_permissions() {
    let service = start();
    for granted in [
        "sms:send",
        "sms:rates",
        "sender:write",
        "hlr:lookup",
        "numbers:read",
        "verify:send",
    ] {
        let token = service
            .create_token("main", &["--permission", granted])
            .token;
        for (tool, scope) in TOOLS {
            let before = service.stored();
            let response = service.call_tool(&token, tool, &arguments(tool));
            let context = format!("{tool} with {granted}: {}", response.text());
            if scope == granted || scope.is_empty() {
                assert_eq!(response.status, 200, "{context}");
                continue;
            }
            assert_eq!(response.status, 403, "{context}");
            assert_eq!(service.stored(), before, "{context}");
            let (code, message) = envelope(&response.json());
            assert_eq!(code, "FORBIDDEN", "{context}");
            assert!(message.contains(&format!("'{scope}'")), "{context}");
            let challenge = response.header("www-authenticate").expect("a challenge");
            assert!(
                challenge.starts_with("Bearer resource_metadata=")
                    && challenge.contains(&format!(
                        ", scope=\"{scope}\", error=\"insufficient_scope\""
                    )),
                "{context}: {challenge}"
            );
        }
    }
}

#[test]
fn rest_still_refuses_by_address_and_by_account() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['127.0.0.0/8']")
    });
    let bound = service
        .create_token("main", &["--allow-ip", "192.0.2.0/24"])
        .token;
    let call = |from: &str| {
        let params = json!({ "name": "get_sms_rates", "arguments": { "country": "LV" } });
        let body = Era::Handshake.request("tools/call", params).to_string();
        service.post(&bound, &[("X-Forwarded-For", from)], body.as_bytes())
    };
    assert_eq!(result_of(&call("192.0.2.7"))["isError"], json!(false));
    let (code, message) = failure(&call("198.51.100.1"));
    assert_eq!(code, "FORBIDDEN");
    assert!(message.contains("198.51.100.1"), "{message}");
    // No tool is called, so no tool result can contain the error.
    let list = service.post(
        &bound,
        &[("X-Forwarded-For", "198.51.100.1")],
        LIST.as_bytes(),
    );
    assert_eq!(list.status, 403);
    assert_eq!(envelope(&list.json()).0, "FORBIDDEN");
    assert_eq!(list.header("www-authenticate"), None);

    let other = service.create_account("other");
    assert!(
        service
            .server
            .cli(&["account", "suspend", "other"])
            .status
            .success()
    );
    let (code, message) = wait_for("the suspension", || {
        let response = service.call_tool(&other, "get_sms_rates", &json!({ "country": "LV" }));
        (result_of(&response)["isError"] == json!(true)).then(|| failure(&response))
    });
    assert_eq!(code, "FORBIDDEN");
    assert!(message.contains("suspended"), "{message}");
}
