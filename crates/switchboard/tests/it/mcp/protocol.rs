//! The protocol itself, message by message: shapes, versions, headers, codes.

use serde_json::{Value, json};

use super::{Client, Era, result_of, start};
use crate::rest::service::Service;

const PARSE: i64 = -32700;
const REQUEST: i64 = -32600;
const METHOD: i64 = -32601;
const PARAMS: i64 = -32602;
const HEADER: i64 = -32020;
const VERSION: i64 = -32022;

fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    }})
}

/// A handshake with one field of its parameters set otherwise.
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

#[test]
fn the_newer_era_needs_no_handshake() {
    let service = start();
    let ask = |method| service.ask(Era::Stateless, &service.token, method, json!({}));
    let discovered = result_of(&ask("server/discover"));
    assert_eq!(
        discovered["supportedVersions"],
        json!(["2025-06-18", "2025-11-25", "2026-07-28"])
    );
    assert_eq!(discovered["capabilities"], json!({ "tools": {} }));
    let server = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "switchboard");
    for result in [discovered, result_of(&ask("tools/list"))] {
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["ttlMs"], 3_600_000);
        assert_eq!(result["cacheScope"], "public");
    }
    let older = service.ask(Era::Handshake, &service.token, "tools/list", json!({}));
    for field in ["resultType", "ttlMs", "cacheScope"] {
        assert_eq!(result_of(&older).get(field), None, "{field}");
    }
}

/// Posts a text and expects an error of this status and code, under the ID of the request.
fn refused(service: &Service, headers: &[(&str, &str)], body: &str, expected: (u16, i64)) {
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
    assert_eq!(&answer["id"], id.unwrap_or(&Value::Null), "{body}");
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
fn what_is_no_message_is_refused_with_its_code() {
    let service = start();
    for (body, expected) in MALFORMED {
        refused(&service, &[], body, *expected);
    }
    for (field, value) in [
        ("protocolVersion", Value::Null),
        ("protocolVersion", json!(1)),
        ("capabilities", Value::Null),
        ("capabilities", json!([])),
        ("clientInfo", Value::Null),
        ("clientInfo", json!({ "name": "x" })),
    ] {
        refused(&service, &[], &initialize_with(field, value), (200, PARAMS));
    }
    service.check_health();
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
    refused(&service, &[], &deep, (400, PARSE));
    service.check_health();
}

/// A request of the newer era, whose metadata a test may spoil.
fn stateless(method: &str, meta: &Value) -> String {
    let params =
        json!({ "name": "get_sms_rates", "arguments": { "country": "LV" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string()
}

#[test]
fn headers_and_metadata_of_the_newer_era_must_agree() {
    const KEY: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    let service = start();
    let new = ("MCP-Protocol-Version", "2026-07-28");
    let call = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "get_sms_rates");
    let good = json!({ KEY: "2026-07-28", CAPABILITIES: {} });
    let future = json!({ KEY: "2099-01-01", CAPABILITIES: {} });
    let old = json!({ KEY: "2025-11-25", CAPABILITIES: {} });
    for (case, headers, meta, expected) in [
        ("no version header", vec![call, name], &good, (400, HEADER)),
        (
            "another version header",
            vec![("MCP-Protocol-Version", "2025-11-25"), call, name],
            &good,
            (400, HEADER),
        ),
        ("no method header", vec![new, name], &good, (400, HEADER)),
        (
            "another method header",
            vec![new, ("Mcp-Method", "tools/list"), name],
            &good,
            (400, HEADER),
        ),
        ("no name header", vec![new, call], &good, (400, HEADER)),
        (
            "another name header",
            vec![new, call, ("Mcp-Name", "send_sms")],
            &good,
            (400, HEADER),
        ),
        (
            "metadata of another era",
            vec![new, call, name],
            &old,
            (400, HEADER),
        ),
        (
            "an unknown version",
            vec![("MCP-Protocol-Version", "2099-01-01"), call, name],
            &future,
            (400, VERSION),
        ),
        (
            "no metadata",
            vec![new, call, name],
            &json!({}),
            (400, PARAMS),
        ),
        (
            "no capabilities",
            vec![new, call, name],
            &json!({ KEY: "2026-07-28" }),
            (400, PARAMS),
        ),
        (
            "capabilities that are none",
            vec![new, call, name],
            &json!({ KEY: "2026-07-28", CAPABILITIES: 1 }),
            (400, PARAMS),
        ),
    ] {
        let body = stateless("tools/call", meta);
        println!("{case}");
        refused(&service, &headers, &body, expected);
    }
    // What the era has given up, and what was never there.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
    ] {
        let body = stateless(method, &good);
        refused(
            &service,
            &[new, ("Mcp-Method", method)],
            &body,
            (404, METHOD),
        );
    }
    let body = stateless("tools/call", &good);
    result_of(&service.post(&service.token, &[new, call, name], body.as_bytes()));
    // A version of the older era that is not spoken.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for version in ["2025-03-26", "2024-11-05", "1", ""] {
        let header = [("MCP-Protocol-Version", version)];
        refused(&service, &header, ping, (400, VERSION));
    }
    let response = service.post(
        &service.token,
        &[("MCP-Protocol-Version", "1")],
        ping.as_bytes(),
    );
    let supported = json!(["2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(response.json()["error"]["data"]["supported"], supported);
}
