//! The newer era of the protocol: each request is self-contained, and its headers repeat what is in the body.

use serde_json::{Value, json};

use super::protocol::{METHOD, PARAMS, assert_refused};
use super::{Client, Era, result_of, start};

const HEADER: i64 = -32020;
const VERSION: i64 = -32022;

const KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const NEW: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn valid_metadata() -> Value {
    json!({ KEY: "2026-07-28", CAPABILITIES: {} })
}

#[test]
fn the_newer_era_needs_no_handshake() {
    let service = start();
    let ask = |method| service.call_method(Era::Stateless, &service.token, method, json!({}));
    let discovered = result_of(&ask("server/discover"));
    assert_eq!(
        discovered["supportedVersions"],
        json!(["2025-06-18", "2025-11-25", "2026-07-28"])
    );
    assert_eq!(discovered["capabilities"], json!({ "tools": {} }));
    let server = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "switchboard");
    for result in [&discovered, &result_of(&ask("tools/list"))] {
        assert_eq!(result["ttlMs"], 3_600_000);
        assert_eq!(result["cacheScope"], "public");
    }
    let call = json!({ "name": "get_mobile_prefixes", "arguments": { "country": "LV" } });
    for (method, params, is_cacheable) in
        [("tools/list", json!({}), true), ("tools/call", call, false)]
    {
        let ask =
            |era| result_of(&service.call_method(era, &service.token, method, params.clone()));
        let (newer, older) = (ask(Era::Stateless), ask(Era::Handshake));
        assert_eq!(newer["resultType"], "complete", "{method}");
        assert_eq!(&newer["_meta"], &discovered["_meta"], "{method}");
        for hint in ["ttlMs", "cacheScope"] {
            assert_eq!(newer.get(hint).is_some(), is_cacheable, "{method}: {hint}");
        }
        for field in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert_eq!(older.get(field), None, "{method}: {field}");
        }
    }
}

/// Without metadata the answer says what is missing, not that the method is unknown.
#[test]
fn discovery_needs_metadata() {
    let service = start();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    let method = ("Mcp-Method", "server/discover");
    let old = ("MCP-Protocol-Version", "2025-11-25");
    for headers in [&[][..], &[old], &[NEW, method]] {
        assert_refused(&service, headers, body, (400, PARAMS));
    }
}

/// Sessions and streams belong to the older era, and notifications have no effect in this one.
#[test]
fn leftovers_of_the_older_era_do_no_harm() {
    let service = start();
    let list = stateless("tools/list", &valid_metadata());
    let session = ("Mcp-Session-Id", "of-another-server");
    let headers = [
        NEW,
        ("Mcp-Method", "tools/list"),
        session,
        ("Last-Event-ID", "7"),
    ];
    let response = service.post(&service.token, &headers, list.as_bytes());
    result_of(&response);
    assert_eq!(response.header("mcp-session-id"), None);
    let cancelled =
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let headers = [NEW, ("Mcp-Method", "notifications/cancelled")];
    let response = service.post(&service.token, &headers, cancelled);
    assert_eq!((response.status, response.body.len()), (202, 0));
}

