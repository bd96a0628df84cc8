//! Protection of AI clients from unintended spending: previews with prices, and idempotency keys.

use serde_json::{Value, json};
use testkit::receiver::Receiver;

use super::clients::{python, run};
use super::{Client, Era, envelope, failure, start, tool_output};
use crate::rest::service::{sms, sms_with};

fn sms_arguments(more: &Value) -> Value {
    let mut arguments = json!({ "to": ["+37120000001", "+44 7700 900000"], "from": "Acme", "message": "x".repeat(200) });
    let more = more.as_object().expect("fields");
    for (name, value) in more {
        arguments[name] = value.clone();
    }
    arguments
}

#[test]
fn a_preview_shows_the_price_and_sends_nothing() {
    let service = start();
    let balance = service.balance();
    let body = sms_arguments(&json!({})).to_string();
    let estimates = service.call_as(&service.token, "POST", "/sms/cost", body.as_bytes());
    let estimates = estimates.json();
    // A preview needs only the permission to send.
    let sender = service.create_token("main", &["--permission", "sms:send"]);
    for era in Era::BOTH {
        let params =
            json!({ "name": "send_sms", "arguments": sms_arguments(&json!({ "preview": true })) });
        let answer = tool_output(&service.call_method(era, &sender.token, "tools/call", params));
        assert_eq!(answer["messageIds"], json!([]), "{answer}");
        assert_eq!(answer["sent"], false, "{answer}");
        assert_eq!(answer["accepted"], true, "{answer}");
        assert_eq!(answer["refusal"], Value::Null, "{answer}");
        assert_eq!(answer["parts"], 4, "{answer}");
        assert_eq!(answer["to"], sms_arguments(&json!({}))["to"], "{answer}");
        let cost = &answer["cost"];
        assert_eq!(cost["recipients"], estimates, "{answer}");
        assert_eq!(cost["currency"], "EUR");
        assert_eq!(estimates.as_array().map(Vec::len), Some(2));
        let total = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
        let both: f64 = [&estimates[0], &estimates[1]]
            .iter()
            .filter_map(|one| total(&one["totalPrice"]))
            .sum();
        let shown = total(&cost["totalPrice"]).expect("a price");
        assert!(shown > 0.0 && (shown - both).abs() < 1e-9, "{answer}");
    }
    for (case, more, part) in [
        ("a text", json!({ "preview": "true" }), "'preview'"),
        ("a number", json!({ "preview": 1 }), "'preview'"),
        (
            "an invalid recipient",
            json!({ "preview": true, "to": "12" }),
            "'to'",
        ),
    ] {
        let refused = service.call_tool(&service.token, "send_sms", &sms_arguments(&more));
        let (code, message) = failure(&refused);
        assert_eq!(code, "INVALID_INPUT", "{case}: {message}");
        assert!(message.contains(part), "{case}: {message}");
    }
    let reader = service.create_token("main", &["--permission", "sms:rates"]);
    let preview = sms_arguments(&json!({ "preview": true }));
    let refused = service.call_tool(&reader.token, "send_sms", &preview);
    assert_eq!(refused.status, 403, "{}", refused.text());
    let (code, message) = envelope(&refused.json());
    assert_eq!(code, "FORBIDDEN");
    assert!(message.contains("'sms:send'"), "{message}");
    assert_eq!(service.stored(), 0, "nothing was sent");
    assert_eq!(service.balance(), balance, "nothing was charged");

    let sent = tool_output(&service.call_tool(
        &service.token,
        "send_sms",
        &sms_arguments(&json!({ "preview": false })),
    ));
    assert_eq!(sent["messageIds"].as_array().map(Vec::len), Some(2));
    assert_eq!(sent.get("cost"), None, "{sent}");
}

#[test]
fn a_repeated_key_has_no_second_effect() {
    let service = start();
    let receiver = Receiver::start();
    let lookup = json!({ "msisdn": "+37129100000", "callBackUrl": receiver.url("/hlr") });
    for (tool, arguments, field, changed) in [
        (
            "send_sms",
            sms_arguments(&json!({})),
            "messageIds",
            "message",
        ),
        ("lookup_hlr", lookup, "lookupId", "callBackUrl"),
    ] {
        let call = |key: &Value, change: bool| {
            let mut arguments = arguments.clone();
            arguments["idempotencyKey"] = key.clone();
            if change {
                let text = arguments[changed].as_str().expect("a text");
                arguments[changed] = json!(format!("{text}2"));
            }
            service.call_tool(&service.token, tool, &arguments)
        };
        let key = json!(format!("key of {tool}").replace(' ', "-"));
        let first = tool_output(&call(&key, false));
        let (balance, stored) = (service.balance(), service.stored());
        for _ in 0..3 {
            assert_eq!(tool_output(&call(&key, false)), first, "{tool}");
        }
        let (code, message) = failure(&call(&key, true));
        assert_eq!(code, "CONFLICT", "{tool}: {message}");
        let long = "k".repeat(256);
        for wrong in ["", "a b", "\u{e4}", "a\nb", long.as_str()] {
            let (code, message) = failure(&call(&json!(wrong), false));
            assert_eq!(code, "INVALID_INPUT", "{tool} {wrong:?}: {message}");
        }
        for wrong in [json!(1), json!(["a"]), json!(true)] {
            let (code, message) = failure(&call(&wrong, false));
            assert_eq!(code, "INVALID_INPUT", "{tool} {wrong}: {message}");
            assert!(message.contains("'idempotencyKey'"), "{tool}: {message}");
        }
        assert_eq!(service.balance(), balance, "{tool}: charged once");
        assert_eq!(service.stored(), stored, "{tool}: stored once");
        for other in [json!(format!("another-{tool}")), Value::Null] {
            let next = tool_output(&call(&other, false));
            assert_ne!(next[field], first[field], "{tool}: another result");
        }
    }
}

