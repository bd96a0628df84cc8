//! The protocol itself: messages, versions, headers and error codes.

use serde_json::{Value, json};

use super::{Client, result_of, start};
use crate::rest::service::Service;

const PARSE: i64 = -32700;
const REQUEST: i64 = -32600;
pub(super) const METHOD: i64 = -32601;
pub(super) const PARAMS: i64 = -32602;

fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    }})
}

/// A handshake with one of its parameters changed.
fn initialize_with(field: &str, value: Value) -> String {
    let mut request = initialize("2025-11-25");
    request["params"][field] = value;
    request.to_string()
}

#[test]
fn the_handshake_agrees_on_a_version() {
    let service = start();
    for (asked, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let response = service.post(
            &service.token,
            &[],
            initialize(asked).to_string().as_bytes(),
        );
        let result = result_of(&response);
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "switchboard");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        let instructions = result["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("cost"), "{instructions}");
        assert_eq!(response.json()["id"], "first");
        assert_eq!(
            response.header("mcp-session-id"),
            None,
            "there are no sessions"
        );
    }
    let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = service.post(&service.token, &[], initialized);
    assert_eq!((response.status, response.body.len()), (202, 0));
}

/// Sends a body. The answer must be an error with this status and code, and the ID of the request.
pub(super) fn assert_refused(
    service: &Service,
    headers: &[(&str, &str)],
    body: &str,
    expected: (u16, i64),
) {
    let response = service.post(&service.token, headers, body.as_bytes());
    let answer = response.json();
    let code = answer["error"]["code"].as_i64().unwrap_or_default();
    assert_eq!(
        (response.status, code),
        expected,
        "{body} {headers:?}: {answer}"
    );
    assert_eq!(answer["jsonrpc"], "2.0", "{body}");
    assert!(answer["error"]["message"].is_string(), "{body}: {answer}");
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let id = request.get("id").filter(|id| id.is_i64() || id.is_string());
    assert_eq!(answer.get("id"), id, "an unreadable ID is left out: {body}");
}

/// A body, and the status and code of the answer.
const MALFORMED: &[(&str, (u16, i64))] = &[
    ("", (400, PARSE)),
    ("{", (400, PARSE)),
    ("nonsense", (400, PARSE)),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}x",
        (400, PARSE),
    ),
    ("\u{0}", (400, PARSE)),
    ("[]", (400, REQUEST)),
    (
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        (400, REQUEST),
    ),
    ("1", (400, REQUEST)),
    ("null", (400, REQUEST)),
    (r#""ping""#, (400, REQUEST)),
    ("{}", (400, REQUEST)),
    (
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        (400, REQUEST),
    ),
    (r#"{"id":1,"method":"ping"}"#, (400, REQUEST)),
    (r#"{"jsonrpc":"2.0","id":1}"#, (400, REQUEST)),
    (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, (400, REQUEST)),
    (
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        (400, REQUEST),
    ),
    (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, (400, REQUEST)),
    (
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        (400, REQUEST),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":1}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","arguments":[]}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","arguments":"x"}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","requestState":1}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","inputResponses":[]}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"no_such_tool"}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"SEND_SMS"}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":1}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"2"}}"#,
        (200, PARAMS),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        (200, METHOD),
    ),
    (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, (200, METHOD)),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#,
        (200, METHOD),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/templates/list"}"#,
        (200, METHOD),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#,
        (200, METHOD),
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#,
        (200, METHOD),
    ),
];

#[test]
fn malformed_messages_are_refused_with_their_code() {
    let service = start();
    for (body, expected) in MALFORMED {
        assert_refused(&service, &[], body, *expected);
    }
    for (field, value) in [
        ("protocolVersion", Value::Null),
        ("protocolVersion", json!(1)),
        ("capabilities", Value::Null),
        ("capabilities", json!([])),
        ("clientInfo", Value::Null),
        ("clientInfo", json!({ "name": "x" })),
        (
            "clientInfo",
            json!({ "name": "x", "version": "1", "title": 1 }),
        ),
        ("capabilities", json!({ "roots": 1 })),
    ] {
        assert_refused(&service, &[], &initialize_with(field, value), (200, PARAMS));
    }
    service.check_health();
}

#[test]
fn invalid_text_is_a_parse_error() {
    let service = start();
    for body in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..],
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
    ] {
        let response = service.post(&service.token, &[], body);
        let answer = response.json();
        assert_eq!(response.status, 400, "{answer}");
        assert_eq!(answer["error"]["code"], PARSE, "{answer}");
        assert_eq!(answer.get("id"), None, "{answer}");
    }
}

/// A notification cannot be answered, so it calls no tool, and only the status reports an error.
#[test]
fn a_notification_calls_nothing_and_has_no_answer() {
    let service = start();
    let before = service.stored();
    let sms =
        r#"{"name":"send_sms","arguments":{"to":"+37120000001","from":"Acme","message":"Hi"}}"#;
    for (method, params) in [
        ("notifications/initialized", "{}"),
        ("notifications/cancelled", r#"{"requestId":1}"#),
        ("notifications/of/nobody", "{}"),
        ("tools/call", sms),
        ("tools/list", "{}"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let response = service.post(&service.token, &[], body.as_bytes());
        assert_eq!(
            (response.status, response.body.len()),
            (202, 0),
            "{method}: {}",
            response.text()
        );
    }
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":1}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#,
    ] {
        assert_refused(&service, &[], body, (400, PARAMS));
    }
    assert_eq!(service.stored(), before);
}

/// Unlike older servers, this one has no sessions and no streams.
#[test]
fn session_headers_are_ignored() {
    let service = start();
    let old = [
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Session-Id", "of-another-server"),
        ("Last-Event-ID", "7"),
    ];
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let response = service.post(&service.token, &old, ping);
    result_of(&response);
    assert_eq!(response.header("mcp-session-id"), None);
}

#[test]
fn absent_and_null_are_the_same() {
    let service = start();
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"ping","params":{"_meta":null}}"#,
        r#"{"jsonrpc":"2.0","id":"","method":"tools/list","params":{"cursor":null}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms","arguments":null}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_sms"}}"#,
    ] {
        result_of(&service.post(&service.token, &[], body.as_bytes()));
    }
}

#[test]
fn bodies_are_json_and_bounded() {
    let service = start();
    let bearer = format!("Bearer {}", service.token);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (content_type, status) in [
        (Some("application/json; charset=utf-8"), 200),
        (Some("text/plain"), 400),
        (None, 400),
    ] {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(content_type.map(|value| ("Content-Type", value)));
        let response = service.raw("POST", "/mcp", &headers, ping);
        assert_eq!(
            response.status,
            status,
            "{content_type:?}: {}",
            response.text()
        );
    }
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
        "x".repeat(3 << 20)
    );
    let response = service.post(&service.token, &[], large.as_bytes());
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["error"]["code"], REQUEST);
    let deep = "[".repeat(100_000);
    assert_refused(&service, &[], &deep, (400, PARSE));
    service.check_health();
}
