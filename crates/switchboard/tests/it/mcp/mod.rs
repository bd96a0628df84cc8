//! The MCP server from outside: the real binary, called directly and by third-party clients.

mod arguments;
mod authorization;
pub(crate) mod clients;
mod connecting;
mod conversation;
mod documented;
mod hosts;
mod protocol;
mod results;
mod secrecy;
mod separate_process;
mod spending;
mod stateless;
mod tools;
mod verify;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use crate::rest::service::Service;

/// The tools and the scope of each: first as the contract lists them, then ours. One tool needs none.
pub(super) const TOOLS: [(&str, &str); 19] = [
    ("send_sms", "sms:send"),
    ("get_sms_rates", "sms:rates"),
    ("register_sender_id", "sender:write"),
    ("register_msisdn_sender", "sender:write"),
    ("confirm_msisdn_sender", "sender:write"),
    ("lookup_hlr", "hlr:lookup"),
    ("get_operator", "numbers:read"),
    ("get_mcc_mnc_list", "numbers:read"),
    ("get_mobile_prefixes", "numbers:read"),
    ("correct_phone_number", "numbers:read"),
    ("get_message", "sms:send"),
    ("get_lookup", "hlr:lookup"),
    ("cancel_message", "sms:send"),
    ("get_account", ""),
    ("list_senders", "sender:write"),
    ("list_inbox", "sms:send"),
    ("start_verification", "verify:send"),
    ("check_verification", "verify:send"),
    ("get_verification", "verify:send"),
];

/// Service error codes of refusals that a later call may not get: recipient limit, balance, spending cap.
const TEMPORARY: [u64; 3] = [23, 24, 28];

/// The two eras of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// 2025-11-25: a handshake, and a version in a header.
    Handshake,
    /// 2026-07-28: each request is self-contained.
    Stateless,
}

impl Era {
    pub(super) const BOTH: [Self; 2] = [Self::Handshake, Self::Stateless];

    const fn version(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// A request with everything that the era requires.
    fn request(self, method: &str, mut params: Value) -> Value {
        if self == Self::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
    }
}

/// A client of the MCP server.
pub(super) trait Client {
    /// Sends one request with a token, and only the headers that every request needs.
    fn post(&self, token: &str, headers: &[(&str, &str)], body: &[u8]) -> Response;

    /// Calls a method in an era with a token.
    fn call_method(&self, era: Era, token: &str, method: &str, params: Value) -> Response {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", era.version())];
        if era == Era::Stateless {
            headers.push(("Mcp-Method", method));
            if method == "tools/call" {
                headers.push(("Mcp-Name", &name));
            }
        }
        let body = era.request(method, params).to_string();
        self.post(token, &headers, body.as_bytes())
    }

    /// Calls a tool with a token.
    fn call_tool(&self, token: &str, tool: &str, arguments: &Value) -> Response {
        let params = json!({ "name": tool, "arguments": arguments });
        self.call_method(Era::Handshake, token, "tools/call", params)
    }
}

impl Client for Service {
    fn post(&self, token: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let bearer = format!("Bearer {token}");
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(headers);
        self.raw("POST", "/mcp", &all, body)
    }
}

/// A service on SQLite. The REST tests cover the differences between the stores.
pub(super) fn start() -> Service {
    Service::start(Backend::Sqlite)
}

/// The result of a successful JSON-RPC call.
pub(super) fn result_of(response: &Response) -> Value {
    let body = response.json();
    assert_eq!(response.status, 200, "{body}");
    assert!(body["result"].is_object(), "{body}");
    body["result"].clone()
}

/// The structured content of a successful tool call, which its text repeats.
pub(super) fn tool_output(response: &Response) -> Value {
    let result = result_of(response);
    assert_eq!(result["isError"], json!(false), "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let text: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(text, result["structuredContent"]);
    text
}

/// The code and the message of a failed tool call.
pub(super) fn failure(response: &Response) -> (String, String) {
    let result = result_of(response);
    assert_eq!(result["isError"], json!(true), "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let text: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(text, result["structuredContent"]);
    envelope(&text)
}

/// The code and message of an envelope that has all its fields.
pub(super) fn envelope(body: &Value) -> (String, String) {
    let error = &body["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("{body}"));
    let code = text("code");
    let service_code = error["service_error_code"].as_u64();
    let is_above_cap = text("message").contains("the cap of a whole day");
    let retryable = matches!(code, "RATE_LIMITED" | "UPSTREAM_UNAVAILABLE" | "INTERNAL")
        || service_code.is_some_and(|code| TEMPORARY.contains(&code) && !is_above_cap)
        || text("message").contains("less than a minute ago");
    assert_eq!(error["retryable"], json!(retryable), "{body}");
    assert!(error.get("service_error_code").is_some(), "{body}");
    assert!(text("message").ends_with('.'), "{body}");
    (code.to_owned(), text("message").to_owned())
}