/// A request of the newer era with this metadata.
fn stateless(method: &str, meta: &Value) -> String {
    let params =
        json!({ "name": "get_sms_rates", "arguments": { "country": "LV" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string()
}

#[test]
fn headers_must_agree_with_the_body() {
    let service = start();
    let (call, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "get_sms_rates"));
    let version = |text| ("MCP-Protocol-Version", text);
    let method = |text| ("Mcp-Method", text);
    let named = |text| ("Mcp-Name", text);
    let body = stateless("tools/call", &valid_metadata());
    for (case, headers) in [
        ("no version", vec![call, name]),
        ("another version", vec![version("2025-11-25"), call, name]),
        ("the version twice", vec![NEW, NEW, call, name]),
        ("two versions", vec![NEW, version("2025-11-25"), call, name]),
        ("no method", vec![NEW, name]),
        ("another method", vec![NEW, method("tools/list"), name]),
        ("in capitals", vec![NEW, method("TOOLS/CALL"), name]),
        ("two methods", vec![NEW, call, method("tools/list"), name]),
        ("no name", vec![NEW, call]),
        ("another name", vec![NEW, call, named("send_sms")]),
        ("two names", vec![NEW, call, name, named("send_sms")]),
        ("no text", vec![NEW, call, named("get_sms_rates\u{e4}")]),
        (
            "another name, encoded",
            vec![NEW, call, named("=?base64?c2VuZF9zbXM=?=")],
        ),
        ("not encoded at all", vec![NEW, call, named("=?base64?!?=")]),
    ] {
        println!("{case}");
        assert_refused(&service, &headers, &body, (400, HEADER));
    }
    // Header names have no case, and a name may be encoded.
    for headers in [
        [NEW, call, name],
        [
            ("mcp-protocol-version", "2026-07-28"),
            ("MCP-METHOD", "tools/call"),
            ("mcp-NAME", "=?base64?Z2V0X3Ntc19yYXRlcw==?="),
        ],
    ] {
        result_of(&service.post(&service.token, &headers, body.as_bytes()));
    }
}

#[test]
fn metadata_must_be_complete() {
    let service = start();
    let headers = [
        NEW,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "get_sms_rates"),
    ];
    for (case, meta, code) in [
        ("none", json!({}), PARAMS),
        ("null", Value::Null, PARAMS),
        ("no object", json!(1), PARAMS),
        ("no version", json!({ CAPABILITIES: {} }), PARAMS),
        (
            "a version that is not a string",
            json!({ KEY: 1, CAPABILITIES: {} }),
            PARAMS,
        ),
        (
            "a version of the other era",
            json!({ KEY: "2025-11-25", CAPABILITIES: {} }),
            HEADER,
        ),
        ("no capabilities", json!({ KEY: "2026-07-28" }), PARAMS),
        (
            "capabilities that are not an object",
            json!({ KEY: "2026-07-28", CAPABILITIES: 1 }),
            PARAMS,
        ),
    ] {
        println!("{case}");
        let body = stateless("tools/call", &meta);
        assert_refused(&service, &headers, &body, (400, code));
    }
}

#[test]
fn unknown_methods_of_the_newer_era_are_not_found() {
    let service = start();
    let (new, valid_metadata) = (NEW, valid_metadata());
    // Methods that this era has removed, and unknown ones.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/list",
        "prompts/list",
        "completion/complete",
        "subscriptions/listen",
        "tasks/list",
        "no/such",
    ] {
        let body = stateless(method, &valid_metadata);
        assert_refused(
            &service,
            &[new, ("Mcp-Method", method)],
            &body,
            (404, METHOD),
        );
    }
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "no_such", "_meta": valid_metadata } });
    let headers = [new, ("Mcp-Method", "tools/call"), ("Mcp-Name", "no_such")];
    assert_refused(&service, &headers, &body.to_string(), (200, PARAMS));
}

/// For every method, no matter where the version is given.
#[test]
fn unknown_versions_are_answered_with_the_known_ones() {
    let service = start();
    let discovered =
        service.call_method(Era::Stateless, &service.token, "server/discover", json!({}));
    let supported = &result_of(&discovered)["supportedVersions"];
    let future = json!({ KEY: "2099-01-01", CAPABILITIES: {} });
    for method in ["server/discover", "tools/list", "tools/call", "no/such"] {
        let headers = [
            ("MCP-Protocol-Version", "2099-01-01"),
            ("Mcp-Method", method),
            ("Mcp-Name", "get_sms_rates"),
        ];
        let body = stateless(method, &future);
        assert_refused(&service, &headers, &body, (400, VERSION));
        let answer = service.post(&service.token, &headers, body.as_bytes());
        let expected = json!({ "requested": "2099-01-01", "supported": supported });
        assert_eq!(answer.json()["error"]["data"], expected, "{method}");
    }
    // An unsupported version of the older era.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for version in ["2025-03-26", "2024-11-05", "1", ""] {
        let header = [("MCP-Protocol-Version", version)];
        assert_refused(&service, &header, ping, (400, VERSION));
    }
    let response = service.post(
        &service.token,
        &[("MCP-Protocol-Version", "1")],
        ping.as_bytes(),
    );
    let data = &response.json()["error"]["data"];
    assert_eq!(data, &json!({ "requested": "1", "supported": supported }));
}