/// What the user answered counts, whatever the message costs and whether the client says that it can ask.
#[test]
fn a_declined_message_is_not_sent() {
    let service = start();
    let balance = service.balance();
    for capabilities in [json!({}), json!({ "elicitation": {} })] {
        for action in ["decline", "cancel"] {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
            let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
                "name": "send_sms", "arguments": sms(), "_meta": meta,
                "inputResponses": { "cost": { "action": action } },
            }});
            let headers = [
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "send_sms"),
            ];
            let refused = service.post(&service.token, &headers, body.to_string().as_bytes());
            let (code, message) = failure(&refused);
            assert_eq!(code, "FORBIDDEN", "{capabilities} {action}: {message}");
            assert!(message.contains("did not agree to pay"), "{message}");
        }
    }
    assert_eq!(service.stored(), 0, "nothing was sent");
    assert_eq!(service.balance(), balance, "nothing was charged");
}

#[test]
fn a_preview_lists_the_first_recipients() {
    let service = start();
    let to: Vec<String> = (0..30).map(|n| format!("+371200001{n:02}")).collect();
    let arguments = sms_with(&json!({ "to": to, "preview": true }));
    let preview = tool_output(&service.call_tool(&service.token, "send_sms", &arguments));
    assert_eq!(preview["parts"], 30, "{preview}");
    assert_eq!(preview["to"], json!(to[..20]), "{preview}");
    let cost = &preview["cost"];
    assert_eq!(cost["recipientCount"], 30, "{cost}");
    let listed = cost["recipients"].as_array().expect("a list");
    let listed: Vec<&Value> = listed.iter().map(|one| &one["to"]).collect();
    assert_eq!(json!(listed), json!(to[..20]), "{cost}");
}

/// A client that can ask its user does so before a message above `billing.confirm_above`.
#[test]
fn a_costly_message_needs_the_users_consent() {
    let service = start();
    let to: Vec<String> = (0..100).map(|n| format!("+371200001{n:02}")).collect();
    let costly = json!({ "to": to, "from": "Acme", "message": "Hello" });
    let mut test = costly.clone();
    test["testMode"] = json!("1");
    let call = |mode: &str, answer: &str, arguments: &Value| {
        let instructions = json!({
            "mode": mode, "answer": answer, "url": service.server.url("/mcp"), "token": service.token,
            "calls": [["send_sms", arguments]],
        });
        run(python("client.py"), &instructions)
    };
    let balance = service.balance();
    let declined = call("auto", "decline", &costly);
    let error = &declined["results"][0]["structuredContent"]["error"];
    assert_eq!(error["code"], "FORBIDDEN", "{declined}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("did not agree to pay"), "{declined}");
    let question = declined["questions"][0].as_str().unwrap_or_default();
    assert!(question.contains(" EUR?"), "{declined}");
    assert!(question.ends_with("recipients: 100."), "{declined}");
    assert_eq!(service.balance(), balance, "nothing was charged");
    assert_eq!(service.stored(), 0, "nothing was sent");

    let sent = |report: &Value| {
        let result = &report["results"][0];
        assert_eq!(result["isError"], json!(false), "{report}");
        let ids = result["structuredContent"]["messageIds"].as_array();
        (
            ids.map_or(0, Vec::len),
            report["questions"].as_array().map_or(0, Vec::len),
        )
    };
    let accepted = call("auto", "accept", &costly);
    assert_eq!(sent(&accepted), (100, 1), "{accepted}");
    let free = call("auto", "decline", &test);
    assert_eq!(sent(&free), (100, 0), "tests cost nothing: {free}");
    let cheap = json!({ "to": "+37120000001", "from": "Acme", "message": "Hello" });
    let cheap = call("auto", "decline", &cheap);
    assert_eq!(sent(&cheap), (1, 0), "{cheap}");
    let older = call("legacy", "decline", &costly);
    assert_eq!(
        sent(&older),
        (100, 0),
        "older clients cannot be asked: {older}"
    );

    // An answer counts only for the price that the user saw.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    for (price, kind) in [("0.01", "input_required"), ("1000", "complete")] {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "send_sms", "arguments": costly, "_meta": meta, "requestState": price,
            "inputResponses": { "cost": { "action": "accept" } },
        }});
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "send_sms"),
        ];
        let response = service.post(&service.token, &headers, body.to_string().as_bytes());
        assert_eq!(
            response.json()["result"]["resultType"],
            kind,
            "{price}: {}",
            response.text()
        );
    }
}
