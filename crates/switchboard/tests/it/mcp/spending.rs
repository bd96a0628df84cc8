//! Protection of AI clients from unintended spending: previews with prices, and idempotency keys.

use serde_json::{Value, json};
use testkit::receiver::Receiver;

use super::{Client, Era, envelope, failure, start, tool_output};

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
